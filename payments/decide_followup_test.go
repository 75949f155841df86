package payments

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// followUpHistory is a follow-up as its owner may find it.
type followUpHistory struct {
	name string
	p    Payment
}

func followUpHistories(kind Kind) (list []followUpHistory) {
	amount := int64(500)
	if kind == KindCancel {
		amount = 0
	}
	base := Payment{
		Intent: Intent{TenantID: "acme", IdempotencyKey: "again-1", Kind: kind, PaymentID: goodPaymentID, Amount: amount, Currency: "usd"},
		ID:     NewID("acme", "again-1"), StripeAccount: testAccount.ID, Livemode: true, StripePaymentIntent: "pi_1",
	}
	for _, s := range TicketStatuses() {
		for _, tries := range []int{0, testTriesMax - 1} {
			for _, rounds := range []int{0, 1, 9} {
				for _, sent := range []time.Duration{0, time.Hour, 22 * time.Hour, 26 * time.Hour} {
					for _, absent := range []time.Duration{0, 2 * time.Hour} {
						for _, reason := range []string{"", ReasonInvalidRequest} {
							p := base
							p.Status, p.Tries, p.Rounds, p.InDoubt = s, tries, rounds, s == StatusUnknown && sent > 0
							if sent > 0 {
								p.FirstSubmitAt, p.LastSubmitAt = testNow.Add(-sent), testNow.Add(-sent)
							}
							if absent > 0 {
								p.AbsentAt = testNow.Add(-absent)
							}
							if p.Reason = reason; reason != "" {
								p.Failure = &Failure{Code: "amount_too_large"}
							}
							list = append(list, followUpHistory{fmt.Sprint(kind, " ", s, " tries ", tries, " rounds ", rounds, " sent ", sent, " absent ", absent, " ", reason), p})
							if p.InDoubt = true; sent > 0 && (s == StatusReceived || s == StatusWaiting) { // its owner died
								list = append(list, followUpHistory{fmt.Sprint(kind, " ", s, ", owner died, sent ", sent), p})
							}
						}
					}
				}
			}
		}
	}
	return list
}

func followUpStates() (list []FollowUpState) {
	for _, s := range Statuses() {
		for _, pi := range []string{"pi_1", ""} {
			for _, other := range []bool{false, true} { // owned or in doubt
				charge := chargeIn(s)
				charge.StripePaymentIntent, charge.Owned, charge.InDoubt = pi, other, other && s.HasTicket()
				charge.StripeAccount, charge.Livemode = testAccount.ID, true
				for _, ahead := range []bool{false, true} {
					for _, refund := range []string{"", "re_1"} {
						list = append(list, FollowUpState{Target: charge, StripeRefund: refund, Ahead: ahead})
					}
				}
			}
		}
	}
	return list
}

// TestNextFollowUpExhaustively holds every history against every state of the charge.
func TestNextFollowUpExhaustively(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		for _, h := range followUpHistories(kind) {
			for _, s := range followUpStates() {
				act, tr := NextFollowUp(h.p, s)
				p := h.p
				where := func() string {
					return fmt.Sprintf("%s; its charge is %s (%q, owned %v), ahead %v", h.name, s.Target.Status, s.Target.StripePaymentIntent, s.Target.Owned, s.Ahead)
				}
				post := act == ActionCapture || act == ActionCancel || act == ActionRefund
				doubt := p.InDoubt || p.Status == StatusUnknown
				switch {
				case kind == KindCancel && !doubt && p.Status.HasTicket() && p.Status != StatusPending && s.Target.unsent() && (act != ActionSettle || tr.Status != StatusSucceeded):
					t.Fatalf("%s: %s waits for a charge that waits for it", where(), act)
				case post && (doubt || s.Ahead || s.Target.unsettled()):
					t.Fatalf("%s: %s without a look, out of turn, or of an open charge", where(), act)
				case act == ActionRefund:
					t.Fatalf("%s: a refund is looked for before it is sent", where())
				case act == ActionRest:
					t.Fatalf("%s: rests with a ticket", where())
				case p.Status == StatusPending && act != ActionRetrieveRefund && act != ActionLookRefunds:
					t.Fatalf("%s: %s of what Stripe is processing", where(), act)
				case act == ActionSettle:
					checkFollowUp(t, where, p, tr)
					if doubt && tr.Status.Final() && !s.Target.Status.Final() && !s.Target.unsent() {
						t.Fatalf("%s: %s without evidence", where(), tr.Status)
					}
				}
			}
		}
	}
	if act, _ := NextFollowUp(Payment{Intent: Intent{Kind: KindRefund}, Status: StatusStalled}, FollowUpState{}); act != ActionRest {
		t.Error("a stalled refund is worked on")
	}
	if Next(Payment{Intent: Intent{Kind: KindRefund}, Status: StatusReceived}, testNow) != ActionFollowUp {
		t.Error("Next decides about a refund")
	}
}

