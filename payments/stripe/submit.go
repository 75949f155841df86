package stripe

import (
	"context"
	"errors"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// Submit creates and confirms the PaymentIntent of the payment. Exactly one HTTP request leaves, or none.
func (g *Gateway) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	switch {
	case s.Payment.StripeAccount == "":
		return payments.Observation{Kind: payments.ObservedHeldBack, Account: g.account, Detail: unpinned}
	case g.foreign(s.Payment):
		return g.foreignAccount()
	}
	fields, err := g.charge(s)
	if err != nil {
		return g.heldBackBug(s.Payment, err)
	}
	x := &exchange{
		method: http.MethodPost, path: createPath, form: encode(fields), key: s.StripeKey,
		gate: &passage{once: true, mayLeave: s.MayLeave},
	}
	g.do(ctx, x)
	if x.bug != nil {
		return g.heldBackBug(s.Payment, x.bug)
	}
	return g.observe(s.Payment, x)
}

// charge returns the form of the payment's request, if the submission is one that may leave at all.
func (g *Gateway) charge(s payments.Submission) ([]field, error) {
	if err := g.mayBeSent(s, s.Payment.Kind); err != nil {
		return nil, err
	}
	return requestFields(s.Payment.RequestVersion, g.namespace, s.Payment.Intent)
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
