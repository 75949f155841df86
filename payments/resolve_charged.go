package payments

import "strings"

// paymentIntentMax is how long the id of a PaymentIntent is at most, in bytes.
const paymentIntentMax = 255

// CheckPaymentIntent says what is wrong with the id of a PaymentIntent that a person names, or returns "".
func CheckPaymentIntent(id string) string {
	rest, ok := strings.CutPrefix(id, "pi_")
	for _, c := range []byte(rest) {
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_')
	}
	if !ok || rest == "" || len(id) > paymentIntentMax {
		return "must be the id of a PaymentIntent as Stripe's dashboard shows it, pi_ and letters or digits"
	}
	return ""
}

// checkCharged says what is wrong with the PaymentIntent of a decision: what succeeded has one, and Stripe's word on which it is stands above a person's
// until its records have been read to their end.
func checkCharged(p Payment, d Decision) error {
	invalid := func(text string) error { return &Error{Code: CodeInvalid, Field: "payment_intent", Message: text} }
	switch {
	case d.As != StatusSucceeded && d.PaymentIntent != "":
		return invalid("goes with succeeded alone: leave it out")
	case d.As != StatusSucceeded, d.PaymentIntent == "" && p.StripePaymentIntent != "":
		return nil
	case d.PaymentIntent == "":
		return invalid("is required: Stripe has named no PaymentIntent of it yet; say which one was charged, as Stripe's dashboard shows it")
	case CheckPaymentIntent(d.PaymentIntent) != "":
		return invalid(CheckPaymentIntent(d.PaymentIntent))
	case p.StripePaymentIntent != "" && d.PaymentIntent != p.StripePaymentIntent && p.Status != StatusNeedsReview:
		return invalid("is another than " + p.StripePaymentIntent + ", which Stripe has named: resolve it as unknown, which reads what became of that one")
	}
	return nil
}

// chargedBy is the PaymentIntent that a person says was charged: all of the amount, unless Stripe has said how much was taken of that very one.
func chargedBy(p Payment, d Decision) *PaymentIntent {
	pi := &PaymentIntent{ID: d.PaymentIntent, Status: StripeSucceeded, AmountReceived: p.Amount}
	if pi.ID == "" {
		pi.ID = p.StripePaymentIntent
	}
	if pi.ID == p.StripePaymentIntent {
		pi.LatestCharge = p.StripeCharge
		if p.AmountCaptured > 0 {
			pi.AmountReceived = p.AmountCaptured
		}
	}
	return pi
}
