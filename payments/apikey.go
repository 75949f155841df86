package payments

import (
	"slices"
	"time"
)

// Scope is one thing that an API key may be allowed.
type Scope string

// The scopes of CONTRACT.
const (
	ScopePaymentsWrite Scope = "payments:write"
	ScopePaymentsRead  Scope = "payments:read"
	ScopeBatchesWrite  Scope = "batches:write"
	ScopeRefundsWrite  Scope = "refunds:write"
)

// Scopes lists every scope.
func Scopes() []Scope {
	return []Scope{ScopePaymentsWrite, ScopePaymentsRead, ScopeBatchesWrite, ScopeRefundsWrite}
}

// APIKey is a key of the HTTP API, without its secret, which is kept nowhere.
type APIKey struct {
	ID        string
	TenantID  string
	Prefix    string // first characters of the secret
	Scopes    []Scope
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: not
}

// Allows reports whether the key has the scope.
func (k APIKey) Allows(s Scope) bool { return slices.Contains(k.Scopes, s) }

// Good reports whether the key may be used at the time now.
func (k APIKey) Good(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}
