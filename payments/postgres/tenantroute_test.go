package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestCreateTenantChecksTheWay(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for name, c := range map[string]Tenant{
		"a name that is no account":       {StripeAccount: "shop"},
		"an account with a space":         {StripeAccount: "acct_1 "},
		"an account without an id":        {StripeAccount: "acct_"},
		"a key in place of the account":   {StripeAccount: "sk_live_hunter2"},
		"the key itself":                  {StripeKeyRef: "sk_test_hunter2"},
		"a restricted key":                {StripeKeyRef: "rk_live_hunter2"},
		"a key in capitals":               {StripeKeyRef: "SK_LIVE_hunter2"},
		"a key behind file:":              {StripeKeyRef: "file:/sk_live_hunter2"},
		"a relative path":                 {StripeKeyRef: "file:hunter2"},
		"a path without file:":            {StripeKeyRef: "/run/hunter2"},
		"the root":                        {StripeKeyRef: "file:/"},
		"a path that is not in its form":  {StripeKeyRef: "file:/run/../hunter2"},
		"NUL":                             {StripeKeyRef: "file:/run/\x00hunter2"},
		"a URL":                           {StripeKeyRef: "https://hunter2"},
		"both":                            {StripeAccount: "acct_1", StripeKeyRef: "file:/run/hunter2"},
		"an account with a quote":         {StripeAccount: "acct_hunter2'--"},
		"an environment variable's value": {StripeKeyRef: "$hunter2"},
	} {
		c.ID = "shop"
		_, err := b.CreateTenant(ctx, c)
		if payments.ErrorCode(err) != payments.CodeInvalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []Tenant{{ID: "connected", StripeAccount: "acct_1A"}, {ID: "keyed", StripeKeyRef: "file:/run/secrets/keyed"}, {ID: "plain"}} {
		made, err := b.CreateTenant(ctx, c)
		got, there, err2 := b.TenantRoute(ctx, c.ID)
		if err != nil || err2 != nil || !there || got != made || got.StripeAccount != c.StripeAccount || got.StripeKeyRef != c.StripeKeyRef || got.OwnWay() != (c.ID != "plain") {
			t.Errorf("%s: %+v, %+v, %v, %v", c.ID, made, got, err, err2)
		}
	}
	for _, id := range []string{"nobody", "", "A\x00"} {
		if got, there, err := b.TenantRoute(ctx, id); there || err != nil {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
}

func TestPinTenantAccount(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for _, c := range []Tenant{{ID: "connected", StripeAccount: "acct_1"}, {ID: "keyed", StripeKeyRef: "file:/run/secrets/keyed"}} {
		if _, err := b.CreateTenant(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	live := payments.Account{ID: "acct_1", Livemode: true}
	for _, c := range []struct {
		name, tenant string
		account      payments.Account
		code         payments.Code
		says         string
	}{
		{"another account than the connected one", "connected", payments.Account{ID: "acct_2", Livemode: true}, payments.CodeInvalid, "acct_2"},
		{"the first time", "connected", live, "", ""},
		{"again", "connected", live, "", ""},
		{"the other mode", "connected", payments.Account{ID: "acct_1"}, payments.CodeInvalid, "acct_1 (live mode)"},
		{"a key of its own", "keyed", payments.Account{ID: "acct_7"}, "", ""},
		{"a key that belongs to somebody else now", "keyed", payments.Account{ID: "acct_8"}, payments.CodeInvalid, "acct_7 (test mode)"},
		{"no way of its own", "acme", live, payments.CodeInvalid, "acme"},
		{"nobody", "nobody", live, payments.CodeNotFound, "nobody"},
		{"no account", "keyed", payments.Account{}, payments.CodeInvalid, "keyed"},
		{"no account id", "keyed", payments.Account{ID: "<html>"}, payments.CodeInvalid, "keyed"},
	} {
		err := b.PinTenantAccount(ctx, c.tenant, c.account)
		if payments.ErrorCode(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	pinned := map[string]payments.Account{"connected": live, "keyed": {ID: "acct_7"}}
	list, err := b.Tenants(ctx)
	if err != nil || len(list) != 4 {
		t.Fatalf("Tenants: %+v, %v", list, err)
	}
	for _, got := range list {
		if got.Account != pinned[got.ID] {
			t.Errorf("%s: %+v", got.ID, got.Account)
		}
	}
}

// TestTakePinsTheTenantsAccount: a payment without an account gets its tenant's own, or the installation's, or, while its tenant's is not known,
// none, and then no send is begun. With a rate and without.
func TestTakePinsTheTenantsAccount(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 100} {
		b := paced(t, rate)
		ctx := context.Background()
		for _, c := range []Tenant{{ID: "connected", StripeAccount: "acct_own"}, {ID: "keyed", StripeKeyRef: "file:/run/secrets/keyed"}} {
			if _, err := b.CreateTenant(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		own := payments.Account{ID: "acct_own"}
		if err := b.PinTenantAccount(ctx, "connected", own); err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"acme", "connected", "keyed"} {
			b.store(tenant, "k", payments.LaneInteractive)
		}
		taken := map[string]payments.Claim{}
		for _, c := range b.taking(payments.LaneInteractive, 10).Claims {
			taken[c.Payment.TenantID] = c
		}
		want := map[string]payments.Account{"acme": account, "connected": own, "keyed": {}}
		for tenant, a := range want {
			c := taken[tenant]
			stored := b.find(c)
			sends := a.ID != ""
			if c.Token.IsZero() || c.Payment.StripeAccount != a.ID || c.Payment.Livemode != a.Livemode || stored.StripeAccount != a.ID || stored.Livemode != a.Livemode ||
				stored.InDoubt != sends || stored.FirstSubmitAt.IsZero() == sends || stored.LastSubmitAt.IsZero() == sends || !stored.Owned || c.Payment.InDoubt {
				t.Errorf("rate %v, %s: claim %+v, stored %+v", rate, tenant, c.Payment, stored)
			}
		}
		// Its owner gives it back, and by then the account is known.
		c := taken["keyed"]
		b.record(c, payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonNotSent, Rounds: 1, ClearSubmit: true}, time.Second)
		if err := b.PinTenantAccount(ctx, "keyed", payments.Account{ID: "acct_key", Livemode: true}); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Second)
		again := b.taking(payments.LaneInteractive, 10).Claims
		if len(again) != 1 || again[0].Payment.StripeAccount != "acct_key" || !again[0].Payment.Livemode || again[0].Payment.InDoubt || b.find(c).StripeAccount != "acct_key" || !b.find(c).InDoubt {
			t.Errorf("rate %v, once it is known: %+v, stored %+v", rate, again, b.find(c))
		}
		// A pin stays where it is, whatever the tenant's account is now.
		if _, err := b.pool.Exec(ctx, "UPDATE tenants SET account = 'acct_next' WHERE id = 'keyed'"); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(2 * time.Hour)
		for _, c := range b.taking(payments.LaneInteractive, 10).Claims {
			if p := b.find(c); c.Payment.StripeAccount != map[string]string{"acme": account.ID, "connected": "acct_own", "keyed": "acct_key"}[p.TenantID] || p.StripeAccount != c.Payment.StripeAccount {
				t.Errorf("rate %v, taken over: %+v, stored %+v", rate, c.Payment, p)
			}
		}
		// Without an account of the installation nothing is sent for those who need it.
		b.store("acme", "other", payments.LaneInteractive)
		got, err := b.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: time.Minute})
		if err != nil || len(got.Claims) != 1 || got.Claims[0].Payment.StripeAccount != "" || b.find(got.Claims[0]).InDoubt {
			t.Errorf("rate %v, no account at all: %+v, %v", rate, got, err)
		}
	}
}

// TestOnlyItsOwnBudgetPays: what may be sent is paid for by its tenant's account; what may not be sent from here costs nothing and waits for nothing.
func TestOnlyItsOwnBudgetPays(t *testing.T) {
	t.Parallel()
	b := paced(t, 20) // 2 at once
	ctx := context.Background()
	if _, err := b.CreateTenant(ctx, Tenant{ID: "keyed", StripeKeyRef: "file:/run/secrets/keyed"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.requests(2, "acme", "first", payments.LaneInteractive, payments.Account{ID: "acct_old", Livemode: true}) {
		b.record(b.admit(r).Claim, waiting(payments.ReasonAccountChanged), 0)
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		b.store("acme", key, payments.LaneInteractive)
		b.store("keyed", key, payments.LaneInteractive)
	}
	counts := map[string]int{}
	for range 5 {
		for _, c := range b.taking(payments.LaneInteractive, 64).Claims {
			counts[c.Payment.TenantID+" "+c.Payment.StripeAccount]++
		}
	}
	if counts["acme acct_old"] != 2 || counts["acme acct_1"] != 2 || counts["keyed "] != 4 {
		t.Errorf("given: %v", counts)
	}
	if n := b.tokens(account); n != 0 {
		t.Errorf("%v tokens are left", n)
	}
	if n := b.tokens(payments.Account{ID: "acct_old", Livemode: true}); n != 0 {
		t.Errorf("the old account paid otherwise than for its two requests: %v tokens are left", n)
	}
	b.clock.Advance(time.Second)
	b.taking(payments.LaneInteractive, 64)
	if n := b.tokens(payments.Account{ID: "acct_old", Livemode: true}); n != 0 {
		t.Errorf("the old account was written: %v", n)
	}
}
