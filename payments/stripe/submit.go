package stripe

import (
	"context"
	"errors"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// Submit creates and confirms the PaymentIntent of the payment. Exactly one HTTP request leaves, or none.
func (g *Gateway) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	x, o := g.send(ctx, s, func() (path, form string, err error) {
		if err := g.mayBeSent(s, s.Payment.Kind); err != nil {
			return "", "", err
		}
		form, err = Body(s.Payment.RequestVersion, g.namespace, s.Payment.Intent)
		return createPath, form, err
	})
	if x == nil {
		return o
	}
	return g.observe(s.Payment, x)
}

// send makes the POST that request says is the submission's. If nothing may leave at all there is no exchange, and the observation says why.
func (g *Gateway) send(ctx context.Context, s payments.Submission, request func() (path, form string, err error)) (*exchange, payments.Observation) {
	switch {
	case s.Payment.StripeAccount == "":
		return nil, payments.Observation{Kind: payments.ObservedHeldBack, Account: g.account, Detail: unpinned}
	case g.foreign(s.Payment):
		return nil, g.foreignAccount()
	}
	path, form, err := request()
	if err != nil {
		return nil, g.heldBackBug(s.Payment, err)
	}
	x := &exchange{method: http.MethodPost, path: path, form: form, key: s.StripeKey, gate: &passage{once: true, mayLeave: s.MayLeave}}
	g.do(ctx, x)
	if x.bug != nil {
		return nil, g.heldBackBug(s.Payment, x.bug)
	}
	return x, payments.Observation{}
}

// mayBeSent says what is wrong with a submission that asks for the kind of thing.
func (g *Gateway) mayBeSent(s payments.Submission, kind payments.Kind) error {
	p := s.Payment
	switch {
	case s.MayLeave == nil:
		return errors.New("nobody says whether the request may leave")
	case p.ID != p.Intent.ID():
		return errors.New("the payment's id is not the one that its tenant and key name")
	case s.StripeKey != payments.StripeKey(g.namespace, kind, p.TenantID, p.IdempotencyKey):
		return errors.New("the idempotency key is not the one of this payment in this namespace")
	}
	return nil
}

func (g *Gateway) foreignAccount() payments.Observation {
	return payments.Observation{
		Kind: payments.ObservedForeignAccount, Account: g.account,
		Detail: "the payment is pinned to another Stripe account or mode than the one that is connected",
	}
}

func (g *Gateway) heldBackBug(p payments.Payment, err error) payments.Observation {
	g.bug(p, err)
	return payments.Observation{Kind: payments.ObservedHeldBack, Account: g.account, Detail: "bug: " + err.Error()}
}
