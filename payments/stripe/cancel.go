package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// CancelBody returns the form body of the POST that cancels the PaymentIntent of a declined charge. It depends on the version alone (invariant I5).
// What somebody asked to cancel has the body of FollowUpBody.
func CancelBody(version int) (string, error) {
	if err := known(version); err != nil {
		return "", err
	}
	// Stripe's reasons are duplicate, fraudulent, requested_by_customer and abandoned: the first three would say what is not so.
	return encode([]field{{"cancellation_reason", "abandoned"}}), nil
}

// Cancel cancels the payment's PaymentIntent: a declined charge's own, or the one of the charge that a cancel is about. Exactly one HTTP request
// leaves, or none.
func (g *Gateway) Cancel(ctx context.Context, s payments.Submission) payments.Observation {
	x, o := g.send(ctx, s, func() (path, form string, err error) {
		if err := g.mayBeSent(s, payments.KindCancel); err != nil {
			return "", "", err
		}
		return cancellation(g.namespace, s.Payment)
	})
	if x == nil {
		return o
	}
	return g.observeCancel(s.Payment, x)
}

func cancellation(namespace string, p payments.Payment) (path, form string, err error) {
	switch {
	case p.Kind == payments.KindCancel:
		return followUpRequest(namespace, p)
	case p.Kind != payments.KindCharge || !validID(p.StripePaymentIntent, "pi_"):
		return "", "", errors.New("the payment names no PaymentIntent to cancel")
	}
	form, err = CancelBody(p.RequestVersion)
	return intentPath(p, "/cancel"), form, err
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
	case ok && x.status == http.StatusNotFound && e.Code == resourceMissing:
		o.Kind, o.Detail, o.Failure = payments.ObservedObject, "Stripe knows no such PaymentIntent", g.failure(e)
	case !ok || kind != payments.ObservedInvalid:
		o = g.observeError(x, o, chargeRefused(p))
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
		return g.observeError(x, o, chargeRefused(p))
	}
	return o
}

// standing is the observation of a PaymentIntent as it stands, if it is the one that was to be canceled.
func standing(p payments.Payment, pi *payments.PaymentIntent, o payments.Observation, detail string) payments.Observation {
	if !itself(p, *pi) {
		o.Detail = detail + ", about another PaymentIntent"
		return o
	}
	o.Kind, o.Object, o.RetryAfter, o.Detail = payments.ObservedObject, pi, 0, detail
	return o
}

// itself reports whether the PaymentIntent is the one that the payment names. A charge's must be about it, too; a follow-up's is whatever its charge
// has taken for its own, also by a person's word.
func itself(p payments.Payment, pi payments.PaymentIntent) bool {
	return pi.ID == p.StripePaymentIntent && (p.Kind.FollowUp() || about(p, pi))
}
