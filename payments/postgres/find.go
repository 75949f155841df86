package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

// Find implements payments.Store. CodeNotFound.
func (s *Store) Find(ctx context.Context, tenantID string, id payments.ID) (payments.Payment, error) {
	return s.findOne(ctx, id, "find", tenantID, id[:])
}

// FindByKey reads one payment by its idempotency key. CodeNotFound.
func (s *Store) FindByKey(ctx context.Context, tenantID, idempotencyKey string) (payments.Payment, error) {
	return s.Find(ctx, tenantID, payments.NewID(tenantID, idempotencyKey))
}

// FindAnywhere reads one payment by its id alone, for operators only: whoever speaks for a tenant uses Find. CodeNotFound.
func (s *Store) FindAnywhere(ctx context.Context, id payments.ID) (payments.Payment, error) {
	return s.findOne(ctx, id, "find_anywhere", id[:])
}

func (s *Store) findOne(ctx context.Context, id payments.ID, statement string, params ...any) (payments.Payment, error) {
	rows, err := s.read(ctx, statement, params...)
	if err != nil {
		return payments.Payment{}, err
	}
	if len(rows) == 0 {
		return payments.Payment{}, notFound(id)
	}
	list := []payments.Payment{rows[0].payment}
	err = s.showPaused(ctx, list)
	return list[0], err
}

// read runs a statement that returns {payment} and {ticket}.
func (s *Store) read(ctx context.Context, statement string, params ...any) ([]row, error) {
	rows, err := s.pool.Query(ctx, query(statement), params...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var found []row
	if err := collect(&found)(rows); err != nil {
		return nil, translate(err)
	}
	return found, nil
}

// Timeline returns all that happened to a payment, oldest first. The first entry, number 0, is its being received, which no event tells of.
// CodeNotFound.
func (s *Store) Timeline(ctx context.Context, tenantID string, id payments.ID) ([]payments.Entry, error) {
	p, err := s.Find(ctx, tenantID, id)
	if err != nil {
		return nil, err
	}
	var entries []payments.Entry
	if p.Kind != payments.KindBatch { // which is not received: it is done with its commit
		p.Status = payments.StatusReceived
		entries = append(entries, payments.Entry{At: p.CreatedAt, Type: document.EventType(p), Status: p.Status})
	}
	rows, err := s.pool.Query(ctx, query("timeline"), tenantID, id[:])
	if err != nil {
		return nil, translate(err)
	}
	more, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (payments.Entry, error) {
		var e payments.Entry
		var status string
		err := r.Scan(&e.Sequence, &e.At, &e.Type, &status, &e.Reason)
		e.At, e.Status = e.At.UTC(), payments.Status(status)
		return e, err
	})
	return append(entries, more...), translate(err)
}
