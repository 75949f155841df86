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

// BeginRewind makes a job that a server runs, unless one is running: then that is returned, and began is false. It writes the audit's row. since is
// moved back to the time of the database's mark, should that be earlier: what came after it may be forgotten. CodeInvalid: since lies in the
// future; CodeUnavailable.
func (s *Store) BeginRewind(ctx context.Context, since time.Time, op payments.Operation) (r payments.Rewind, began bool, err error) {
	state, err := s.Mark(ctx)
	if err != nil {
		return r, false, err
	}
	if since.After(state.Now) {
		return r, false, &payments.Error{Code: payments.CodeInvalid, Field: "since", Message: "lies in the future"}
	}
	if state.Counted && state.At.Before(since) {
		since = state.At
	}
	err = s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) (err error) {
			r, began, err = s.beginRewind(ctx, tx, since, op)
			return err
		})
	})
	return r, began, err
}

func (s *Store) beginRewind(ctx context.Context, tx *transaction, since time.Time, op payments.Operation) (r payments.Rewind, began bool, err error) {
	progress, err := json.Marshal(payments.RewindProgress{Step: payments.RewindSettle})
	if err != nil {
		return r, false, err
	}
	var made, running []payments.Rewind
	b := tx.batch()
	b.Queue(query("begin_rewind"), s.now(), micro(since), sanitised(op.Actor, nameMax), null(sanitised(op.Reason, messageMax)), string(progress)).Query(collectRewinds(&made))
	b.Queue(query("running_rewind")).Query(collectRewinds(&running))
	if err := tx.send(ctx, b); err != nil {
		return r, false, err
	}
	b = tx.batch()
	switch {
	case len(made) > 0:
		filter, err := json.Marshal(map[string]time.Time{"since": made[0].Since})
		if err != nil {
			return r, false, err
		}
		s.queueAudit(b, payments.AuditEntry{Actor: op.Actor, Reason: op.Reason, Action: "rewind", Filter: filter, Result: auditedRewind(made[0])})
		r, began = made[0], true
	case len(running) > 0:
		r = running[0]
	default:
		return r, false, errRowGone // it has just ended
	}
	return r, began, tx.commit(ctx, b)
}

// Rewind reads one job. CodeNotFound; CodeUnavailable.
func (s *Store) Rewind(ctx context.Context, id int64) (payments.Rewind, error) {
	list, err := s.rewinds(ctx, "find_rewind", id)
	if err == nil && len(list) == 0 {
		return payments.Rewind{}, payments.Errorf(payments.CodeNotFound, "there is no rewind %d", id)
	}
	if err != nil {
		return payments.Rewind{}, err
	}
	return list[0], nil
}

// HoldRewind takes the running rewind for so long, if there is one that nobody holds. CodeUnavailable.
func (s *Store) HoldRewind(ctx context.Context, hold time.Duration) (r payments.Rewind, held bool, err error) {
	list, err := s.rewinds(ctx, "hold_rewind", s.now(), hold.Microseconds())
	if err != nil || len(list) == 0 {
		return payments.Rewind{}, false, err
	}
	return list[0], true, nil
}

// GoOn moves the hold on and writes down how far the rewind is. CodeTicketLost: somebody else holds it by now, or it has ended.
func (s *Store) GoOn(ctx context.Context, r payments.Rewind, hold time.Duration) (payments.Rewind, error) {
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			next, _, err := s.goOn(ctx, tx, r, hold)
			if err != nil {
				return err
			}
			if err := tx.commit(ctx, tx.batch()); err != nil {
				return err
			}
			r = next
			return nil
		})
	})
	return r, err
}

// goOn is GoOn as the first statement of a transaction; it returns the store's time.
func (s *Store) goOn(ctx context.Context, tx *transaction, r payments.Rewind, hold time.Duration) (payments.Rewind, time.Time, error) {
	progress, err := json.Marshal(r.Progress)
	if err != nil {
		return r, time.Time{}, err
	}
	var now time.Time
	lost := false
	b := tx.batch()
	b.Queue(query("go_on_rewind"), s.now(), r.ID, r.HeldUntil, hold.Microseconds(), string(progress), sanitised(r.Detail, messageMax)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&r.HeldUntil, &now)
		if lost = errors.Is(err, pgx.ErrNoRows); lost {
			return nil
		}
		return err
	})
	if err := tx.send(ctx, b); err != nil {
		return r, now, err
	}
	if lost {
		return r, now, payments.Errorf(payments.CodeTicketLost, "somebody else runs the rewind %d by now, or it has ended", r.ID)
	}
	return r, now.UTC(), nil
}

// FinishRewind ends a rewind. One that is completed accepts the mark: it stands at counter from now on. CodeTicketLost: it has ended already, or is
// somebody else's by now.
func (s *Store) FinishRewind(ctx context.Context, r payments.Rewind, state payments.RewindState, counter int64) (payments.Rewind, error) {
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			if _, _, err := s.goOn(ctx, tx, r, time.Minute); err != nil {
				return err
			}
			var ended []payments.Rewind
			b := tx.batch()
			b.Queue(query("end_rewind"), s.now(), r.ID, string(state), sanitised(r.Detail, messageMax)).Query(collectRewinds(&ended))
			if err := tx.send(ctx, b); err != nil {
				return err
			}
			if len(ended) == 0 {
				return payments.Errorf(payments.CodeTicketLost, "the rewind %d has ended", r.ID)
			}
			b = tx.batch()
			if state == payments.RewindCompleted {
				b.Queue(query("accept_mark"), s.now(), counter)
			}
			s.queueAudit(b, payments.AuditEntry{Actor: r.Actor, Reason: r.Reason, Action: "rewind", Result: auditedRewind(ended[0])})
			if err := tx.commit(ctx, b); err != nil {
				return err
			}
			r = ended[0]
			return nil
		})
	})
	return r, err
}

// auditedRewind is what the audit keeps of a rewind's state.
func auditedRewind(r payments.Rewind) []byte {
	text, err := json.Marshal(struct {
		Rewind int64                `json:"rewind"`
		State  payments.RewindState `json:"state"`
		payments.RewindProgress
	}{r.ID, r.State, r.Progress})
	if err != nil {
		return nil // numbers and words have a form in JSON
	}
	return text
}

func (s *Store) rewinds(ctx context.Context, statement string, args ...any) (list []payments.Rewind, err error) {
	rows, err := s.pool.Query(ctx, query(statement), args...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	err = collectRewinds(&list)(rows)
	return list, translate(err)
}

const rewindColumns = `r.id, r.state, r.since, r.actor, coalesce(r.reason, ''), r.progress::text, coalesce(r.detail, ''), r.created_at, r.updated_at, r.finished_at, r.held_until`

// collectRewinds is the callback of a statement that returns {rewind}.
func collectRewinds(into *[]payments.Rewind) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var r payments.Rewind
			var state, progress string
			var finished, held pgtype.Timestamptz
			if err := rows.Scan(&r.ID, &state, &r.Since, &r.Actor, &r.Reason, &progress, &r.Detail, &r.CreatedAt, &r.UpdatedAt, &finished, &held); err != nil {
				return err
			}
			r.State, r.Since, r.CreatedAt, r.UpdatedAt = payments.RewindState(state), r.Since.UTC(), r.CreatedAt.UTC(), r.UpdatedAt.UTC()
			r.FinishedAt, r.HeldUntil = instant(finished), instant(held)
			if err := json.Unmarshal([]byte(progress), &r.Progress); err != nil {
				return err
			}
			*into = append(*into, r)
		}
		return rows.Err()
	}
}
