package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// RefusedBefore tells which of the messages have a dead letter that nobody has replayed: they were refused, and their senders were told so.
func (s *Store) RefusedBefore(ctx context.Context, messages []payments.MessageOrigin) (map[payments.MessageOrigin]bool, error) {
	streams, created, sequences := make([]string, len(messages)), make([]time.Time, len(messages)), make([]int64, len(messages))
	for i, m := range messages {
		streams[i], created[i], sequences[i] = m.Stream, m.StreamCreated, int64(m.Sequence)
	}
	rows, err := s.pool.Query(ctx, query("letters_standing"), streams, created, sequences)
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	refused := map[payments.MessageOrigin]bool{}
	for _, n := range found {
		refused[messages[n-1]] = true
	}
	return refused, translate(err)
}

// restoreFollowUp does so for one capture, cancel or refund, in a transaction of its own, since it is decided under a lock of its charge.
func (s *Store) restoreFollowUp(ctx context.Context, r payments.Rewind, hold time.Duration, f payments.ForgottenPayment, i int, account AccountOf, done *payments.Restored) (payments.Rewind, error) {
	a, _, err := s.prepareFollowUp(payments.FollowUpRequest{Intent: f.Intent, Lane: f.Lane})
	if err != nil {
		return r, err
	}
	a.forgotten = true
	missing, err := s.missingTenants(ctx, []string{a.Intent.TenantID})
	if err != nil {
		return r, translate(err)
	}
	if missing[a.Intent.TenantID] {
		done.Unknown[i] = a.Intent.TenantID
		return r, nil
	}
	if a.Intent.Kind == payments.KindCancel {
		if r, err = s.doubtCanceled(ctx, r, hold, a, f, account); err != nil {
			return r, err
		}
	}
	stored := 0
	next, err := s.rewinding(ctx, r, hold, func(ctx context.Context, tx *transaction, r *payments.Rewind, now time.Time) ([]payments.OutboxItem, error) {
		delete(done.Conflicts, i)
		delete(done.Refused, i)
		answer, _, err := s.admitFollowUp(ctx, tx, a, false)
		if err != nil {
			return nil, err
		}
		switch stored = 0; answer.Verdict {
		case payments.VerdictStored:
			stored = 1
		case payments.VerdictConflict:
			done.Conflicts[i] = answer.Differs
			return nil, nil
		case payments.VerdictExists:
		default:
			done.Refused[i] = answer.Why
			return nil, nil
		}
		asked := *r
		asked.Since = earlier(r.Since, f.StoredAt)
		if a.lookOnly { // as if sent so long ago that Stripe may have forgotten its key
			asked.Since = earlier(asked.Since, now.Add(-payments.AbsenceAfter))
		}
		in, messages, err := s.doubt(ctx, tx, asked, now, []key{a.key()}, account)
		r.Progress.Doubted += in.n
		r.Progress.Restored += stored
		return messages, err
	})
	done.Stored += stored
	return next, err
}

// doubtCanceled makes the charge of a cancel in doubt. What may have been canceled already, and came again in the meantime, is looked up then before it is
// sent, and the look-up asks for the cancel.
func (s *Store) doubtCanceled(ctx context.Context, r payments.Rewind, hold time.Duration, a *followUpAdmission, f payments.ForgottenPayment, account AccountOf) (payments.Rewind, error) {
	return s.rewinding(ctx, r, hold, func(ctx context.Context, tx *transaction, r *payments.Rewind, now time.Time) ([]payments.OutboxItem, error) {
		asked := *r
		asked.Since = earlier(r.Since, f.StoredAt)
		in, messages, err := s.doubt(ctx, tx, asked, now, []key{a.charge}, account)
		r.Progress.Doubted += in.n
		return messages, err
	})
}
