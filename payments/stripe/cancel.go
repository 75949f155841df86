package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// CancelBody returns the form body of the POST that cancels a payment's PaymentIntent. It depends on the version alone (invariant I5).
func CancelBody(version int) (string, error) {
	if version != 1 {
		return "", fmt.Errorf("request_version %d is not known to this build; run one that knows it", version)
	}
	// Stripe's reasons are duplicate, fraudulent, requested_by_customer and abandoned: the first three would say what is not so.
	return encode([]field{{"cancellation_reason", "abandoned"}}), nil
}

// Cancel cancels the payment's PaymentIntent. Exactly one HTTP request leaves, or none.
func (g *Gateway) Cancel(ctx context.Context, s payments.Submission) payments.Observation {
	switch {
	case s.Payment.StripeAccount == "":
		return payments.Observation{Kind: payments.ObservedHeldBack, Account: g.account, Detail: unpinned}
	case g.foreign(s.Payment):
		return g.foreignAccount()
	}
	form, err := g.cancellation(s)
	if err != nil {
		return g.heldBackBug(s.Payment, err)
	}
	x := &exchange{
		method: http.MethodPost, path: createPath + "/" + s.Payment.StripePaymentIntent + "/cancel", form: form, key: s.StripeKey,
		gate: &passage{once: true, mayLeave: s.MayLeave},
	}
	g.do(ctx, x)
	if x.bug != nil {
		return g.heldBackBug(s.Payment, x.bug)
	}
	return g.observeCancel(s.Payment, x)
}

func (g *Gateway) cancellation(s payments.Submission) (string, error) {
	if err := g.mayBeSent(s, payments.KindCancel); err != nil {
		return "", err
	}
	if s.Payment.Kind != payments.KindCharge || !validID(s.Payment.StripePaymentIntent, "pi_") {
		return "", errors.New("the payment names no PaymentIntent to cancel")
	}
	return CancelBody(s.Payment.RequestVersion)
}

// observeCancel says what the exchange of a cancel proves: an object, whether it could be canceled or not.
func (g *Gateway) observeCancel(p payments.Payment, x *exchange) payments.Observation {
	o, answered := g.answered(x)
	if !answered {
		return o
	}
	if x.status >= 200 && x.status <= 299 {
		pi, err := decodeIntent(x.body)
		if err != nil {
			o.Detail = fmt.Sprintf("Stripe answered %d: %s", x.status, err)
			return o
		}
		return standing(p, &pi, o, "the cancel was answered")
	}
	e, ok := decodeError(x.body)
	kind := classify(x.status, e)
	switch {
	case ok && x.status == http.StatusNotFound && e.Code == "resource_missing":
		o.Kind, o.Detail, o.Failure = payments.ObservedObject, "Stripe knows no such PaymentIntent", g.failure(e)
	case !ok || kind != payments.ObservedInvalid:
		o = g.observeError(p, x, o)
		if o.Kind == payments.ObservedDecline { // nothing was to be charged
			o.Kind, o.Object = payments.ObservedUnclear, nil
		}
	case e.names && e.Intent == nil:
		o.Detail = fmt.Sprintf("Stripe answered %d %s, about something that is no PaymentIntent", x.status, e.Code)
	case e.names:
		return standing(p, e.Intent, o, "Stripe refused to cancel it ("+e.Code+")")
	case e.Code == "payment_intent_unexpected_state":
		o.Detail = "Stripe refused to cancel the PaymentIntent, and does not say how it stands"
	default:
		return g.observeError(p, x, o)
	}
	return o
}

// standing is the observation of a PaymentIntent as it stands, if it is the one that was to be canceled.
func standing(p payments.Payment, pi *payments.PaymentIntent, o payments.Observation, detail string) payments.Observation {
	if pi.ID != p.StripePaymentIntent || !about(p, *pi) {
		o.Detail = detail + ", about another PaymentIntent"
		return o
	}
	o.Kind, o.Object, o.RetryAfter, o.Detail = payments.ObservedObject, pi, 0, detail
	return o
}
