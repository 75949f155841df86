package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// ClaimReplayItems implements payments.Replays: it holds items of running replays, those made first first. An answer that got lost leaves items held
// until that ends.
func (s *Store) ClaimReplayItems(ctx context.Context, limit int, hold time.Duration) (payments.ReplayClaims, error) {
	var claims payments.ReplayClaims
	type job struct {
		id   string
		wait float64
	}
	rows, err := s.pool.Query(ctx, query("running_replays"), s.now())
	if err != nil {
		return claims, translate(err)
	}
	jobs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (j job, err error) {
		err = r.Scan(&j.id, &j.wait)
		return j, err
	})
	if err != nil {
		return claims, translate(err)
	}
	for _, j := range jobs {
		left := limit - len(claims.Work)
		switch wait := time.Duration(min(j.wait, 3600) * float64(time.Second)); {
		case j.id == "":
			claims.Open = true
		case wait > 0:
			if claims.Wait == 0 || wait < claims.Wait {
				claims.Wait = wait
			}
		case left > 0:
			work, err := s.claimItems(ctx, j.id, left, hold)
			if err != nil {
				return claims, err
			}
			claims.Work = append(claims.Work, work...)
		}
	}
	return claims, nil
}

func (s *Store) claimItems(ctx context.Context, replay string, limit int, hold time.Duration) (work []payments.ReplayWork, err error) {
	rows, err := s.pool.Query(ctx, query("claim_replay_items"), replay, limit, hold.Microseconds(), s.now())
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		w := payments.ReplayWork{ReplayID: replay}
		var changes string
		if w.Letter, err = scanLetter(rows, &w.Starts, &w.HeldUntil, &changes); err == nil && changes != "" {
			err = json.Unmarshal([]byte(changes), &w.Set)
		}
		if err != nil {
			return nil, translate(err)
		}
		work = append(work, w)
	}
	return work, translate(rows.Err())
}

// StartReplayed implements payments.Replays. It is not repeated when its answer got lost: a count that is one too high would bury a healthy message.
func (s *Store) StartReplayed(ctx context.Context, w payments.ReplayWork) (starts int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, translate(err)
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.FlushTimeout)
	defer cancel()
	err = s.pool.QueryRow(own, query("start_replay_item"), w.ReplayID, w.Letter.ID, w.HeldUntil).Scan(&starts)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return starts, translate(err)
}

// FinishReplayed implements payments.Replays. A dead letter whose message was replayed in vain is the same one, counted, and told again.
func (s *Store) FinishReplayed(ctx context.Context, w payments.ReplayWork, o payments.ReplayOutcome) error {
	var messages []payments.OutboxItem
	err := s.write(ctx, func(ctx context.Context) error {
		messages = nil
		return s.transact(ctx, func(tx *transaction) error {
			held, _, now, err := s.lockHeld(ctx, tx, []payments.ReplayWork{w})
			if err != nil || len(held) == 0 {
				return err // somebody else has finished it since; or an earlier attempt was committed
			}
			b := tx.batch()
			ends := &itemEnds{}
			ends.add(w, o)
			switch o.Result {
			case "", payments.ReplayAlreadySettled, payments.ReplaySucceeded:
				b.Queue(query("move_letters"), []string{w.Letter.ID}, []string{string(payments.DeadLetterReplayed)}, []int32{1})
			case payments.ReplayFailedAgain, payments.ReplayConflict:
				var hold *time.Time
				if d := s.hold(); d > 0 {
					hold = nullable(now.Add(d))
				}
				b.Queue(query("reopen_letter"), w.Letter.ID, null(string(o.Reason)), null(sanitised(o.Message, messageMax)), now, hold).Query(collectLetter(&messages))
			}
			ends.queue(b, now)
			s.reached("finish_replayed")
			return tx.commit(ctx, b)
		})
	})
	if err == nil {
		s.committed(messages)
	}
	return err
}

// itemEnds are the columns of items that are issued or finished.
type itemEnds struct {
	replays, letters, tenants, results, statuses, details []string
	ids                                                   [][]byte
}

func (e *itemEnds) add(w payments.ReplayWork, o payments.ReplayOutcome) {
	var id []byte
	if o.PaymentID != (payments.ID{}) {
		id = o.PaymentID[:]
	}
	e.replays, e.letters, e.tenants = append(e.replays, w.ReplayID), append(e.letters, w.Letter.ID), append(e.tenants, w.Letter.TenantID)
	e.ids, e.results, e.statuses = append(e.ids, id), append(e.results, string(o.Result)), append(e.statuses, string(o.Status))
	e.details = append(e.details, sanitised(o.Detail, messageMax))
}

func (e *itemEnds) queue(b *pgx.Batch, now time.Time) {
	if len(e.letters) > 0 {
		b.Queue(query("finish_replay_items"), e.replays, e.letters, e.tenants, e.ids, e.results, e.statuses, e.details, now)
	}
}

// lockHeld locks those items that are held as the work says, and returns them with the state of their replays.
func (s *Store) lockHeld(ctx context.Context, tx *transaction, work []payments.ReplayWork) (held []payments.ReplayWork, states []payments.ReplayState, now time.Time, err error) {
	replays, letters, until := make([]string, len(work)), make([]string, len(work)), make([]time.Time, len(work))
	place := map[[2]string]payments.ReplayWork{}
	for i, w := range work {
		replays[i], letters[i], until[i] = w.ReplayID, w.Letter.ID, w.HeldUntil
		place[[2]string{w.ReplayID, w.Letter.ID}] = w
	}
	b := tx.batch()
	b.Queue(query("clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
	b.Queue(query("lock_held_items"), replays, letters, until).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var replay, letter, state string
			if err := rows.Scan(&replay, &letter, &state); err != nil {
				return err
			}
			held, states = append(held, place[[2]string{replay, letter}]), append(states, payments.ReplayState(state))
		}
		return rows.Err()
	})
	err = tx.send(ctx, b)
	return held, states, now.UTC(), err
}

// WatchReplays implements payments.Replays.
func (s *Store) WatchReplays(ctx context.Context) (finished int, err error) {
	err = s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			b := tx.batch()
			b.Queue(query("lock_watching"))
			b.Queue(query("watch_replays"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&finished) })
			b.Queue(query("skip_canceled_items"), s.now())
			s.reached("watch_replays")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return 0, err
	}
	// In a transaction of its own: it must see what others have finished meanwhile.
	return finished, s.write(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, query("complete_replays"), s.now())
		return err
	})
}
