package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestOperatorsTenantsAndKeys: what an operator makes or ends is one commit with its line in the audit; what is refused leaves none, what a program
// makes for itself neither, and no line holds anything of a secret.
func TestOperatorsTenantsAndKeys(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	by, nobody := b.By(ann), b.By(payments.Operation{Reason: "r"})
	if _, err := nobody.CreateTenant(ctx, Tenant{ID: "own"}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a tenant by nobody: %v", err)
	}
	if _, _, err := nobody.CreateAPIKey(ctx, "acme", nil, time.Time{}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a key by nobody: %v", err)
	}
	if err := nobody.RevokeAPIKey(ctx, "key_1"); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("revoked by nobody: %v", err)
	}
	if _, err := by.CreateTenant(ctx, Tenant{ID: "acme"}); payments.ErrorCode(err) != payments.CodeInvalid || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("one that is there: %v", err)
	}
	if _, _, err := by.CreateAPIKey(ctx, "none", nil, time.Time{}); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("a key for nobody: %v", err)
	}
	if err := by.RevokeAPIKey(ctx, "key_none"); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("no key: %v", err)
	}
	if lines := b.audited(""); len(lines) != 0 {
		t.Fatalf("what was refused is in the audit: %+v", lines)
	}

	made, err := by.CreateTenant(ctx, Tenant{ID: "own", StripeKeyRef: "file:/run/secrets/own"})
	if err != nil || !made.CreatedAt.Equal(b.clock.Now()) {
		t.Fatalf("%+v, %v", made, err)
	}
	k, secret, err := by.CreateAPIKey(ctx, "own", []payments.Scope{payments.ScopePaymentsRead}, b.clock.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := b.APIKeyBySecret(ctx, secret); err != nil || found.ID != k.ID || !found.CreatedAt.Equal(b.clock.Now()) {
		t.Errorf("%+v, %v", found, err)
	}
	for range 2 {
		if err := by.RevokeAPIKey(ctx, k.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.APIKeyBySecret(ctx, secret); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("revoked: %v", err)
	}
	lines := b.audited("")
	if len(lines) != 4 {
		t.Fatalf("%+v", lines)
	}
	for i, want := range []struct{ action, target, result string }{
		{"keys revoke", k.ID, `{"ended":false}`}, {"keys revoke", k.ID, `{"ended":true}`}, {"keys create", k.ID, `"scopes":["payments:read"]`},
		{"tenants create", "", `{"stripe_key":"file:/run/secrets/own"}`},
	} {
		l := lines[i]
		if l.Action != want.action || l.Target != want.target || l.TenantID != "own" || l.Actor != ann.Actor || l.Reason != ann.Reason || !strings.Contains(string(l.Result), want.result) {
			t.Errorf("%+v: %s, want %+v", l, l.Result, want)
		}
		if strings.Contains(string(l.Result), k.Prefix) {
			t.Errorf("%s holds of the secret", l.Result)
		}
	}
	if _, err := b.CreateTenant(ctx, Tenant{ID: "program"}); err != nil || len(b.audited("")) != 4 {
		t.Errorf("a program's: %v", err)
	}
}
