package payments

import (
	"errors"
	"strings"
	"testing"
)

// TestSucceededByHandNamesWhatWasCharged: a success that a person states has a PaymentIntent and its money, and not against what Stripe has named.
func TestSucceededByHandNamesWhatWasCharged(t *testing.T) {
	t.Parallel()
	unknown := Payment{Intent: Intent{Amount: 9900}, Status: StatusUnknown, InDoubt: true}
	held := Payment{Intent: Intent{Amount: 9900}, Status: StatusRequiresCapture, StripePaymentIntent: "pi_1", StripeCharge: "ch_1"}
	several := Payment{Intent: Intent{Amount: 9900}, Status: StatusNeedsReview, InDoubt: true, StripePaymentIntent: "pi_1", StripeCharge: "ch_1", AmountCaptured: 5000}
	for name, c := range map[string]struct {
		p      Payment
		d      Decision
		want   PaymentIntent
		refuse string
	}{
		"none is known":             {unknown, Decision{As: StatusSucceeded}, PaymentIntent{}, "is required"},
		"named":                     {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2"}, PaymentIntent{ID: "pi_2", AmountReceived: 9900}, ""},
		"a charge":                  {unknown, Decision{As: StatusSucceeded, PaymentIntent: "ch_2"}, PaymentIntent{}, "must be the id"},
		"a secret":                  {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2/x"}, PaymentIntent{}, "must be the id"},
		"endless":                   {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_" + strings.Repeat("2", 300)}, PaymentIntent{}, "must be the id"},
		"captured there":            {held, Decision{As: StatusSucceeded}, PaymentIntent{ID: "pi_1", LatestCharge: "ch_1", AmountReceived: 9900}, ""},
		"another than Stripe's":     {held, Decision{As: StatusSucceeded, PaymentIntent: "pi_2"}, PaymentIntent{}, "resolve it as unknown"},
		"Stripe said how much":      {several, Decision{As: StatusSucceeded, PaymentIntent: "pi_1"}, PaymentIntent{ID: "pi_1", LatestCharge: "ch_1", AmountReceived: 5000}, ""},
		"the other of several":      {several, Decision{As: StatusSucceeded, PaymentIntent: "pi_2"}, PaymentIntent{ID: "pi_2", AmountReceived: 9900}, ""},
		"for what was not charged":  {several, Decision{As: StatusUnknown, PaymentIntent: "pi_1"}, PaymentIntent{}, "leave it out"},
		"an id with nothing behind": {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_"}, PaymentIntent{}, "must be the id"},
	} {
		got, err := Resolve(c.p, c.d, someone, testNow)
		if c.refuse != "" {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != "payment_intent" || !strings.Contains(e.Message, c.refuse) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Object == nil || got.Object.ID != c.want.ID || got.Object.LatestCharge != c.want.LatestCharge || got.Object.AmountReceived != c.want.AmountReceived {
			t.Errorf("%s: %+v, %v", name, got.Object, err)
		}
	}
}

// TestAPersonSaysHowMuchWasCaptured: after a partial capture it is less than all, never more, and never less than Stripe has shown.
func TestAPersonSaysHowMuchWasCaptured(t *testing.T) {
	t.Parallel()
	unknown := Payment{Intent: Intent{Amount: 9900}, Status: StatusUnknown, InDoubt: true}
	shown := Payment{Intent: Intent{Amount: 9900}, Status: StatusNeedsReview, InDoubt: true, StripePaymentIntent: "pi_1", AmountCaptured: 5000}
	for name, c := range map[string]struct {
		p      Payment
		d      Decision
		want   int64
		refuse string
	}{
		"all of it":                   {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2"}, 9900, ""},
		"a part":                      {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: 1}, 1, ""},
		"the whole, said":             {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: 9900}, 9900, ""},
		"too much":                    {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: 9901}, 0, "from 1 to 9900"},
		"less than nothing":           {unknown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: -1}, 0, "from 1 to 9900"},
		"less than Stripe has shown":  {shown, Decision{As: StatusSucceeded, AmountCaptured: 4999}, 0, "at least 5000"},
		"more than Stripe has shown":  {shown, Decision{As: StatusSucceeded, PaymentIntent: "pi_1", AmountCaptured: 6000}, 6000, ""},
		"of another than Stripe's":    {shown, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: 100}, 100, ""},
		"of what was not charged":     {shown, Decision{As: StatusUnknown, AmountCaptured: 100}, 0, "leave it out"},
		"less than what was refunded": {Payment{Intent: unknown.Intent, Status: StatusUnknown, AmountRefunded: 70}, Decision{As: StatusSucceeded, PaymentIntent: "pi_2", AmountCaptured: 60}, 0, "at least 70"},
	} {
		got, err := Resolve(c.p, c.d, someone, testNow)
		if c.refuse != "" {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != "amount_captured" || !strings.Contains(e.Message, c.refuse) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Object == nil || got.Object.AmountReceived != c.want {
			t.Errorf("%s: %+v, %v", name, got.Object, err)
		}
	}
}

// TestASuccessIsHeldAgainstStripe: what was said to be charged and was not, or another charge of it, is noticed when Stripe is listed.
func TestASuccessIsHeldAgainstStripe(t *testing.T) {
	t.Parallel()
	p := Payment{Intent: Intent{Kind: KindCharge}, Status: StatusSucceeded, StripePaymentIntent: "pi_1"}
	for _, c := range []struct {
		id     string
		status StripeStatus
		want   bool
	}{
		{"pi_1", StripeSucceeded, false}, {"pi_1", StripeCanceled, true}, {"pi_1", StripeRequiresCapture, true}, {"pi_1", StripeRequiresPaymentMethod, true},
		{"pi_2", StripeSucceeded, true}, {"pi_2", StripeProcessing, true}, {"pi_2", StripeCanceled, false}, {"pi_2", StripeRequiresPaymentMethod, false},
	} {
		if got := (StripeObject{Intent: PaymentIntent{ID: c.id, Status: c.status}}).Contradicts(p); got != c.want {
			t.Errorf("%s %s: %t", c.id, c.status, got)
		}
	}
}
