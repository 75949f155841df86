package stripe

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/payments"
)

var _ payments.FollowUpGateway = (*Gateway)(nil)

// Capture takes the follow-up's amount of what its PaymentIntent holds. Exactly one HTTP request leaves, or none.
func (g *Gateway) Capture(ctx context.Context, s payments.Submission) payments.Observation {
	x, o := g.sendFollowUp(ctx, s, payments.KindCapture)
	if x == nil {
		return o
	}
	p := s.Payment
	o, answered := g.answered(x)
	switch {
	case !answered:
		return o
	case x.status < 200 || x.status > 299:
		return g.observeError(x, o, captureRefused(p))
	}
	pi, err := decodeIntent(x.body)
	switch {
	case err != nil:
		o.Detail = fmt.Sprintf("Stripe answered %d: %s", x.status, err)
	case !itself(p, pi):
		o.Detail = "the answer is about another PaymentIntent"
	default:
		o.Kind, o.Object, o.Detail = payments.ObservedAnswer, &pi, fmt.Sprintf("Stripe answered %d", x.status)
	}
	return o
}

// captureRefused says of which PaymentIntents an error to a capture can tell: the one that was asked for. That it stands in another status is often
// why Stripe refuses; a decline of one that was captured is none.
func captureRefused(p payments.Payment) func(payments.ObservationKind, payments.PaymentIntent) bool {
	return func(kind payments.ObservationKind, pi payments.PaymentIntent) bool {
		taken := pi.Status == payments.StripeSucceeded || pi.Status == payments.StripeProcessing || pi.AmountReceived != 0
		return itself(p, pi) && !(kind == payments.ObservedDecline && taken)
	}
}

// sendFollowUp makes the follow-up's POST, if it is of the kind; see send.
func (g *Gateway) sendFollowUp(ctx context.Context, s payments.Submission, kind payments.Kind) (*exchange, payments.Observation) {
	return g.send(ctx, s, func() (path, form string, err error) {
		if s.Payment.Kind != kind {
			return "", "", fmt.Errorf("the payment is a %s, not a %s", s.Payment.Kind, kind)
		}
		if err := g.mayBeSent(s, kind); err != nil {
			return "", "", err
		}
		return followUpRequest(g.namespace, s.Payment)
	})
}
