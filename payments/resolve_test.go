package payments

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var someone = Operation{Actor: "ann@ops", Reason: "seen in the dashboard"}

// pasts lists every status in every past that a decision about it may depend on.
func pasts() []Payment {
	var all []Payment
	for _, status := range Statuses() {
		for _, doubt := range []bool{false, true} {
			for _, sent := range []time.Time{{}, testNow.Add(-time.Hour)} {
				for _, pi := range []string{"", "pi_1"} {
					for _, captured := range []int64{0, 1} {
						for _, expires := range []time.Time{{}, testNow} {
							for _, lease := range []time.Duration{0, -1, time.Second} { // 0: nobody owns it
								all = append(all, Payment{
									Intent: Intent{Amount: 9900, ExpiresAt: expires}, Status: status, Reason: ReasonAbsent, Failure: declined, InDoubt: doubt,
									FirstSubmitAt: sent, LastSubmitAt: sent, StripePaymentIntent: pi, AmountCaptured: captured, Tries: 7,
									Owned: lease != 0, NextAttemptAt: testNow.Add(lease),
								})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// afterwards is the payment that a transition leaves, as a store writes it.
func afterwards(p Payment, t Transition) Payment {
	p.Status, p.Reason, p.InDoubt, p.Rounds, p.Owned = t.Status, t.Reason, t.InDoubt, t.Rounds, false
	if t.ClearSubmit {
		p.FirstSubmitAt, p.LastSubmitAt = time.Time{}, time.Time{}
	}
	if t.ResetTries {
		p.Tries = 0
	}
	return p
}

// decided is a decision with all that it needs.
func decided(p Payment, as Status) Decision {
	d := Decision{As: as}
	if as == StatusSucceeded && p.StripePaymentIntent == "" {
		d.PaymentIntent = "pi_1"
	}
	return d
}

func named(p Payment, as Status) string {
	if d := decided(p, as); d.PaymentIntent != "" {
		return d.PaymentIntent + ": "
	}
	return ""
}

// takenOf is what Stripe said was taken of the payment's PaymentIntent, or all of it.
func takenOf(p Payment) int64 {
	if p.StripePaymentIntent != "" && p.AmountCaptured > 0 {
		return p.AmountCaptured
	}
	return p.Amount
}

func wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeInvalid || len(e.Message) < 20 || !strings.Contains(e.Message, ": ") {
		t.Errorf("%s: refused without a remedy: %v", what, err)
	}
}

func TestResolveNeitherChargesTwiceNorLoses(t *testing.T) {
	t.Parallel()
	allowed := map[[2]Status]int{}
	for _, p := range pasts() {
		atStripe := p.InDoubt || !p.FirstSubmitAt.IsZero() || p.StripePaymentIntent != ""
		for _, as := range Statuses() {
			what := fmt.Sprintf("%s as %s: %+v", p.Status, as, p)
			got, err := Resolve(p, decided(p, as), someone, testNow)
			if err != nil && CheckResolution(as) != "" {
				if e := new(Error); !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != "as" || !strings.Contains(e.Message, "must be one of succeeded, failed,") {
					t.Errorf("%s: the choices are not named: %v", what, err)
				}
				continue
			}
			if err != nil {
				wantRefusal(t, what, err)
				continue
			}
			allowed[[2]Status{p.Status, as}]++
			next := afterwards(p, got)
			for rule, broken := range map[string]bool{
				"the state machine has it":                        !p.Status.CanMove(as) || got.Status != as,
				"nobody is at it":                                 p.Owned && p.NextAttemptAt.After(testNow),
				"nothing is sent that may be at Stripe":           Next(next, testNow) == ActionSend && atStripe,
				"nothing is sent after expires_at":                Next(next, testNow) == ActionSend && p.Expired(testNow),
				"money that was taken is not forgotten":           p.AmountCaptured > 0 && slices.Contains([]Status{StatusFailed, StatusCanceled, StatusRejected, StatusExpired, StatusWaiting}, as),
				"what may be charged is not called off":           slices.Contains([]Status{StatusUnknown, StatusPending, StatusRequiresAction}, p.Status) && slices.Contains([]Status{StatusFailed, StatusCanceled, StatusRejected, StatusExpired, StatusWaiting}, as),
				"a send in doubt is not called off by one word":   p.InDoubt && (p.Status == StatusReceived || p.Status == StatusWaiting),
				"what is looked up stays in doubt":                as == StatusUnknown && !got.InDoubt,
				"only what Stripe's records say is for review":    as == StatusNeedsReview,
				"the reason tells that a person decided, and why": got.Reason != "resolved_by_operator: "+named(p, as)+"seen in the dashboard",
				"what succeeded names its PaymentIntent and its money": as == StatusSucceeded &&
					(got.Object == nil || got.Object.ID != "pi_1" || got.Object.AmountReceived != takenOf(p)),
				"only what succeeded does":                  as != StatusSucceeded && got.Object != nil,
				"a decline keeps Stripe's words":            as == StatusFailed && got.Failure != p.Failure,
				"what is submitted again has all its tries": as == StatusWaiting && next.Tries != 0,
			} {
				if broken {
					t.Errorf("%s: not so that %s", what, rule)
				}
			}
		}
	}
	for _, want := range [][2]Status{
		{StatusNeedsReview, StatusSucceeded}, {StatusNeedsReview, StatusFailed}, {StatusNeedsReview, StatusCanceled}, {StatusNeedsReview, StatusWaiting},
		{StatusNeedsReview, StatusUnknown}, {StatusUnknown, StatusSucceeded},
		{StatusRequiresAction, StatusUnknown}, {StatusRequiresCapture, StatusUnknown}, {StatusWaiting, StatusCanceled}, {StatusReceived, StatusCanceled},
	} {
		if allowed[want] == 0 {
			t.Errorf("%s can never be resolved as %s", want[0], want[1])
		}
	}
}

// TestNoWayRoundByHand: however many decisions follow one another, with no word of Stripe between them, what may be at Stripe and does not wait for
// a person already is neither given up nor submitted.
func TestNoWayRoundByHand(t *testing.T) {
	t.Parallel()
	givenUp := []Status{StatusFailed, StatusCanceled, StatusRejected, StatusExpired}
	for _, p := range pasts() {
		if p.Status == StatusNeedsReview || !p.InDoubt && p.StripePaymentIntent == "" && p.AmountCaptured == 0 {
			continue
		}
		seen, left := map[Status]bool{}, []Payment{p}
		for len(left) > 0 {
			at := left[0]
			left = left[1:]
			if slices.Contains(givenUp, at.Status) && at.Status != p.Status || at.Status != p.Status && Next(at, testNow) == ActionSend {
				t.Errorf("%s can be brought to %s by hand: %+v", p.Status, at.Status, p)
			}
			for _, as := range Statuses() {
				if got, err := Resolve(at, decided(at, as), someone, testNow); err == nil && !seen[as] {
					seen[as] = true
					left = append(left, afterwards(at, got))
				}
			}
		}
	}
}

func TestResolveNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	review := Payment{Status: StatusNeedsReview, InDoubt: true}
	for name, c := range map[string]struct {
		p          Payment
		as         Status
		op         Operation
		field, say string
	}{
		"nobody":          {review, StatusFailed, Operation{Reason: "x"}, "actor", "who decides"},
		"no reason":       {review, StatusFailed, Operation{Actor: "x", Reason: " "}, "reason", "say why"},
		"no status":       {review, "paid", someone, "as", "must be one of succeeded, failed, canceled, waiting, unknown"},
		"shown only":      {review, StatusProcessing, someone, "as", "must be one of"},
		"by machines":     {review, StatusRejected, someone, "as", "must be one of"},
		"for review":      {Payment{Status: StatusUnknown, InDoubt: true}, StatusNeedsReview, someone, "as", "by Stripe's records alone"},
		"pending":         {Payment{Status: StatusPending, InDoubt: true}, StatusFailed, someone, "as", "canceled at Stripe"},
		"submit in doubt": {review, StatusWaiting, someone, "as", "resolve it as unknown"},
		"unknown again":   {Payment{Status: StatusUnknown, InDoubt: true}, StatusWaiting, someone, "as", "wait for its look-up"},
		"stalled":         {Payment{Status: StatusStalled}, StatusWaiting, someone, "as", "oncepay dlq replay"},
		"final":           {Payment{Status: StatusSucceeded}, StatusFailed, someone, "as", "it has its outcome"},
		"owned":           {Payment{Status: StatusUnknown, Owned: true, NextAttemptAt: testNow.Add(1)}, StatusSucceeded, someone, "as", "try again"},
		"cancelling":      {Payment{Status: StatusWaiting, Reason: ReasonCancelling, StripePaymentIntent: "pi_1"}, StatusCanceled, someone, "as", "wait for that"},
		"absent":          {Payment{Status: StatusNeedsReview, Reason: ReasonAbsent}, StatusUnknown, someone, "as", "nothing to look for"},
	} {
		_, err := Resolve(c.p, Decision{As: c.as}, c.op, testNow)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != c.field || !strings.Contains(e.Message, c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTakeUpAgainAndDiscard(t *testing.T) {
	t.Parallel()
	for _, p := range pasts() {
		what := fmt.Sprintf("%+v", p)
		maybe := p.InDoubt || p.StripePaymentIntent != ""
		got, err := TakeUpAgain(p)
		switch {
		case p.Status != StatusStalled:
			wantRefusal(t, what, err)
		case err != nil || got.Reason != ReasonReplayed || got.Delay != (Delay{}) || afterwards(p, got).Tries != 0 || got.Quiet(p):
			t.Errorf("%s is not due now with all its tries: %+v, %v", what, got, err)
		case maybe != (got.Status == StatusUnknown), maybe != got.InDoubt, !maybe && got.Status != StatusWaiting:
			t.Errorf("%s: %+v", what, got)
		case p.Expired(testNow) && Next(afterwards(p, got), testNow) == ActionSend:
			t.Errorf("%s is sent after expires_at", what)
		}
		got, err = Discard(p)
		switch {
		case p.Status != StatusStalled || maybe:
			wantRefusal(t, what, err)
		case err != nil || got.Status != StatusCanceled || got.Reason != ReasonDiscarded || got.InDoubt:
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := Discard(Payment{Status: StatusUnknown}); err == nil || !strings.Contains(err.Error(), "may have been charged") {
		t.Errorf("an unknown payment is discarded: %v", err)
	}
}
