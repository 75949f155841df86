package payments

import "testing"

// A follow-up that a rewind brought back, and whose charge ended without ever having a PaymentIntent, can be read nowhere: a person hears of it.
func TestForgottenFollowUpWithoutAPaymentIntent(t *testing.T) {
	for _, kind := range []Kind{KindCapture, KindRefund} {
		p := Payment{Intent: Intent{Kind: kind, Amount: 5}, Status: StatusUnknown, InDoubt: true}
		act, got := NextFollowUp(p, FollowUpState{Target: Payment{Status: StatusExpired}})
		if act != ActionSettle || got.Status != StatusNeedsReview {
			t.Errorf("%s: %s, %s; want it to wait for a person", kind, act, got.Status)
		}
		if act, got = NextFollowUp(p, FollowUpState{Target: Payment{Status: StatusUnknown}}); act == ActionSettle && got.Status == StatusNeedsReview {
			t.Errorf("%s: ended while its charge is still to be found out about", kind)
		}
	}
}