var chargesInAll = func() (list []Payment) {
	for _, s := range Statuses() {
		list = append(list, chargeIn(s))
	}
	return list
}()

// checkFollowUp holds what is true of every transition of a follow-up.
func checkFollowUp(t *testing.T, where func() string, p Payment, tr Transition) {
	must := func(ok bool, what string) {
		if !ok {
			t.Fatalf("%s: %s: %+v", where(), what, tr)
		}
	}
	doubt := p.InDoubt || p.Status == StatusUnknown
	must(p.Status.CanMove(tr.Status), "not in the state machine")
	must(tr.Object == nil, "a follow-up adopts no PaymentIntent")
	must((tr.Status == StatusUnknown) == (tr.InDoubt && tr.Status.HasTicket() && tr.Status != StatusPending), "unknown is in doubt, and nothing else with a ticket is")
	must(!tr.ClearSubmit || p.FirstSubmitAt.IsZero() || tr.Reason == ReasonAbsent, "the time of another owner's send is erased")
	must(tr.Status != StatusStalled || !doubt && tr.DeadLetter != "", "stalled while in doubt, or without a dead letter")
	must(tr.Status.HasTicket() || tr.Delay == Delay{}, "a delay without a ticket")
	must(!tr.Status.HasTicket() || tr.Rounds > 0, "rounds are not counted")
	must(tr.Status != StatusExpired && tr.Status != StatusRequiresAction && tr.Status != StatusRequiresCapture, "no status of follow-ups")
	must(tr.Refund == nil || p.Kind == KindRefund, "a refund of something else")
	must(tr.Status != StatusRejected || tr.Reason == ReasonInvalidRequest, "rejected for another reason")
	switch {
	case p.Kind == KindRefund && tr.Status == StatusSucceeded:
		to, err := tr.Target(chargeIn(StatusSucceeded))
		must(err == nil && to.Refunded == p.Amount && to.Status == StatusSucceeded && to.Object == nil, "a refund that succeeded does not count")
	case p.Kind == KindRefund:
		must(tr.Target == nil, "a refund moves its charge")
	}
	if tr.Target != nil && p.Kind != KindRefund {
		for _, charge := range chargesInAll {
			s := charge.Status
			to, err := tr.Target(charge)
			moved := ErrorCode(err) == CodeTargetMoved
			must(err == nil || moved, "the charge's change fails")
			must(moved || to.Status == s || s.CanMove(to.Status) || s.Final() && to.Status == StatusSucceeded, "the charge cannot move so")
			must(moved || to.Refunded == 0, "a capture refunds")
		}
	}
}

func refundOf(p Payment, s StripeRefundStatus) *Refund {
	return &Refund{ID: "re_1", Status: s, Amount: p.Amount, Currency: "usd", PaymentIntent: "pi_1"}
}

// followUpObservations is all that may be seen.
func followUpObservations(p Payment) (list []Observation) {
	var objects []*PaymentIntent
	for _, s := range []StripeStatus{StripeSucceeded, StripeProcessing, StripeRequiresCapture, StripeRequiresAction, StripeRequiresConfirmation,
		StripeRequiresPaymentMethod, StripeCanceled, "of_later_times"} {
		for _, received := range []int64{0, p.Amount, 777} {
			objects = append(objects, &PaymentIntent{ID: "pi_1", Status: s, Amount: 1000, AmountReceived: received, Currency: "usd", Customer: "cus_1", Livemode: true})
		}
	}
	other := *objects[0]
	other.ID = "pi_2"
	objects = append(objects, nil, &PaymentIntent{}, &other)
	var refunds []*Refund
	for _, s := range []StripeRefundStatus{RefundPending, RefundRequiresAction, RefundSucceeded, RefundFailed, RefundCanceled, "of_later_times"} {
		refunds = append(refunds, refundOf(p, s))
	}
	much := refundOf(p, RefundSucceeded)
	much.Amount++
	foreign := refundOf(p, RefundSucceeded)
	foreign.PaymentIntent = "pi_2"
	refunds = append(refunds, nil, &Refund{}, much, foreign)
	for _, kind := range FollowUpObservationKinds() {
		for _, account := range []Account{testAccount, {ID: "acct_2", Livemode: true}, {}} {
			for _, replayed := range []bool{false, true} {
				o := Observation{Kind: kind, Account: account, Replayed: replayed, RetryAfter: time.Second}
				switch kind {
				case ObservedAnswer, ObservedObject, ObservedDecline:
					for _, pi := range objects {
						o.Object, o.Failure = pi, &Failure{Code: "card_declined"}
						list = append(list, o)
					}
				case ObservedRefund:
					for _, r := range refunds {
						o.Refund = r
						list = append(list, o)
					}
				case ObservedRecords:
					list = append(list, o)
					for _, r := range refunds {
						if r != nil {
							o.Refunds = []Refund{*r}
							list = append(list, o)
						}
					}
					o.Refunds = make([]Refund, 2)
					list = append(list, o)
				case ObservedInvalid:
					o.Failure = &Failure{Code: "invalid"}
					list = append(list, o)
				default:
					list = append(list, o)
				}
			}
		}
	}
	return list
}

