package payments

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const testTriesMax = 3

var testAccount = Account{ID: "acct_1", Livemode: true}

// history is everything before the observation that Decide may look at.
type history struct {
	p    Payment
	name string
}

// histories lists every status with a ticket in every past that may have led there, and some that may not.
func histories() []history {
	type times struct {
		name                string
		first, last, absent time.Duration // before now; 0: never
	}
	sent := []times{
		{"never sent", 0, 0, 0},
		{"sent lately", time.Hour, time.Minute, 0},
		{"first sent 23 h ago", 23 * time.Hour, time.Hour, 0},
		{"last sent almost 24 h ago", 30 * time.Hour, 24*time.Hour - 1, 0},
		{"last sent 24 h ago", 30 * time.Hour, 24 * time.Hour, 0},
		{"absent lately", 30 * time.Hour, 26 * time.Hour, time.Hour - 1},
		{"absent long", 30 * time.Hour, 26 * time.Hour, time.Hour},
	}
	ago := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return testNow.Add(-d)
	}
	var all []history
	for _, status := range TicketStatuses() {
		for _, inDoubt := range []bool{false, true} {
			for _, s := range sent {
				for expiry, expires := range map[string]time.Time{"never": {}, "later": testNow.Add(time.Hour), "now": testNow} {
					for _, tries := range []int{0, testTriesMax - 1, testTriesMax + 5} {
						for _, rounds := range []int{0, 40} {
							for pinned, account := range map[string]Account{"unpinned": {}, "ours": testAccount, "another": {"acct_2", true}, "other mode": {"acct_1", false}} {
								for _, pi := range []string{"", "pi_1"} {
									p := Payment{
										Intent: Intent{TenantID: "acme", IdempotencyKey: "order-1", Amount: 9900, Currency: "usd", Customer: "cus_1", ExpiresAt: expires},
										Status: status, Reason: ReasonNoAnswer, InDoubt: inDoubt, FirstSubmitAt: ago(s.first), LastSubmitAt: ago(s.last), AbsentAt: ago(s.absent),
										Tries: tries, Rounds: rounds, StripeAccount: account.ID, Livemode: account.Livemode, StripePaymentIntent: pi,
									}
									p.OffSession = (rounds == 40) != (tries == testTriesMax-1)
									if status == StatusPending {
										p.Reason = ReasonProcessing
									}
									name := fmt.Sprintf("%s, in doubt %v, %s, expires %s, tries %d, rounds %d, account %s, PaymentIntent %q, off session %v",
										status, inDoubt, s.name, expiry, tries, rounds, pinned, pi, p.OffSession)
									all = append(all, history{p, name})
									if status == StatusWaiting && pi != "" && !p.OffSession && s.first != 0 {
										for range 2 { // a cancel is next, or a read
											p.Reason, p.Failure = ReasonCancelling, declined
											all = append(all, history{p, name + ", cancelling"})
											p.Rounds++
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return all
}

var (
	declined = &Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}
	needsSCA = &Failure{Code: "authentication_required", DeclineCode: "authentication_required"}
	softSCA  = &Failure{Code: "card_declined", DeclineCode: "authentication_required"}
)

// stripeObjects lists PaymentIntents of every status, and ones that disagree with the payment in one field each.
func stripeObjects() []PaymentIntent {
	agreeing := PaymentIntent{ID: "pi_1", Status: StripeSucceeded, Amount: 9900, AmountReceived: 9900, Currency: "usd", Customer: "cus_1", Livemode: true}
	var all []PaymentIntent
	for _, s := range []StripeStatus{
		StripeSucceeded, StripeProcessing, StripeRequiresCapture, StripeRequiresAction, StripeRequiresConfirmation, StripeRequiresPaymentMethod, StripeCanceled, "frozen",
	} {
		pi := agreeing
		pi.Status = s
		all = append(all, pi)
	}
	for _, f := range []*Failure{declined, needsSCA, softSCA} {
		pi := agreeing
		pi.Status, pi.LastError = StripeRequiresPaymentMethod, f
		all = append(all, pi)
		pi.Status = StripeCanceled
		all = append(all, pi)
	}
	for _, change := range []func(*PaymentIntent){
		func(pi *PaymentIntent) { pi.Amount++ }, func(pi *PaymentIntent) { pi.Currency = "eur" }, func(pi *PaymentIntent) { pi.Customer = "" },
		func(pi *PaymentIntent) { pi.Livemode = false }, func(pi *PaymentIntent) { pi.ID = "pi_2" },
		func(pi *PaymentIntent) { pi.Status, pi.Amount = StripeProcessing, 1 }, func(pi *PaymentIntent) { pi.Status, pi.Amount = StripeCanceled, 1 },
	} {
		pi := agreeing
		change(&pi)
		all = append(all, pi)
	}
	return all
}

// observations lists every kind with every content that may come with it.
func observations() []Observation {
	var all []Observation
	objects := stripeObjects()
	for _, kind := range ObservationKinds() {
		o := Observation{Kind: kind, Account: testAccount}
		switch kind {
		case ObservedAnswer:
			all = append(all, o, Observation{Kind: kind, Account: testAccount, Object: &PaymentIntent{ID: "pi_1"}}, Observation{Kind: kind, Object: &PaymentIntent{Status: StripeSucceeded}})
			for i := range objects {
				o.Object = &objects[i]
				for _, o.Replayed = range []bool{false, true} {
					all = append(all, o)
				}
			}
		case ObservedDecline:
			for _, o.Failure = range []*Failure{nil, declined, needsSCA, softSCA} {
				o.Object = nil
				all = append(all, o)
				for i := range objects {
					o.Object = &objects[i]
					for _, o.Replayed = range []bool{false, true} {
						all = append(all, o)
					}
				}
			}
		case ObservedRecords:
			all = append(all, o)
			for i := range objects {
				o.Found = objects[i : i+1]
				all = append(all, o)
			}
			o.Found = []PaymentIntent{objects[0], objects[len(objects)-3]}
			all = append(all, o)
		case ObservedObject:
			all = append(all, o)
			for i := range objects {
				o.Object = &objects[i]
				all = append(all, o)
			}
		default:
			for _, o.RetryAfter = range []time.Duration{0, 5 * time.Second, -time.Hour, 10 * 365 * 24 * time.Hour} {
				all = append(all, o)
			}
		}
	}
	return all
}

// situation is one call of Decide, judged by rules that know nothing of how Decide works.
type situation struct {
	p     Payment
	o     Observation
	t     Transition
	doubt bool
	wrong []string
}

func (s *situation) must(holds bool, rule string) {
	if !holds {
		s.wrong = append(s.wrong, rule)
	}
}

// foreignAccount: the account that was asked is not the one that the payment is pinned to.
func (s *situation) foreignAccount() bool {
	return s.p.StripeAccount != "" && (s.p.StripeAccount != s.o.Account.ID || s.p.Livemode != s.o.Account.Livemode)
}

// agrees: the object is the one that the payment asked for.
func (s *situation) agrees(pi *PaymentIntent) bool {
	return pi.ID != "" && !s.foreignAccount() && pi.Livemode == s.o.Account.Livemode && pi.Amount == s.p.Amount && pi.Currency == s.p.Currency &&
		pi.Customer == s.p.Customer && (s.p.StripePaymentIntent == "" || s.p.StripePaymentIntent == pi.ID)
}

// cancelling: the payment was declined on session, and its PaymentIntent is being canceled.
func (s *situation) cancelling() bool {
	return s.p.Status == StatusWaiting && s.p.Reason == ReasonCancelling && !s.doubt
}

// adoptable returns the one object that the observation proves to be the payment's, if there is one.
func (s *situation) adoptable() *PaymentIntent {
	pending := s.p.Status == StatusPending
	var pi *PaymentIntent
	if s.cancelling() && s.o.Kind != ObservedObject {
		return nil
	}
	switch s.o.Kind {
	case ObservedAnswer:
		if o := s.o.Object; !pending && o != nil && o.Status != "" && (!s.doubt || s.o.Replayed) {
			pi = o
		}
	case ObservedRecords:
		if len(s.o.Found) == 1 {
			pi = &s.o.Found[0]
		}
	case ObservedObject:
		if o := s.o.Object; o != nil && s.p.StripePaymentIntent != "" && o.ID == s.p.StripePaymentIntent && (pending || !s.doubt) {
			pi = o
		}
	}
	if pi != nil && s.agrees(pi) {
		return pi
	}
	return nil
}

func (s *situation) emptyRecords() bool {
	return s.o.Kind == ObservedRecords && len(s.o.Found) == 0 && !s.foreignAccount() && s.p.Status != StatusPending && !s.cancelling()
}

// absent: this listing is the second that counts.
func (s *situation) absent() bool {
	return s.emptyRecords() && !s.p.LastSubmitAt.IsZero() && testNow.Sub(s.p.LastSubmitAt) >= 24*time.Hour && !s.p.AbsentAt.IsZero() && testNow.Sub(s.p.AbsentAt) >= time.Hour
}

func (s *situation) expired() bool { return !s.p.ExpiresAt.IsZero() && !s.p.ExpiresAt.After(testNow) }

func (s *situation) declinedOutright() bool {
	if s.o.Kind != ObservedDecline || s.doubt || s.p.Status == StatusPending || s.cancelling() {
		return false
	}
	return s.o.Object == nil || !slices.Contains([]StripeStatus{StripeSucceeded, StripeProcessing, StripeRequiresCapture}, s.o.Object.Status)
}

func (s *situation) check() {
	t, p, pi := s.t, s.p, s.adoptable()
	if t.ThenSend {
		s.must(s.emptyRecords() && !s.expired() && !p.FirstSubmitAt.IsZero() && testNow.Sub(p.FirstSubmitAt) < 23*time.Hour,
			"a send follows only on complete empty records, within the window and before expiry")
		s.must(t.Status == "" && !t.ClearSubmit && !t.CountTry && t.DeadLetter == "", "a send that follows records nothing")
		return
	}
	s.must(p.Status.CanMove(t.Status), "the state machine allows it")
	s.must(t.Reason != "" || t.Status == StatusSucceeded || t.Status == StatusRequiresCapture || t.Status == StatusRequiresAction || t.Status == StatusFailed, "a status that asks why says why")
	s.checkEvidence(pi)
	s.checkDoubt(pi)
	s.checkBudget()
	s.checkTicket()
	s.checkCancel()
	if p.Status == StatusPending && pi == nil {
		s.must(t.Status == StatusPending || t.Status == StatusNeedsReview, "only Stripe's word on the object ends pending")
	}
	if pi != nil && t.Object != nil {
		s.must(reflect.DeepEqual(*t.Object, *pi), "the object is the one that was seen")
	}
}

// checkEvidence: nothing is claimed of Stripe that Stripe did not show.
func (s *situation) checkEvidence(pi *PaymentIntent) {
	adopted := func(status ...StripeStatus) bool { return pi != nil && slices.Contains(status, pi.Status) }
	lastError := adopted(StripeRequiresPaymentMethod) && pi.LastError != nil
	switch s.t.Status {
	case StatusSucceeded:
		s.must(adopted(StripeSucceeded), "succeeded only by an agreeing object that succeeded")
	case StatusRequiresCapture:
		s.must(adopted(StripeRequiresCapture), "requires_capture only by such an object")
	case StatusRequiresAction:
		s.must(adopted(StripeRequiresAction) || lastError || s.declinedOutright(), "requires_action only by such an object or an authentication decline")
	case StatusPending:
		s.must(adopted(StripeProcessing) || s.p.Status == StatusPending, "pending only by a processing object")
	case StatusFailed:
		s.must(lastError || s.declinedOutright() || s.canceledBehind(pi), "failed only by a decline")
	case StatusCanceled:
		s.must(adopted(StripeCanceled), "canceled only by a canceled object")
	case StatusRejected:
		s.must(s.o.Kind == ObservedInvalid && !s.doubt, "rejected only by a refusal of the only send")
	case StatusExpired:
		s.must(s.absent() && s.expired(), "expired only by proof of absence")
	case StatusStalled:
		s.must(s.o.Kind == ObservedNotSent && !s.doubt && s.p.Tries+1 >= testTriesMax, "stalled only by the last try that did not leave")
	case StatusWaiting:
		if s.t.Reason == ReasonCancelling {
			break // checkCancel
		}
		s.must(!s.doubt && slices.Contains([]ObservationKind{ObservedNotSent, ObservedHeldBack, ObservedAccountUnknown, ObservedForeignAccount, ObservedUnauthorized, ObservedRateLimited, ObservedLocked}, s.o.Kind),
			"waiting only if nothing was executed, ever")
	}
	if pi != nil && s.p.Status != StatusPending {
		want := map[StripeStatus]Status{StripeSucceeded: StatusSucceeded, StripeRequiresCapture: StatusRequiresCapture, StripeRequiresAction: StatusRequiresAction,
			StripeProcessing: StatusPending, StripeCanceled: StatusCanceled, "frozen": StatusNeedsReview}
		if s.canceledBehind(pi) {
			want[StripeCanceled] = StatusFailed
		}
		if w, ok := want[pi.Status]; ok {
			s.must(s.t.Status == w, "an object that agrees is adopted as what it is")
		}
	}
}

// canceledBehind: the object was canceled because it was declined on session.
func (s *situation) canceledBehind(pi *PaymentIntent) bool {
	return pi != nil && pi.Status == StripeCanceled && !s.p.OffSession && (s.cancelling() || pi.LastError == declined || s.p.Failure == declined && pi.LastError == nil)
}

// checkCancel: nobody may still confirm what is recorded as declined, and nothing is lost while that is seen to.
func (s *situation) checkCancel() {
	if o := s.t.Object; s.t.Status == StatusFailed && !s.p.OffSession && o != nil {
		s.must(o.Status == StripeCanceled || o.ID == "", "an on-session decline fails only once its PaymentIntent is canceled")
	}
	if s.t.Reason == ReasonCancelling {
		after := s.p
		after.Status, after.Reason, after.InDoubt, after.Rounds = s.t.Status, s.t.Reason, s.t.InDoubt, s.t.Rounds
		if s.t.Object != nil {
			after.StripePaymentIntent = s.t.Object.ID
		}
		s.must(s.t.Status == StatusWaiting && !s.t.InDoubt && !s.p.OffSession, "cancelling is waiting without a doubt, of on-session payments")
		next := Next(after, testNow)
		s.must(next == ActionCancel || next == ActionRetrieve && s.cancelling(), "the cancel is the next step, and a read comes only after it")
		s.must(s.t.Failure != nil || s.o.Failure == nil, "the decline is kept")
	}
	if !s.cancelling() {
		return
	}
	s.must(!s.t.ThenSend && !s.t.ClearSubmit && s.t.DeadLetter == "", "a declined payment is never sent again")
	s.must(s.t.Status == StatusWaiting && s.t.Reason == ReasonCancelling || s.o.Kind == ObservedObject, "only the object ends the cancelling")
	s.must(s.t.Failure != nil || s.t.Object != nil, "the original decline is kept until Stripe's word takes its place")
	s.must(s.t.Status != StatusFailed || s.t.Failure == declined, "it fails as it was declined")
}

// checkDoubt: a charge that may exist is not forgotten.
func (s *situation) checkDoubt(pi *PaymentIntent) {
	if s.doubt && s.o.Kind != ObservedRecords && pi == nil {
		disagrees := s.t.Status == StatusNeedsReview && (s.o.Kind == ObservedAnswer && s.o.Replayed || s.p.Status == StatusPending && s.o.Kind == ObservedObject)
		nowhere := s.t.Reason == ReasonAccountUnclear && s.o.Kind == ObservedNoRecords && s.p.StripeAccount == ""
		s.must(s.t.Status == StatusUnknown || s.t.Status == StatusPending && s.p.Status == StatusPending || disagrees || nowhere, "in doubt, only records or an adoptable replay settle")
	}
	settled := pi != nil || s.absent()
	if s.doubt && !settled {
		s.must(s.t.InDoubt, "doubt stays until the object is adopted or absence is proven")
	}
	s.must(s.t.Status != StatusUnknown || s.t.InDoubt, "unknown is in doubt")
	if !s.doubt && slices.Contains([]ObservationKind{ObservedUnclear, ObservedKeyConflict, ObservedInUse}, s.o.Kind) && s.p.Status != StatusPending && !s.cancelling() {
		s.must(s.t.Status == StatusUnknown, "a send without a definite answer is unknown")
	}
	left := slices.Contains([]ObservationKind{ObservedNotSent, ObservedHeldBack, ObservedAccountUnknown, ObservedForeignAccount}, s.o.Kind)
	if s.t.ClearSubmit {
		s.must(left && s.p.FirstSubmitAt.IsZero() || s.absent(), "first_submit_at is cleared only if nothing left, ever, or absence is proven")
	}
	if s.emptyRecords() && s.p.LastSubmitAt.IsZero() {
		s.must(s.t.Status == StatusNeedsReview && s.t.InDoubt, "a send at an unknown time is a person's matter")
	} else if s.emptyRecords() && s.doubt && !s.absent() {
		s.must(s.t.Status == StatusUnknown, "an empty listing before the proof of absence settles nothing")
	}
	if s.absent() {
		s.must(s.t.ThenSend || s.t.Status == StatusExpired || s.t.Status == StatusNeedsReview, "absence ends the looking")
	}
	if s.o.Kind == ObservedNoRecords && s.p.Status != StatusPending && !s.cancelling() || s.emptyRecords() && s.t.Status == StatusUnknown && !s.p.LastSubmitAt.IsZero() && testNow.Sub(s.p.LastSubmitAt) >= 24*time.Hour {
		s.must(s.t.AbsentAt.Equal(s.p.AbsentAt) || s.p.AbsentAt.IsZero(), "the first counting listing is remembered")
	}
	if !s.t.AbsentAt.IsZero() {
		s.must(s.t.AbsentAt.Equal(s.p.AbsentAt) || s.t.AbsentAt.Equal(testNow) && s.emptyRecords() && testNow.Sub(s.p.LastSubmitAt) >= 24*time.Hour, "absent_at is when a counting listing was complete")
	}
}

func (s *situation) checkBudget() {
	if s.doubt {
		s.must(!s.t.CountTry && s.t.DeadLetter == "" && s.t.Status != StatusStalled, "an unknown never exhausts its tries")
	}
	s.must(!s.t.CountTry || s.o.Kind == ObservedNotSent && !s.cancelling() || s.o.Kind == ObservedObject && s.cancelling(), "rate limits, locks, keys and our own holds cost no try")
	s.must((s.t.Status == StatusStalled) == (s.t.DeadLetter != ""), "stalled and a dead letter come together")
	if s.o.Kind == ObservedNotSent && !s.doubt && s.p.Status != StatusPending && !s.cancelling() {
		s.must(s.t.CountTry && (s.t.Status == StatusStalled) == (s.p.Tries+1 >= testTriesMax), "the last allowed try is the last, and none before it")
	}
	s.must(s.t.DeadLetter == "" || s.t.DeadLetter == ReasonAttemptsExhausted, "the dead letter says why")
}

func (s *situation) checkTicket() {
	if !s.t.Status.HasTicket() {
		return
	}
	d := s.t.Delay
	s.must(d.AtLeast >= 0 && d.AtLeast <= time.Hour && d.Step >= 0, "the delay is neither negative nor for years")
	begun := s.t.Reason == ReasonCancelling && s.t.Object != nil // the first cancel follows at once
	s.must(begun || d.Step > 0 || d.AtLeast > 0 || d.Long, "nothing is tried again at once, for ever")
	s.must(begun || s.t.Rounds > s.p.Rounds || s.t.Status == StatusPending && s.t.Object != nil, "rounds grow until there is progress")
	if s.t.Status == StatusUnknown && !s.doubt && slices.Contains([]ObservationKind{ObservedUnclear, ObservedKeyConflict, ObservedInUse}, s.o.Kind) {
		s.must(d.Soon, "the first look is soon")
	}
	if s.doubt && s.p.Rounds >= 40 && s.o.Kind != ObservedAnswer {
		s.must(!d.Soon, "an outage is not hammered")
	}
	for _, most := range []bool{false, true} {
		rnd := func(n int64) int64 {
			if most {
				return n - 1
			}
			return 0
		}
		wait := BackoffDefault.After(d, rnd)
		s.must(wait >= d.AtLeast && wait >= 0 && wait <= max(BackoffDefault.Max, d.AtLeast), "the wait is within bounds")
	}
}

func TestDecideExhaustively(t *testing.T) {
	t.Parallel()
	broken, calls := map[string]int{}, 0
	seen := map[Status]int{}
	obs := observations()
	for _, h := range histories() {
		for _, o := range obs {
			calls++
			got, err := Decide(h.p, o, testNow, Policy{TriesMax: testTriesMax})
			if err != nil {
				t.Fatalf("%s; %s: %v", h.name, o.Kind, err)
			}
			s := situation{p: h.p, o: o, t: got, doubt: h.p.InDoubt || h.p.Status == StatusUnknown}
			s.check()
			seen[got.Status]++
			for _, rule := range s.wrong {
				if broken[rule]++; broken[rule] == 1 {
					t.Errorf("broken: %s\n  %s\n  %s, replayed %v, object %+v, failure %+v, found %+v\n  became %+v", rule, h.name, o.Kind, o.Replayed, o.Object, o.Failure, o.Found, got)
				}
			}
		}
	}
	if len(broken) > 0 {
		t.Logf("broken rules: %v", broken)
	}
	for _, s := range Statuses() {
		if s != StatusReceived && seen[s] == 0 {
			t.Errorf("no situation of %d led to %s", calls, s)
		}
	}
	if seen[""] == 0 {
		t.Error("no situation led to another send")
	}
}

func TestDecideRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, status := range TicketStatuses() {
		if got, err := Decide(Payment{Status: status}, Observation{Kind: "nonsense"}, testNow, Policy{TriesMax: 3}); ErrorCode(err) != CodeInternal || got.Status != "" {
			t.Errorf("%s: %+v, %v", status, got, err)
		}
	}
}

// The ways that payments usually take, told one by one.
func TestDecideTellsTheUsualStories(t *testing.T) {
	t.Parallel()
	received := Payment{Intent: Intent{Amount: 9900, Currency: "usd", Customer: "cus_1", OffSession: true}, Status: StatusReceived, StripeAccount: "acct_1", Livemode: true}
	unknown := received
	unknown.Status, unknown.InDoubt, unknown.FirstSubmitAt, unknown.LastSubmitAt = StatusUnknown, true, testNow.Add(-time.Minute), testNow.Add(-time.Minute)
	onSession := received
	onSession.OffSession = false
	cancelling := onSession
	cancelling.Status, cancelling.Reason, cancelling.Failure, cancelling.StripePaymentIntent = StatusWaiting, ReasonCancelling, declined, "pi_1"
	tired := cancelling
	tired.Tries = 2
	objects := map[StripeStatus]*PaymentIntent{}
	for _, pi := range stripeObjects()[:8] {
		objects[pi.Status] = &pi
	}
	rejected := stripeObjects()[8]
	disagreeing := stripeObjects()[14]
	for name, c := range map[string]struct {
		p      Payment
		o      Observation
		status Status
		reason string
	}{
		"charged":                               {received, Observation{Kind: ObservedAnswer, Object: objects[StripeSucceeded]}, StatusSucceeded, ""},
		"declined":                              {received, Observation{Kind: ObservedDecline, Failure: declined}, StatusFailed, "card_declined"},
		"declined for want of authentication":   {received, Observation{Kind: ObservedDecline, Failure: needsSCA}, StatusRequiresAction, "authentication_required"},
		"refused":                               {received, Observation{Kind: ObservedInvalid, Failure: &Failure{Code: "amount_too_small"}}, StatusRejected, ReasonInvalidRequest},
		"timed out":                             {received, Observation{Kind: ObservedUnclear}, StatusUnknown, ReasonNoAnswer},
		"rate limited":                          {received, Observation{Kind: ObservedRateLimited}, StatusWaiting, ReasonRateLimited},
		"our key is wrong":                      {received, Observation{Kind: ObservedUnauthorized}, StatusWaiting, ReasonAuthentication},
		"found":                                 {unknown, Observation{Kind: ObservedRecords, Found: []PaymentIntent{*objects[StripeSucceeded]}}, StatusSucceeded, ""},
		"declined with its customer there":      {onSession, Observation{Kind: ObservedDecline, Failure: declined, Object: &rejected}, StatusWaiting, ReasonCancelling},
		"the same, and it was canceled":         {cancelling, Observation{Kind: ObservedObject, Object: objects[StripeCanceled]}, StatusFailed, "card_declined"},
		"the same, and its customer was faster": {cancelling, Observation{Kind: ObservedObject, Object: objects[StripeSucceeded]}, StatusSucceeded, ""},
		"the same, and Stripe repeats itself":   {cancelling, Observation{Kind: ObservedObject, Object: objects[StripeProcessing], Replayed: true}, StatusWaiting, ReasonCancelling},
		"the same, and nobody knows":            {cancelling, Observation{Kind: ObservedUnclear}, StatusWaiting, ReasonCancelling},
		"the same, and it is refused for ever":  {tired, Observation{Kind: ObservedObject, Object: &rejected}, StatusNeedsReview, ReasonCancelRefused},
		"found declined":                        {unknown, Observation{Kind: ObservedRecords, Found: []PaymentIntent{rejected}}, StatusFailed, "card_declined"},
		"found twice":                           {unknown, Observation{Kind: ObservedRecords, Found: []PaymentIntent{*objects[StripeSucceeded], *objects[StripeSucceeded]}}, StatusNeedsReview, ReasonSeveral},
		"found with other money":                {unknown, Observation{Kind: ObservedRecords, Found: []PaymentIntent{disagreeing}}, StatusNeedsReview, "stripe_disagrees: amount"},
		"re-sent and declined":                  {unknown, Observation{Kind: ObservedDecline, Failure: declined}, StatusUnknown, ReasonConfirming},
		"re-sent and charged":                   {unknown, Observation{Kind: ObservedAnswer, Object: objects[StripeSucceeded]}, StatusUnknown, ReasonConfirming},
		"re-sent and replayed":                  {unknown, Observation{Kind: ObservedAnswer, Object: objects[StripeSucceeded], Replayed: true}, StatusSucceeded, ""},
		"re-sent and refused":                   {unknown, Observation{Kind: ObservedInvalid}, StatusUnknown, ReasonLookingUp},
		"cannot be looked up":                   {unknown, Observation{Kind: ObservedNoRecords}, StatusUnknown, ReasonLookingUp},
	} {
		c.o.Account = testAccount
		got, err := Decide(c.p, c.o, testNow, Policy{TriesMax: 3})
		if err != nil || got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%s: %s %q, %v; want %s %q", name, got.Status, got.Reason, err, c.status, c.reason)
		}
		if c.o.Failure != nil && got.Status.Final() && got.Failure != c.o.Failure {
			t.Errorf("%s: Stripe's words are lost", name)
		}
	}
	if got, _ := Decide(unknown, Observation{Kind: ObservedRecords, Account: testAccount}, testNow, Policy{TriesMax: 3}); !got.ThenSend {
		t.Errorf("nothing was found a minute after the send: %+v", got)
	}
}

// A payment in doubt is looked up again and again with nothing found: it must end, and not before absence is proven.
func TestDecideProvesAbsenceAndThenEnds(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Time{{}, testNow.Add(time.Hour)} {
		p := Payment{Intent: Intent{ExpiresAt: expires}, Status: StatusUnknown, InDoubt: true, FirstSubmitAt: testNow, LastSubmitAt: testNow}
		now, sends := testNow, 0
		for looks := 1; ; looks++ {
			got, err := Decide(p, Observation{Kind: ObservedRecords, Account: testAccount}, now, Policy{TriesMax: 3})
			if err != nil || looks > 2000 {
				t.Fatalf("after %d looks: %+v, %v", looks, got, err)
			}
			if got.ThenSend { // the re-send times out again
				sends, p.LastSubmitAt = sends+1, now
				if now.Sub(testNow) >= 23*time.Hour || p.Expired(now) {
					t.Fatalf("sent %v after the first send", now.Sub(testNow))
				}
				got, _ = Decide(p, Observation{Kind: ObservedUnclear}, now, Policy{TriesMax: 3})
			}
			if !got.Status.HasTicket() {
				want := StatusNeedsReview
				if !expires.IsZero() {
					want = StatusExpired
				}
				since := now.Sub(p.LastSubmitAt)
				if got.Status != want || got.Reason != ReasonAbsent || !got.ClearSubmit || since < 25*time.Hour || since > 27*time.Hour || sends == 0 {
					t.Errorf("ended %v after the last of %d sends: %+v", since, sends, got)
				}
				break
			}
			p.Status, p.Reason, p.InDoubt, p.AbsentAt, p.Rounds = got.Status, got.Reason, got.InDoubt, got.AbsentAt, got.Rounds
			now = now.Add(BackoffDefault.After(got.Delay, func(n int64) int64 { return n - 1 }))
		}
	}
}

// A PaymentIntent that Stripe never finishes must not keep its payment looking for ever.
func TestDecideEndsWhatStripeLeftHalfDone(t *testing.T) {
	t.Parallel()
	p := Payment{Status: StatusUnknown, InDoubt: true, FirstSubmitAt: testNow, LastSubmitAt: testNow}
	o := Observation{Kind: ObservedRecords, Found: []PaymentIntent{{ID: "pi_1", Status: StripeRequiresConfirmation}}}
	for after, want := range map[time.Duration]Status{time.Minute: StatusUnknown, 24*time.Hour - 1: StatusUnknown, 24 * time.Hour: StatusNeedsReview} {
		if got, _ := Decide(p, o, testNow.Add(after), Policy{TriesMax: 3}); got.Status != want || !got.InDoubt || got.Reason != ReasonConfirming {
			t.Errorf("after %v: %+v", after, got)
		}
	}
}

func TestDisagreementNamesTheField(t *testing.T) {
	t.Parallel()
	p := Payment{Intent: Intent{Amount: 9900, Currency: "usd", Customer: "cus_1"}, Status: StatusPending, Reason: ReasonProcessing, StripePaymentIntent: "pi_1", StripeAccount: "acct_1", Livemode: true}
	good := stripeObjects()[0]
	for want, change := range map[string]func(*PaymentIntent, *Account){
		"account":  func(_ *PaymentIntent, a *Account) { a.ID = "acct_2" },
		"livemode": func(pi *PaymentIntent, a *Account) { pi.Livemode, a.Livemode = false, false },
		"amount":   func(pi *PaymentIntent, _ *Account) { pi.Amount = 1 },
		"currency": func(pi *PaymentIntent, _ *Account) { pi.Currency = "eur" },
		"customer": func(pi *PaymentIntent, _ *Account) { pi.Customer = "cus_2" },
	} {
		pi, account := good, testAccount
		change(&pi, &account)
		got, _ := Decide(p, Observation{Kind: ObservedObject, Account: account, Object: &pi}, testNow, Policy{TriesMax: 3})
		if got.Status != StatusNeedsReview || !strings.HasSuffix(got.Reason, ": "+want) || got.Object == nil || !got.InDoubt {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// With ResubmitAfterAbsent, what would be left to a person for nothing but its proven absence is submitted anew, and nothing else changes.
func TestResubmitAfterAbsent(t *testing.T) {
	t.Parallel()
	resubmitted := 0
	for _, h := range histories() {
		for _, o := range observations() {
			if o.Kind != ObservedRecords {
				continue
			}
			asked, _ := Decide(h.p, o, testNow, Policy{TriesMax: testTriesMax})
			got, err := Decide(h.p, o, testNow, Policy{TriesMax: testTriesMax, ResubmitAfterAbsent: true})
			if err != nil {
				t.Fatal(err)
			}
			if asked.Status != StatusNeedsReview || asked.Reason != ReasonAbsent || asked.InDoubt {
				if !reflect.DeepEqual(got, asked) {
					t.Fatalf("%s: the setting makes %+v of %+v", h.name, got, asked)
				}
				continue
			}
			resubmitted++
			p := afterwards(h.p, got)
			if got.Status != StatusWaiting || got.Reason != ReasonAbsent || !p.FirstSubmitAt.IsZero() || p.StripePaymentIntent != "" || Next(p, testNow) != ActionSend || got.Quiet(h.p) {
				t.Fatalf("%s: %+v", h.name, got)
			}
		}
	}
	if resubmitted == 0 {
		t.Error("nothing was submitted again")
	}
}

// While nothing can be sent, what could not be sent costs nobody a try, however few are left; nothing else changes.
func TestDecideWithoutTries(t *testing.T) {
	t.Parallel()
	spared, observed := 0, observations()
	observed = slices.DeleteFunc(observed, func(o Observation) bool {
		return o.Kind != ObservedNotSent && o.Kind != ObservedHeldBack && o.Kind != ObservedUnauthorized && o.Kind != ObservedUnclear
	})
	for _, h := range histories() {
		for _, o := range observed {
			normal, err := Decide(h.p, o, testNow, Policy{TriesMax: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decide(h.p, o, testNow, Policy{TriesMax: 1 << 30, NoTries: true})
			if err != nil {
				t.Fatal(err)
			}
			if o.Kind == ObservedNotSent && normal.CountTry {
				spared++
				normal.CountTry = false
				if last, _ := Decide(h.p, o, testNow, Policy{TriesMax: 1, NoTries: true}); !reflect.DeepEqual(last, got) {
					t.Fatalf("%s; %s: the last try became %+v", h.name, o.Kind, last)
				}
			}
			if !reflect.DeepEqual(got, normal) {
				t.Fatalf("%s; %s: became %+v, want %+v", h.name, o.Kind, got, normal)
			}
		}
	}
	if spared == 0 {
		t.Error("no situation spared a try")
	}
}
