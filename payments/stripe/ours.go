package stripe

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// ListOurs reads every PaymentIntent of the installation's namespace that Stripe dates at or after since (zero: all there are), newest first,
// and gives each to each. progress is called before every page; an error of either ends the reading and is returned. CodeUnavailable: the list
// could not be read to its end, so that what each was given may not be all.
//
// What is created while it runs may be missing, and nothing else.
func (g *Gateway) ListOurs(ctx context.Context, _ string, since time.Time, each func(payments.PaymentIntent) error, progress func() error) error {
	var failed error
	o, _ := g.pages(ctx, pages{
		path: createPath, query: listing{from: since}.fields, decode: decodePage,
		before: func() bool {
			if failed == nil && progress != nil {
				failed = progress()
			}
			return failed == nil
		},
		item: func(r record) {
			if failed != nil || r.metadata[MetadataNamespace] != g.namespace {
				return
			}
			pi, err := decodeIntent(r.raw)
			if err != nil {
				failed = payments.Errorf(payments.CodeUnavailable, "Stripe lists the PaymentIntent %s, which is ours and cannot be read: %s", r.id, err)
				return
			}
			failed = each(pi)
		},
	})
	if failed != nil {
		return failed
	}
	if o.Kind != payments.ObservedRecords {
		return payments.Errorf(payments.CodeUnavailable, "the PaymentIntents of the account %s could not be listed: %s", g.account.ID, o.Detail)
	}
	return nil
}

// ListOurs is Gateway.ListOurs for the account that the tenant's payments go to; "" is the installation's own. Tenants that share an account
// share its list: what is found belongs to the tenant that its metadata name. An error of Account says that the tenant's account is not known.
func (a *Accounts) ListOurs(ctx context.Context, tenantID string, since time.Time, each func(payments.PaymentIntent) error, progress func() error) error {
	g := a.own
	if tenantID != "" {
		var err error
		if g, _, err = a.gateway(ctx, tenantID); err != nil {
			return err
		}
	}
	return g.ListOurs(ctx, tenantID, since, each, progress)
}
