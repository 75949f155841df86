package postgres

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestFind(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("order-1")
	if p, err := b.FindByKey(ctx, "acme", "order-1"); err != nil || p.ID != c.Payment.ID {
		t.Errorf("FindByKey: %+v, %v", p, err)
	}
	if p, err := b.FindAnywhere(ctx, c.Payment.ID); err != nil || p.TenantID != "acme" {
		t.Errorf("FindAnywhere: %+v, %v", p, err)
	}
	_, err1 := b.Find(ctx, "globex", c.Payment.ID)
	_, err2 := b.FindAnywhere(ctx, payments.NewID("acme", "other"))
	_, err3 := b.Timeline(ctx, "globex", c.Payment.ID)
	for _, err := range []error{err1, err2, err3} {
		if payments.ErrorCode(err) != payments.CodeNotFound {
			t.Errorf("%v, want %s", err, payments.CodeNotFound)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for i := range 30 {
		if i%4 == 0 { // several have the same time
			b.clock.Advance(time.Second)
		}
		in := intent([]string{"acme", "globex"}[i%2], "k"+strconv.Itoa(i), 100)
		if i%10 == 0 {
			in.Customer = "cus_ten"
		}
		r := b.claiming(in)
		r.Claim = i%3 == 0
		b.admit(r)
	}
	all := func(r payments.ListRequest) []payments.Payment {
		t.Helper()
		var list []payments.Payment
		for {
			page, next, err := b.List(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, page...)
			if next == "" {
				return list
			}
			r.Cursor = next
		}
	}
	list := all(payments.ListRequest{Limit: 7})
	seen := map[payments.ID]bool{}
	for i, p := range list {
		if seen[p.ID] || i > 0 && p.CreatedAt.After(list[i-1].CreatedAt) {
			t.Errorf("at %d: %s twice, or out of order", i, p.IdempotencyKey)
		}
		seen[p.ID] = true
	}
	if len(list) != 30 {
		t.Errorf("%d of 30", len(list))
	}
	for name, c := range map[string]struct {
		r    payments.ListRequest
		want int
	}{
		"tenant":     {payments.ListRequest{TenantID: "acme", Limit: 4}, 15},
		"customer":   {payments.ListRequest{Customer: "cus_ten"}, 3},
		"key":        {payments.ListRequest{IdempotencyKey: "k3"}, 1},
		"processing": {payments.ListRequest{Status: payments.StatusProcessing}, 10},
		"received":   {payments.ListRequest{Status: payments.StatusReceived, Limit: 6}, 20},
		"both":       {payments.ListRequest{Status: payments.StatusReceived, TenantID: "globex"}, 10},
		"one":        {payments.ListRequest{IdempotencyKey: "k3", TenantID: "globex", Customer: "cus_1", Status: payments.StatusProcessing}, 1},
		"not one":    {payments.ListRequest{IdempotencyKey: "k3", TenantID: "globex", Customer: "cus_2"}, 0},
		"none":       {payments.ListRequest{Status: payments.StatusFailed}, 0},
	} {
		if got := all(c.r); len(got) != c.want {
			t.Errorf("%s: %d, want %d", name, len(got), c.want)
		}
	}
	for _, r := range []payments.ListRequest{{Cursor: "!"}, {Cursor: "YQ"}, {Customer: "\x00"}, {TenantID: "\xff"}} {
		if _, _, err := b.List(ctx, r); payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestTenants(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for _, bad := range []Tenant{{ID: ""}, {ID: "Acme"}, {ID: "acme"}, {ID: "4242424242424242"}, {ID: "a-4242-4242-4242-4242"}, {ID: "x", StripeAccount: "acct_2", StripeKeyRef: "file:/k"}, {ID: "x", StripeAccount: "\x00"}} {
		if _, err := b.CreateTenant(ctx, bad); payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := b.CreateTenant(ctx, Tenant{ID: "own", StripeAccount: "acct_2"}); err != nil {
		t.Fatal(err)
	}
	list, err := b.Tenants(ctx)
	if err != nil || len(list) != 3 || list[2].StripeAccount != "acct_2" || !list[2].CreatedAt.Equal(b.clock.Now()) {
		t.Errorf("Tenants: %+v, %v", list, err)
	}
	for id, want := range map[string]bool{"acme": true, "none": false, "\x00": false} {
		if got, err := b.TenantExists(ctx, id); got != want || err != nil {
			t.Errorf("TenantExists(%q): %v, %v", id, got, err)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	k, secret, err := b.CreateAPIKey(ctx, "acme", []payments.Scope{"payments:write"}, b.clock.Now().Add(time.Hour))
	if err != nil || !strings.HasPrefix(secret, "opk_") || len(secret) < 40 || !strings.HasPrefix(secret, k.Prefix) {
		t.Fatalf("CreateAPIKey: %+v, %v", k, err)
	}
	if got, err := b.APIKeyBySecret(ctx, secret); err != nil || got.TenantID != "acme" || len(got.Scopes) != 1 || got.ID != k.ID {
		t.Errorf("APIKeyBySecret: %+v, %v", got, err)
	}
	var kept int
	if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM api_keys WHERE api_keys::text LIKE '%' || $1 || '%'", secret).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("the secret is stored: %d, %v", kept, err)
	}
	if _, _, err := b.CreateAPIKey(ctx, "nobody", nil, time.Time{}); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("for nobody: %v", err)
	}
	_, other, err := b.CreateAPIKey(ctx, "globex", nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	if err := b.RevokeAPIKey(ctx, k.ID); err != nil {
		t.Errorf("RevokeAPIKey: %v", err)
	}
	if _, err := b.APIKeyBySecret(ctx, secret); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("after its end: %v", err)
	}
	if _, err := b.APIKeyBySecret(ctx, other); err != nil {
		t.Errorf("the other: %v", err)
	}
	if list, err := b.APIKeys(ctx, "acme"); err != nil || len(list) != 1 || list[0].RevokedAt.IsZero() {
		t.Errorf("APIKeys: %+v, %v", list, err)
	}
	if list, err := b.APIKeys(ctx, ""); err != nil || len(list) != 2 {
		t.Errorf("all APIKeys: %+v, %v", list, err)
	}
	if err := b.RevokeAPIKey(ctx, "key_\x00none"); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("RevokeAPIKey of none: %v", err)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	before, err := b.WALPosition(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.claims(3)[:2] {
		b.record(c, succeeded(c.Payment), 0)
	}
	if counts, err := b.CountByStatus(ctx, "acme"); err != nil || counts[payments.StatusSucceeded] != 2 || counts[payments.StatusReceived] != 1 || len(counts) != 2 {
		t.Errorf("CountByStatus: %v, %v", counts, err)
	}
	if n, err := b.TicketCount(ctx); n != 1 || err != nil {
		t.Errorf("TicketCount: %d, %v", n, err)
	}
	if after, err := b.WALPosition(ctx); after <= before || err != nil {
		t.Errorf("WALPosition: %d, then %d, %v", before, after, err)
	}
	if skew, err := b.ClockSkew(ctx); skew.Abs() > time.Second || err != nil {
		t.Errorf("ClockSkew: %s, %v", skew, err)
	}
}
