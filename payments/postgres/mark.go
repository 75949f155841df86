package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// Mark reads what the database says of itself. CodeUnavailable.
func (s *Store) Mark(ctx context.Context) (payments.MarkState, error) {
	state, err := readMark(ctx, s.pool, s.now())
	return state, translate(err)
}

// RowQuerier is a pool, one connection or a transaction.
type RowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ReadMark reads what a database says of itself, for whoever has a connection and no Store.
func ReadMark(ctx context.Context, q RowQuerier) (payments.MarkState, error) {
	return readMark(ctx, q, nil)
}

func readMark(ctx context.Context, q RowQuerier, now *time.Time) (payments.MarkState, error) {
	var state payments.MarkState
	var at pgtype.Timestamptz
	var floors string
	// Without a prepared statement: a connection that was just made must cost no second round trip.
	err := q.QueryRow(ctx, query("mark"), pgx.QueryExecModeExec, now).Scan(
		&state.SystemID, &state.Timeline, &at, &state.Counter, &floors, &state.Rewind, &state.Now)
	if err != nil {
		return payments.MarkState{}, err
	}
	state.Now, state.At, state.Counted = state.Now.UTC(), instant(at), at.Valid
	if err := json.Unmarshal([]byte(floors), &state.Floors); err != nil {
		return payments.MarkState{}, payments.Errorf(payments.CodeInternal, "the floors of the mark cannot be read: %w", err)
	}
	return state, nil
}

// CountMark counts the database's mark up, unless somebody has within the last second, and returns it as it is then. atLeast is what the mark must
// stand at for it; a database that has been exchanged for an older one meanwhile is left as it is. CodeUnavailable.
func (s *Store) CountMark(ctx context.Context, atLeast int64, floors map[string]payments.StreamFloor) (counter int64, at time.Time, counted bool, err error) {
	if floors == nil {
		floors = map[string]payments.StreamFloor{}
	}
	text, err := json.Marshal(floors)
	if err != nil {
		return 0, at, false, payments.Errorf(payments.CodeInternal, "the floors of the mark cannot be written: %w", err)
	}
	err = s.pool.QueryRow(ctx, query("count_mark"), s.now(), atLeast, string(text)).Scan(&counter, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, time.Time{}, false, nil
	}
	return counter, at.UTC(), err == nil, translate(err)
}

// AcceptMark says that the database is right as it is: its mark stands at counter from now on, or higher. It fails while a rewind is running.
// CodeInvalid; CodeUnavailable.
func (s *Store) AcceptMark(ctx context.Context, counter int64, op payments.Operation, result []byte) error {
	return s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			var running []payments.Rewind
			b := tx.batch()
			b.Queue(query("running_rewind")).Query(collectRewinds(&running))
			if err := tx.send(ctx, b); err != nil {
				return err
			}
			if len(running) > 0 {
				return &payments.Error{Code: payments.CodeInvalid, Message: "a rewind is running, which accepts the mark when it is done: `oncepay rewind` follows it"}
			}
			b = tx.batch()
			b.Queue(query("accept_mark"), s.now(), counter)
			s.queueAudit(b, payments.AuditEntry{Actor: op.Actor, Reason: op.Reason, Action: "doctor --accept-mark", Result: result})
			return tx.commit(ctx, b)
		})
	})
}
