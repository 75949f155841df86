package app

import (
	"context"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
)

// TenantWays tells a gateway how tenants' payments get to Stripe, as PostgreSQL has it.
func TenantWays(store *postgres.Store) stripe.Ways { return ways{store} }

type ways struct{ store *postgres.Store }

// Way implements stripe.Ways.
func (w ways) Way(ctx context.Context, tenantID string) (stripe.Way, error) {
	t, there, err := w.store.TenantRoute(ctx, tenantID)
	switch {
	case err != nil:
		return stripe.Way{}, err
	case !there:
		return stripe.Way{}, payments.Errorf(payments.CodeNotFound, "there is no such tenant")
	}
	return stripe.Way{Connected: t.StripeAccount, KeyRef: t.StripeKeyRef, Account: t.Account}, nil
}

// Pin implements stripe.Ways.
func (w ways) Pin(ctx context.Context, tenantID string, account payments.Account) error {
	return w.store.PinTenantAccount(ctx, tenantID, account)
}

// warmAccounts has the accounts read that nobody has used yet, and keys, which may have been changed since; a broken one is told before its
// tenant has a payment. Connected accounts that are known need no asking. Should the list not be readable now, each is read when it is needed.
func (v *service) warmAccounts(ctx context.Context) {
	tenants, err := v.store.Tenants(ctx)
	if err != nil {
		v.log.Warn("tenants could not be listed; their Stripe accounts are read when they are needed", "error", err)
		return
	}
	var ids []string
	for _, t := range tenants {
		if t.StripeKeyRef != "" || t.OwnWay() && t.Account == (payments.Account{}) {
			ids = append(ids, t.ID)
		}
	}
	v.accounts.Warm(ids)
}
