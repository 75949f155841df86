package payments

import (
	"slices"
	"testing"
	"time"
)

// TestCancelComesBeforeAnotherSend: a charge that waits since an earlier send was not executed is sent again unless its cancel was accepted meanwhile.
func TestCancelComesBeforeAnotherSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status Status
		cancel OpenCancel
		away   bool
		sent   bool
		asked  int
		ends   Status // "": nothing is recorded
	}{
		"the first send":      {status: StatusReceived, cancel: OpenCancel{Open: true}, sent: true, asked: 0, ends: StatusSucceeded},
		"no cancel":           {status: StatusWaiting, sent: true, asked: 1, ends: StatusSucceeded},
		"a cancel":            {status: StatusWaiting, cancel: OpenCancel{Open: true}, asked: 1, ends: StatusCanceled},
		"cannot be asked for": {status: StatusWaiting, away: true, asked: 1},
	} {
		b, store := newBench(), &canceling{cancel: c.cancel}
		if c.away {
			store.err = Errorf(CodeUnavailable, "away")
		}
		b.FollowUps, b.submit = store, succeeded
		s := b.Settle(t.Context(), t.Context(), testClaim(c.status, false))
		if sent := slices.Contains(b.calls, "submit"); sent != c.sent || store.asked != c.asked || Retryable(s.Err) != c.away {
			t.Errorf("%s: sent %t, asked %d times, %+v", name, sent, store.asked, s)
		}
		if recorded := slices.Contains(b.calls, "record "+string(c.ends)); recorded != (c.ends != "") || len(b.recorded) > 0 && c.ends == "" {
			t.Errorf("%s: %v", name, b.calls)
		}
	}
}

// TestAbsentChargeIsCanceled: what is proven to be absent while a cancel of it is open is canceled, and neither sent again nor left to a person, whatever the
// installation does with such charges. Before that its doubt is cleared as ever, by sending under the same key.
func TestAbsentChargeIsCanceled(t *testing.T) {
	t.Parallel()
	o := Observation{Kind: ObservedRecords, Account: testAccount}
	for _, resubmit := range []bool{false, true} {
		policy := Policy{TriesMax: 3, ResubmitAfterAbsent: resubmit, Cancel: OpenCancel{Open: true}}
		p := testClaim(StatusUnknown, true).Payment
		p.FirstSubmitAt, p.LastSubmitAt, p.AbsentAt = testNow.Add(-26*time.Hour), testNow.Add(-26*time.Hour), testNow.Add(-AbsenceApart)
		if got, err := Decide(p, o, testNow, policy); err != nil || got.Status != StatusCanceled || got.Reason != ReasonCanceledOnRequest || got.ThenSend {
			t.Errorf("resubmit %t: %+v, %v", resubmit, got, err)
		}
		named := p
		named.StripePaymentIntent = "pi_1"
		if got, err := Decide(named, o, testNow, policy); err != nil || got.Status != StatusNeedsReview || got.Reason != ReasonMissingAtStripe {
			t.Errorf("resubmit %t: Stripe has named it: %+v, %v", resubmit, got, err)
		}
		if got, err := Decide(testClaim(StatusUnknown, true).Payment, o, testNow, policy); err != nil || !got.ThenSend {
			t.Errorf("resubmit %t: a moment ago: %+v, %v", resubmit, got, err)
		}
	}
}

// TestCancelIsAskedForAfterTheHold: a process may stand still while it asks for cancels, and a rewind end meanwhile that has brought one back. What was
// answered before that neither sends the charge nor ends it.
func TestCancelIsAskedForAfterTheHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, ends Status
		cancel       OpenCancel
	}{
		"waiting":               {StatusWaiting, StatusWaiting, OpenCancel{}},
		"waiting, a cancel":     {StatusWaiting, StatusWaiting, OpenCancel{Open: true}},
		"in doubt":              {StatusUnknown, StatusUnknown, OpenCancel{}},
		"in doubt, with cancel": {StatusUnknown, StatusUnknown, OpenCancel{Open: true}},
	} {
		b, store := newBench(), &canceling{cancel: c.cancel}
		claim := testClaim(c.status, c.status == StatusUnknown)
		if c.status == StatusUnknown {
			claim.Payment.FirstSubmitAt, claim.Payment.LastSubmitAt = b.now.Add(-time.Minute), b.now.Add(-time.Minute)
		}
		asked := 0
		b.Held = func() string {
			if asked++; asked == 1 {
				return "a rewind is running"
			}
			return "" // it has ended
		}
		b.FollowUps, b.submit = store, succeeded
		b.look = func(Payment, func() error) Observation {
			return Observation{Kind: ObservedRecords, Account: testAccount}
		}
		s := b.Settle(t.Context(), t.Context(), claim)
		if s.Err != nil || slices.Contains(b.calls, "submit") || len(b.recorded) != 1 {
			t.Errorf("%s: %+v, %v", name, s, b.calls)
			continue
		}
		if got := b.recorded[0].Transition; got.Status != c.ends || got.Reason != ReasonHeldBack || got.InDoubt != (c.status == StatusUnknown) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
