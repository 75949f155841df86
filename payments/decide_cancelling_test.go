package payments

import "testing"

// TestCancelHasItsOwnTries: a charge that had used up all its tries but one is declined on session; its cancel is sent again as often as any other's.
func TestCancelHasItsOwnTries(t *testing.T) {
	t.Parallel()
	policy := Policy{TriesMax: 3}
	account := Account{ID: "acct_1"}
	open := PaymentIntent{ID: "pi_1", Status: StripeRequiresPaymentMethod, Amount: 9900, Currency: "usd", LastError: declined}
	p := Payment{Intent: Intent{Amount: 9900, Currency: "usd"}, Status: StatusWaiting, Reason: ReasonNotSent, StripeAccount: account.ID, Tries: policy.TriesMax - 1}
	decide := func(o Observation) {
		t.Helper()
		got, err := Decide(p, o, testNow, policy)
		if err != nil {
			t.Fatal(err)
		}
		tries := p.Tries
		p = afterwards(p, got)
		if got.Object != nil {
			p.StripePaymentIntent = got.Object.ID
		}
		if p.Tries = tries; got.ResetTries {
			p.Tries = 0
		}
		if got.CountTry {
			p.Tries++
		}
	}
	decide(Observation{Kind: ObservedDecline, Account: account, Object: &open, Failure: declined})
	if !p.Cancelling() || p.Tries != 0 {
		t.Fatalf("declined: %+v", p)
	}
	for try := 1; try < policy.TriesMax; try++ {
		decide(Observation{Kind: ObservedObject, Account: account, Object: &open})
		if !p.Cancelling() || p.Tries != try {
			t.Fatalf("not canceled, %d: %+v", try, p)
		}
	}
	decide(Observation{Kind: ObservedObject, Account: account, Object: &open})
	if p.Status != StatusNeedsReview || p.Reason != ReasonCancelRefused {
		t.Errorf("a person is never asked: %+v", p)
	}
}
