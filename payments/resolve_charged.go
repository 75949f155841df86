package payments

import (
	"fmt"
	"strings"
)

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

// checkCaptured says what is wrong with the amount of a decision. What Stripe has shown to be taken, or given back, was taken.
func checkCaptured(p Payment, d Decision) error {
	least := p.AmountRefunded
	if names(p, d) {
		least = max(least, p.AmountCaptured)
	}
	invalid := func(text string) error { return &Error{Code: CodeInvalid, Field: "amount_captured", Message: text} }
	switch {
	case d.AmountCaptured == 0:
		return nil
	case d.As != StatusSucceeded:
		return invalid("goes with succeeded alone: leave it out")
	case d.AmountCaptured < 1 || d.AmountCaptured > p.Amount:
		return invalid(fmt.Sprintf("must be in minor units, from 1 to %d, which is all of it", p.Amount))
	case d.AmountCaptured < least:
		return invalid(fmt.Sprintf("must be at least %d, which Stripe has shown to be taken", least))
	}
	return nil
}

// names reports whether a decision is about the PaymentIntent that Stripe has named.
func names(p Payment, d Decision) bool {
	return p.StripePaymentIntent != "" && (d.PaymentIntent == "" || d.PaymentIntent == p.StripePaymentIntent)
}

// chargedBy is the PaymentIntent that a person says was charged: by as much as the person says, else all of the amount, unless Stripe has said how much
// was taken of that very one.
func chargedBy(p Payment, d Decision) *PaymentIntent {
	pi := &PaymentIntent{ID: d.PaymentIntent, Status: StripeSucceeded, AmountReceived: p.Amount}
	if names(p, d) {
		pi.ID, pi.LatestCharge = p.StripePaymentIntent, p.StripeCharge
		if p.AmountCaptured > 0 {
			pi.AmountReceived = p.AmountCaptured
		}
	}
	if d.AmountCaptured > 0 {
		pi.AmountReceived = d.AmountCaptured
	}
	return pi
}
