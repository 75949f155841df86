package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestAPIKeyIsGood: a secret leads to its key until it expires or is revoked, from that very moment, and no other text does.
func TestAPIKeyIsGood(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	scopes := []payments.Scope{payments.ScopePaymentsRead, payments.ScopeBatchesWrite}
	expiring, expiringSecret, err := b.CreateAPIKey(ctx, "acme", scopes, b.clock.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	lasting, lastingSecret, err := b.CreateAPIKey(ctx, "globex", scopes, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	good := func(secret string, want payments.APIKey) {
		t.Helper()
		k, err := b.APIKeyBySecret(ctx, secret)
		if err != nil || k.ID != want.ID || k.TenantID != want.TenantID || !k.Good(b.clock.Now()) || !k.Allows(payments.ScopeBatchesWrite) || k.Allows(payments.ScopePaymentsWrite) {
			t.Errorf("%+v, %v, want %+v", k, err, want)
		}
	}
	bad := func(secret string) {
		t.Helper()
		if k, err := b.APIKeyBySecret(ctx, secret); payments.ErrorCode(err) != payments.CodeNotFound || k.ID != "" {
			t.Errorf("%+v, %v, want %s", k, err, payments.CodeNotFound)
		}
	}
	for _, secret := range []string{"", "opk_", lasting.ID, lastingSecret[:len(lastingSecret)-1], lastingSecret + "A", lastingSecret + "\x00", " " + lastingSecret, "\xff"} {
		bad(secret)
	}
	b.clock.Advance(time.Hour - time.Microsecond)
	good(expiringSecret, expiring)
	b.clock.Advance(time.Microsecond)
	bad(expiringSecret)
	good(lastingSecret, lasting)
	if err := b.RevokeAPIKey(ctx, lasting.ID); err != nil {
		t.Fatal(err)
	}
	bad(lastingSecret)
}
