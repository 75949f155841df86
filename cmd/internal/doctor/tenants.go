package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
)

// tenantsMax is how many tenants' accounts are asked for: each costs two calls, which others on the account then lack.
const tenantsMax = 100

// knownWays are the tenants' ways as they were read. Nothing is pinned through it: who looks at an account does not bind a tenant to it.
type knownWays struct {
	mu      sync.Mutex
	tenants map[string]postgres.Tenant
	named   map[string]payments.Account // what Stripe said now
}

var _ stripe.Ways = (*knownWays)(nil)

// Way implements stripe.Ways. It leaves out the account that was pinned, so that Stripe is asked even where a worker need not.
func (w *knownWays) Way(_ context.Context, tenantID string) (stripe.Way, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tenants[tenantID]
	if !ok {
		return stripe.Way{}, payments.Errorf(payments.CodeNotFound, "there is no such tenant")
	}
	return stripe.Way{Connected: t.StripeAccount, KeyRef: t.StripeKeyRef}, nil
}

// Pin implements stripe.Ways, and pins nothing.
func (w *knownWays) Pin(_ context.Context, tenantID string, account payments.Account) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named[tenantID] = account
	return nil
}

// checkTenants asks for the accounts of tenants that have their own, by their own ways.
func checkTenants(ctx context.Context, x *examination) verdict {
	if x.accounts == nil {
		return verdict{result: NotChecked, found: "not checked without ONCEPAY_STRIPE_KEY", remedy: "set ONCEPAY_STRIPE_KEY where workers run", cause: "stripe_account"}
	}
	store, err := x.store(ctx)
	if err != nil {
		return bad("do what PostgreSQL's message says; its log says more", "%s", x.said(err))
	}
	all, err := store.Tenants(ctx)
	if err != nil {
		return x.unanswered(err)
	}
	asked, left := choose(all)
	answered := x.askTenants(ctx, asked)
	return judgeTenants(asked, left, answered)
}

// choose picks the tenants with a way of their own, first those whose account nobody has read yet; left is how many are too many.
func choose(all []postgres.Tenant) (asked []postgres.Tenant, left int) {
	asked = slices.DeleteFunc(slices.Clone(all), func(t postgres.Tenant) bool { return !t.OwnWay() })
	slices.SortStableFunc(asked, func(a, b postgres.Tenant) int {
		return strings.Compare(a.Account.ID, b.Account.ID) // "" comes first
	})
	if len(asked) > tenantsMax {
		asked, left = asked[:tenantsMax], len(asked)-tenantsMax
	}
	return asked, left
}

// tenantPoll is how often it is looked whether all have answered; the accounts are read in the background, some at a time.
const tenantPoll = 20 * time.Millisecond

// answersOfStripe are what became of asking for tenants' accounts.
type answersOfStripe struct {
	named   map[string]payments.Account // by tenant
	refused map[string]string           // by tenant: what is wrong
	late    bool                        // time was over before all had answered
}

// askTenants has the accounts of the tenants read, and waits until each has been tried.
func (x *examination) askTenants(ctx context.Context, tenants []postgres.Tenant) answersOfStripe {
	x.ways.mu.Lock()
	x.ways.tenants, x.ways.named = map[string]postgres.Tenant{}, map[string]payments.Account{}
	for _, t := range tenants {
		x.ways.tenants[t.ID] = t
	}
	x.ways.mu.Unlock()
	refused := func() map[string]string {
		list := map[string]string{}
		for _, t := range tenants {
			if _, err := x.accounts.Account(ctx, t.ID); err != nil {
				list[t.ID] = x.said(err)
			}
		}
		return list
	}
	tick := time.NewTicker(tenantPoll)
	defer tick.Stop()
	for len(refused()) > x.accounts.Broken() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	// Who is broken says so only now for sure: it may have been asked above while it was being read.
	a := answersOfStripe{refused: refused(), late: ctx.Err() != nil}
	x.ways.mu.Lock()
	defer x.ways.mu.Unlock()
	a.named = maps.Clone(x.ways.named)
	return a
}

func judgeTenants(asked []postgres.Tenant, left int, a answersOfStripe) verdict {
	var problems []string
	for _, t := range asked {
		now, named := a.named[t.ID]
		switch text, refused := a.refused[t.ID]; {
		case refused:
			problems = append(problems, text)
		case named && t.Account != (payments.Account{}) && now != t.Account:
			problems = append(problems, fmt.Sprintf("tenant %s: its payments began on %s, and its way leads to %s now", t.ID, t.Account.ID, now.ID))
		}
	}
	more := ""
	if left > 0 {
		more = fmt.Sprintf(" (%d more were not asked for)", left)
	}
	switch {
	case a.late:
		return warn(longer, "not all accounts of %s with their own were read in time%s", count(len(asked), "tenant"), more)
	case len(problems) > 0:
		return bad("mend what each line says; payments of these tenants wait, and no others do (`oncepay tenants list`)", "%d of %s with accounts of their own cannot be charged%s: %s",
			len(problems), count(len(asked), "tenant"), more, strings.Join(problems[:min(len(problems), listed)], " | "))
	case len(asked) == 0:
		return good("no tenant has an account of its own")
	}
	return good("Stripe names the accounts of all %s with their own%s", count(len(asked), "tenant"), more)
}
