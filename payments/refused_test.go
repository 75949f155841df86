package payments

import (
	"testing"
	"time"
)

// TestRefusedReadingsAreTold: while Stripe refuses our key for reading its records nothing of it settles, and only a person can mend that. So the reason
// says it, of charges and of what was asked of them, and changes nothing else.
func TestRefusedReadingsAreTold(t *testing.T) {
	t.Parallel()
	doubt := func(p *Payment) {
		p.Status, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = StatusUnknown, true, testNow.Add(-time.Hour), testNow.Add(-time.Hour)
	}
	pending := func(p *Payment) { p.Status, p.Reason = StatusPending, ReasonProcessing }
	first := func(p *Payment) { p.Status = StatusReceived }
	for _, c := range []struct {
		kind   Kind
		did    Action
		make   func(*Payment)
		usual  string // the reason when it could not be read for another cause
		status Status
	}{
		{KindCharge, ActionLook, doubt, ReasonLookingUp, StatusUnknown},
		{KindCharge, ActionRetrieve, pending, ReasonProcessing, StatusPending},
		{KindRefund, ActionLookRefunds, first, ReasonLookingUp, StatusWaiting},
		{KindRefund, ActionLookRefunds, doubt, ReasonLookingUp, StatusUnknown},
		{KindRefund, ActionRetrieveRefund, pending, ReasonProcessing, StatusPending},
		{KindCapture, ActionRetrieve, doubt, ReasonLookingUp, StatusUnknown},
		{KindCancel, ActionRetrieve, doubt, ReasonLookingUp, StatusUnknown},
	} {
		p := policyFollowUp(c.kind)
		p.StripeAccount, p.Livemode = testAccount.ID, true
		c.make(&p)
		decide := func(o Observation) Transition {
			o.Kind, o.Account = ObservedNoRecords, testAccount
			t1, err := Transition{}, error(nil)
			if c.kind == KindCharge {
				t1, err = Decide(p, o, testNow, policyRules)
			} else {
				t1, err = DecideFollowUp(p, FollowUpState{Target: policyCharge(c.kind), StripeRefund: "re_1"}, c.did, o, testNow, policyRules)
			}
			if err != nil {
				t.Fatal(err)
			}
			return t1
		}
		usual := decide(Observation{HTTPStatus: 500, Trouble: true})
		if usual.Status != c.status || usual.Reason != c.usual {
			t.Errorf("%s %s, answered 500: %s %s", c.kind, c.did, usual.Status, usual.Reason)
		}
		for _, o := range []Observation{{HTTPStatus: 401}, {HTTPStatus: 403}, {HTTPStatus: 403, LacksRight: true}} {
			got := decide(o)
			if got.Reason != ReasonAuthentication {
				t.Errorf("%s %s, answered %d: %s", c.kind, c.did, o.HTTPStatus, got.Reason)
			}
			if got.Reason = usual.Reason; got.Status != usual.Status || got.InDoubt != usual.InDoubt || got.Rounds != usual.Rounds || got.AbsentAt != usual.AbsentAt {
				t.Errorf("%s %s, answered %d: more than the reason changes: %+v, usually %+v", c.kind, c.did, o.HTTPStatus, got, usual)
			}
		}
	}
	refused := policyFollowUp(KindCapture)
	doubt(&refused)
	refused.StripeAccount, refused.Livemode, refused.Reason = testAccount.ID, true, ReasonInvalidRequest
	got, err := DecideFollowUp(refused, FollowUpState{Target: policyCharge(KindCapture)}, ActionRetrieve, Observation{Kind: ObservedNoRecords, Account: testAccount, HTTPStatus: 403},
		testNow, policyRules)
	if err != nil || got.Reason != ReasonInvalidRequest {
		t.Errorf("that a capture was refused is forgotten: %+v, %v", got, err)
	}
}

// TestRefundOfAPaymentIntentThatStripeDoesNotKnow: whether anything was given back is not known then. So a person decides, nothing is sent, and what the person
// says ends it; another look shows the same.
func TestRefundOfAPaymentIntentThatStripeDoesNotKnow(t *testing.T) {
	t.Parallel()
	charge := chargeIn(StatusSucceeded)
	for _, h := range followUpHistories(KindRefund) {
		did, s := ActionLookRefunds, FollowUpState{Target: charge}
		o := Observation{Kind: ObservedObject, Account: testAccount}
		got, err := DecideFollowUp(h.p, s, did, o, testNow, policyRules)
		if err != nil || got.Status != StatusNeedsReview || got.Reason != ReasonMissingAtStripe || got.ThenSend || !got.InDoubt || got.Target != nil {
			t.Fatalf("%s: %+v, %v", h.name, got, err)
		}
		o.Account = Account{ID: "acct_2", Livemode: true}
		if got, err = DecideFollowUp(h.p, s, did, o, testNow, policyRules); err != nil || got.ThenSend || !got.Status.HasTicket() {
			t.Fatalf("%s, of another account: %+v, %v", h.name, got, err)
		}
	}
	p := followUpHistories(KindRefund)[0].p
	p.Status, p.Reason, p.InDoubt = StatusNeedsReview, ReasonMissingAtStripe, true
	op := Operation{Actor: "ann", Reason: "test data was deleted"}
	for _, as := range []Status{StatusFailed, StatusCanceled} {
		if got, err := Resolve(p, Decision{As: as}, op, testNow); err != nil || got.Status != as || got.Target != nil {
			t.Errorf("as %s: %+v, %v", as, got, err)
		}
	}
	again, err := Resolve(p, Decision{As: StatusUnknown}, op, testNow)
	if err != nil || again.Status != StatusUnknown {
		t.Fatalf("%+v, %v", again, err)
	}
	p.Status = again.Status
	if act, _ := NextFollowUp(p, FollowUpState{Target: charge}); act != ActionLookRefunds {
		t.Errorf("then %s", act)
	}
}