// TestDecideFollowUpExhaustively holds every history, state and observation of every call against what must be true of all of them.
func TestDecideFollowUpExhaustively(t *testing.T) {
	t.Parallel()
	posts := map[Kind]Action{KindCapture: ActionCapture, KindCancel: ActionCancel, KindRefund: ActionRefund}
	reads := map[Kind][]Action{KindCapture: {ActionRetrieve}, KindCancel: {ActionRetrieve}, KindRefund: {ActionLookRefunds, ActionRetrieveRefund}}
	for _, kind := range followUpKinds {
		states := followUpStates()
		for n, h := range followUpHistories(kind) {
			p := h.p
			doubt := p.InDoubt || p.Status == StatusUnknown
			for m, o := range followUpObservations(p) {
				s := states[(n*31+m*7)%len(states)] // each meets each over the whole
				for _, did := range append([]Action{posts[kind]}, reads[kind]...) {
					if p.Status == StatusPending && (kind != KindRefund || did == ActionRefund) {
						continue // nothing but a refund is pending, and it is never sent again
					}
					where := func() string {
						return fmt.Sprintf("%s; %s of a charge that is %s, ahead %v, refund %q, shows %s %+v %+v %+v from %s", h.name, did, s.Target.Status, s.Ahead, s.StripeRefund,
							o.Kind, o.Object, o.Refund, o.Refunds, o.Account.ID)
					}
					tr, err := DecideFollowUp(p, s, did, o, testNow, Policy{TriesMax: testTriesMax})
					if err != nil {
						t.Fatalf("%s: %v", where(), err)
					}
					if tr.ThenSend {
						lookedWell := o.Kind == ObservedRecords && len(o.Refunds) == 0 && o.Account == testAccount
						sawOpen := o.Kind == ObservedObject && o.Object != nil && o.Object.Status != StripeSucceeded && o.Object.Status != StripeCanceled
						switch {
						case did == posts[kind]:
							t.Fatalf("%s: sent again without a look", where())
						case kind == KindRefund && (!lookedWell || doubt && (s.Ahead || !s.Target.taken() || !testNow.Before(p.FirstSubmitAt.Add(ResendWindow)))):
							t.Fatalf("%s: a refund is sent again", where())
						case kind != KindRefund && (!sawOpen || s.Ahead):
							t.Fatalf("%s: sent again", where())
						}
						continue
					}
					checkFollowUp(t, where, p, tr)
					evidence := o.Kind == ObservedAnswer || o.Kind == ObservedObject || o.Kind == ObservedRefund || o.Kind == ObservedRecords
					if doubt && tr.Status.Final() && !evidence {
						t.Fatalf("%s: %s without evidence (I7)", where(), tr.Status)
					}
					if kind == KindRefund && doubt && did == ActionRefund && o.Kind == ObservedRefund && !o.Replayed && tr.Status != StatusUnknown {
						t.Fatalf("%s: %s, and nobody has looked whether an earlier one was made", where(), tr.Status)
					}
				}
			}
		}
	}
}

func TestDecideFollowUpRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	p := followUpHistories(KindRefund)[0].p
	for name, err := range map[string]error{
		"an observation": func() error {
			_, err := DecideFollowUp(p, FollowUpState{}, ActionRefund, Observation{Kind: "x"}, testNow, Policy{})
			return err
		}(),
		"a charge": func() error {
			_, err := DecideFollowUp(chargeIn(StatusReceived), FollowUpState{}, ActionRefund, Observation{Kind: ObservedUnclear}, testNow, Policy{})
			return err
		}(),
		"another kind's call": func() error {
			_, err := DecideFollowUp(p, FollowUpState{}, ActionCapture, Observation{Kind: ObservedUnclear}, testNow, Policy{})
			return err
		}(),
		"a follow-up in Decide": func() error {
			_, err := Decide(p, Observation{Kind: ObservedUnclear}, testNow, Policy{})
			return err
		}(),
	} {
		if ErrorCode(err) != CodeInternal || !strings.Contains(err.Error(), "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
