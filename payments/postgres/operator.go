package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Operator changes tenants and API keys by hand: each change has its line in the audit, written by the transaction that makes it. No secret is in it.
type Operator struct {
	store *Store
	op    payments.Operation
}

// By returns the store in the hands of somebody.
func (s *Store) By(op payments.Operation) Operator { return Operator{s, op} }

// CreateTenant is Store.CreateTenant. CodeInvalid also without an actor.
func (o Operator) CreateTenant(ctx context.Context, t Tenant) (Tenant, error) {
	if err := o.named(); err != nil {
		return Tenant{}, err
	}
	way := map[string]any{}
	if t.StripeAccount != "" {
		way["stripe_account"] = t.StripeAccount
	}
	if t.StripeKeyRef != "" {
		way["stripe_key"] = t.StripeKeyRef // where it is found
	}
	line := o.line("tenants create", t.ID, "", way)
	return o.store.createTenant(ctx, t, &line)
}

// CreateAPIKey is Store.CreateAPIKey. CodeInvalid also without an actor.
func (o Operator) CreateAPIKey(ctx context.Context, tenantID string, scopes []payments.Scope, expiresAt time.Time) (k payments.APIKey, secret string, err error) {
	if err := o.named(); err != nil {
		return payments.APIKey{}, "", err
	}
	return o.store.createAPIKey(ctx, tenantID, scopes, expiresAt, func(k payments.APIKey) *payments.AuditEntry {
		made := map[string]any{"scopes": k.Scopes}
		if !k.ExpiresAt.IsZero() {
			made["expires_at"] = schema.NewTimestamp(k.ExpiresAt)
		}
		line := o.line("keys create", tenantID, k.ID, made)
		return &line
	})
}

// RevokeAPIKey is Store.RevokeAPIKey. CodeInvalid also without an actor.
func (o Operator) RevokeAPIKey(ctx context.Context, id string) error {
	if err := o.named(); err != nil {
		return err
	}
	return o.store.revokeAPIKey(ctx, id, func(id, tenantID string, ended bool) payments.AuditEntry {
		return o.line("keys revoke", tenantID, id, map[string]any{"ended": ended})
	})
}

func (o Operator) named() error {
	if o.op.Actor == "" {
		return &payments.Error{Code: payments.CodeInvalid, Field: "actor", Message: "is required: say who does this"}
	}
	return nil
}

func (o Operator) line(action, tenantID, target string, result map[string]any) payments.AuditEntry {
	document, _ := json.Marshal(result) // texts and a time
	return payments.AuditEntry{Actor: o.op.Actor, Action: action, Reason: o.op.Reason, TenantID: tenantID, Target: target, Result: document}
}

// withLine runs one statement in a transaction, with a line of the audit unless that is nil.
func (s *Store) withLine(ctx context.Context, line *payments.AuditEntry, queue func(*pgx.Batch)) error {
	return s.transact(ctx, func(tx *transaction) error {
		b := tx.batch()
		queue(b)
		if line != nil {
			s.queueAudit(b, *line)
		}
		return tx.commit(ctx, b)
	})
}
