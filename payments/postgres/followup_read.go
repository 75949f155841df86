package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// FindFollowUp implements payments.FollowUpReader. CodeNotFound, also for what is a charge or a batch.
func (s *Store) FindFollowUp(ctx context.Context, tenantID string, id payments.ID) (payments.FollowUp, error) {
	list, err := s.readFollowUps(ctx, "find_follow_up", tenantID, id[:])
	if err != nil {
		return payments.FollowUp{}, err
	}
	if len(list) == 0 || !list[0].Kind.FollowUp() {
		return payments.FollowUp{}, payments.Errorf(payments.CodeNotFound, "there is no capture, cancel or refund %s", id.Hex())
	}
	return list[0], nil
}

// FollowUpsOf implements payments.FollowUpReader: the follow-ups of a charge of one kind, "" for all, as they were accepted. CodeNotFound: no such charge.
func (s *Store) FollowUpsOf(ctx context.Context, tenantID string, charge payments.ID, kind payments.Kind) ([]payments.FollowUp, error) {
	p, err := s.Find(ctx, tenantID, charge)
	if err != nil {
		return nil, err
	}
	if p.Kind != payments.KindCharge {
		return nil, notFound(charge)
	}
	return s.readFollowUps(ctx, "follow_ups_of", tenantID, charge[:], null(string(kind)))
}

// readFollowUps runs a statement that collectFollowUps reads.
func (s *Store) readFollowUps(ctx context.Context, statement string, params ...any) ([]payments.FollowUp, error) {
	rows, err := s.pool.Query(ctx, query(statement), params...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var found []row
	if err := collectFollowUps(&found)(rows); err != nil {
		return nil, translate(err)
	}
	list, shown := followUps(found), make([]payments.Payment, len(found))
	for i := range found {
		shown[i] = found[i].payment
	}
	if err := s.showPaused(ctx, shown); err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Payment = shown[i]
	}
	return list, nil
}

// WithRefunds are payments and follow-ups with what the latter have beside their rows, in the same order; a payment has number 0.
func (s *Store) WithRefunds(ctx context.Context, list []payments.Payment) ([]payments.FollowUp, error) {
	all := make([]payments.FollowUp, len(list))
	at := map[key]int{}
	var keys []key
	for i, p := range list {
		all[i].Payment = p
		if k := (key{p.TenantID, p.ID}); p.Kind.FollowUp() {
			at[k], keys = i, append(keys, k)
		}
	}
	if len(keys) == 0 {
		return all, nil
	}
	tenants, ids := keyArrays(keys)
	rows, err := s.pool.Query(ctx, query("refunds_of"), tenants, ids)
	if err != nil {
		return nil, translate(err)
	}
	var id []byte
	var tenant, refund string
	var number int64
	_, err = pgx.ForEachRow(rows, []any{&tenant, &id, &number, &refund}, func() error {
		if i, asked := at[key{tenant, payments.ID(id)}]; asked {
			all[i].Number, all[i].StripeRefund = number, refund
		}
		return nil
	})
	return all, translate(err)
}

// FollowUpState implements payments.FollowUps: what the owner of a follow-up must know beside its claim. CodeNotFound.
func (s *Store) FollowUpState(ctx context.Context, p payments.Payment) (payments.FollowUpState, error) {
	rows, err := s.pool.Query(ctx, query("follow_up_state"), p.TenantID, p.ID[:])
	if err != nil {
		return payments.FollowUpState{}, translate(err)
	}
	defer rows.Close()
	var state payments.FollowUpState
	found := false
	for rows.Next() {
		var number int64
		r, err := scanRow(rows, &number, &state.StripeRefund, &state.Ahead)
		if err != nil {
			return payments.FollowUpState{}, translate(err)
		}
		state.Target, found = r.payment, true
	}
	if err := rows.Err(); err != nil {
		return payments.FollowUpState{}, translate(err)
	}
	if !found {
		return payments.FollowUpState{}, payments.Errorf(payments.CodeNotFound, "there is no capture, cancel or refund %s", p.ID.Hex())
	}
	return state, nil
}

// CancelOpen implements payments.FollowUps.
func (s *Store) CancelOpen(ctx context.Context, charge payments.Payment) (c payments.OpenCancel, err error) {
	err = s.pool.QueryRow(ctx, query("cancel_open"), charge.TenantID, charge.ID[:]).Scan(&c.Open, &c.Forgotten)
	return c, translate(err)
}

// nameRefunds reads what Stripe calls the refunds among rows that are locked; where no row is a follow-up's it asks nothing.
func nameRefunds(ctx context.Context, tx *transaction, rows []row) error {
	at := map[key]int{}
	var keys []key
	for i := range rows {
		if rows[i].payment.Kind.FollowUp() {
			at[rows[i].key()], keys = i, append(keys, rows[i].key())
		}
	}
	if len(keys) == 0 {
		return nil
	}
	tenants, ids := keyArrays(keys)
	b := tx.batch()
	b.Queue(query("refunds_of"), tenants, ids).Query(func(found pgx.Rows) error {
		for found.Next() {
			var k key
			var id []byte
			var number int64
			var refund string
			if err := found.Scan(&k.tenant, &id, &number, &refund); err != nil {
				return err
			}
			copy(k.id[:], id)
			if i, asked := at[k]; asked {
				rows[i].number, rows[i].refund = number, refund
			}
		}
		return found.Err()
	})
	return tx.send(ctx, b)
}
