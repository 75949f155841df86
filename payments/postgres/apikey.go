package postgres

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// SecretPrefix begins every secret of an API key, so that scanners for leaked secrets know it.
const SecretPrefix = "opk_"

// CreateAPIKey makes a key for the tenant and returns its secret, this once. CodeNotFound: no such tenant; CodeInvalid. An operator's is made through By.
func (s *Store) CreateAPIKey(ctx context.Context, tenantID string, scopes []payments.Scope, expiresAt time.Time) (k payments.APIKey, secret string, err error) {
	return s.createAPIKey(ctx, tenantID, scopes, expiresAt, nil)
}

// createAPIKey calls line for the audit's line about the key, unless it is nil.
func (s *Store) createAPIKey(ctx context.Context, tenantID string, scopes []payments.Scope, expiresAt time.Time,
	line func(payments.APIKey) *payments.AuditEntry) (k payments.APIKey, secret string, err error) {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	if err := checkFilters(map[string]string{"tenant_id": tenantID, "scopes": strings.Join(words, " ")}); err != nil {
		return payments.APIKey{}, "", err
	}
	var id [8]byte
	var random [32]byte
	s.opts.Token(id[:])
	s.opts.Token(random[:])
	secret = SecretPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	k = payments.APIKey{ID: "key_" + hex.EncodeToString(id[:]), TenantID: tenantID, Prefix: secret[:12], Scopes: slices.Clone(scopes)}
	if !expiresAt.IsZero() {
		k.ExpiresAt = micro(expiresAt)
	}
	hash := sha256.Sum256([]byte(secret))
	var told *payments.AuditEntry
	if line != nil {
		told = line(k)
	}
	err = s.withLine(ctx, told, func(b *pgx.Batch) {
		b.Queue(query("create_api_key"), k.ID, tenantID, hash[:], k.Prefix, words, nullable(expiresAt), s.now()).
			QueryRow(func(row pgx.Row) error { return row.Scan(&k.CreatedAt) })
	})
	if violates(err, "api_keys_tenant_id_fkey") {
		return payments.APIKey{}, "", &payments.Error{Code: payments.CodeNotFound, Field: "tenant_id", Message: "there is no such tenant: create it first"}
	}
	if err != nil {
		return payments.APIKey{}, "", translate(err)
	}
	k.CreatedAt = k.CreatedAt.UTC()
	return k, secret, nil
}

// APIKeys lists the keys of a tenant, "" for all.
func (s *Store) APIKeys(ctx context.Context, tenantID string) ([]payments.APIKey, error) {
	if err := checkFilters(map[string]string{"tenant_id": tenantID}); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, query("list_api_keys"), null(tenantID))
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (payments.APIKey, error) { return scanAPIKey(r) })
	return list, translate(err)
}

// APIKeyBySecret implements payments.Keys: it returns the key that the secret belongs to, if it is good now. CodeNotFound.
func (s *Store) APIKeyBySecret(ctx context.Context, secret string) (payments.APIKey, error) {
	hash := sha256.Sum256([]byte(secret))
	rows, err := s.pool.Query(ctx, query("find_api_key"), hash[:], s.now())
	if err != nil {
		return payments.APIKey{}, translate(err)
	}
	var stored []byte
	k, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (payments.APIKey, error) { return scanAPIKey(r, &stored) })
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return payments.APIKey{}, translate(err)
	}
	// The index has found it by the hash, and how long that took tells nothing of the secret. This compares all of it.
	if err != nil || subtle.ConstantTimeCompare(stored, hash[:]) != 1 {
		return payments.APIKey{}, payments.Errorf(payments.CodeNotFound, "the API key does not exist, has expired or was revoked")
	}
	return k, nil
}

// RevokeAPIKey ends a key at once; a second time changes nothing. CodeNotFound. An operator's is done through By.
func (s *Store) RevokeAPIKey(ctx context.Context, id string) error {
	return s.revokeAPIKey(ctx, id, nil)
}

// revokeAPIKey calls line for the audit's line, with whether the key was not revoked before, unless it is nil.
func (s *Store) revokeAPIKey(ctx context.Context, id string, line func(id, tenantID string, ended bool) payments.AuditEntry) error {
	id = strings.ToValidUTF8(strings.ReplaceAll(id, "\x00", ""), "")
	err := s.transact(ctx, func(tx *transaction) error {
		var tenantID string
		var ended bool
		b := tx.batch()
		b.Queue(query("revoke_api_key"), id, s.now()).QueryRow(func(row pgx.Row) error { return row.Scan(&id, &tenantID, &ended) })
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		b = tx.batch()
		if line != nil {
			s.queueAudit(b, line(id, tenantID, ended))
		}
		return tx.commit(ctx, b)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return payments.Errorf(payments.CodeNotFound, "there is no such API key")
	}
	return translate(err)
}

// scanAPIKey reads a key, and what the statement adds.
func scanAPIKey(r pgx.CollectableRow, more ...any) (payments.APIKey, error) {
	var k payments.APIKey
	var scopes []string
	var expires, revoked pgtype.Timestamptz
	err := r.Scan(append([]any{&k.ID, &k.TenantID, &k.Prefix, &scopes, &k.CreatedAt, &expires, &revoked}, more...)...)
	for _, scope := range scopes {
		k.Scopes = append(k.Scopes, payments.Scope(scope))
	}
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = k.CreatedAt.UTC(), instant(expires), instant(revoked)
	return k, err
}
