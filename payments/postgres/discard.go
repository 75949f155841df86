package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// discardAtOnce bounds the dead letters of one transaction; each has its line in the audit.
const discardAtOnce = 500

// replayHasIt is why a dead letter of an unfinished replay is not discarded.
const replayHasIt = "a replay has it: wait until that has ended, or cancel it by `oncepay replays cancel`"

// Discard gives up the open dead letters of the filter, at most limit of them unless it is 0, those seen first. A stalled payment is canceled by the same transaction; one that may have been charged or goes
// on is refused, and its dead letter stays open; so is what a replay has. CodeInvalid, also while a rewind is running. After an error some may have been discarded.
func (s *Store) Discard(ctx context.Context, f payments.LetterFilter, limit int, op payments.Operation) (payments.DiscardResult, error) {
	var all payments.DiscardResult
	if op.Actor == "" {
		return all, &payments.Error{Code: payments.CodeInvalid, Field: "actor", Message: "is required: say who discards"}
	}
	if err := checkReplayFilter(f); err != nil {
		return all, err
	}
	filter, err := filterDocument(f)
	if err != nil {
		return all, err
	}
	var ids []string
	err = candidates(ctx, s.pool, f, func(c candidate) bool {
		ids = append(ids, c.letterID)
		return limit == 0 || len(ids) < limit
	})
	if err != nil {
		return all, translate(err)
	}
	for chunk := range slices.Chunk(ids, discardAtOnce) {
		done, err := s.discardChunk(ctx, chunk, payments.AuditEntry{Actor: op.Actor, Action: "dlq discard", Reason: op.Reason, TenantID: f.TenantID, Filter: filter})
		if err != nil {
			return all, err
		}
		all.Discarded, all.Canceled, all.Refused = all.Discarded+done.Discarded, all.Canceled+done.Canceled, append(all.Refused, done.Refused...)
	}
	return all, nil
}

// PreviewDiscard tells what Discard of the same would do now; it changes nothing. CodeInvalid.
func (s *Store) PreviewDiscard(ctx context.Context, f payments.LetterFilter, limit int) (payments.DiscardPreview, error) {
	v := payments.DiscardPreview{Amount: map[string]int64{}}
	if err := checkReplayFilter(f); err != nil {
		return v, err
	}
	err := candidates(ctx, s.pool, f, func(c candidate) bool {
		v.Count++
		refused := func(why string) {
			v.Refused = append(v.Refused, payments.RefusedLetter{LetterID: c.letterID, Why: why})
		}
		_, wrong := payments.Discard(payments.Payment{Status: c.status, InDoubt: c.inDoubt})
		switch goesOn := !c.ofMessage && c.status != ""; {
		case c.busy:
			refused(replayHasIt)
		case c.settled():
			v.Settled++
		case goesOn && wrong != nil:
			refused(wrong.Error())
		case goesOn:
			v.Canceled++
		}
		if c.money == nil {
			v.Unpriced++
		}
		addMoney(v.Amount, c.money)
		return limit == 0 || v.Count < limit
	})
	return v, translate(err)
}

func (s *Store) discardChunk(ctx context.Context, ids []string, line payments.AuditEntry) (payments.DiscardResult, error) {
	var done payments.DiscardResult
	var messages []payments.OutboxItem
	token := s.newToken() // names this very write, should the answer to its commit get lost
	err := s.write(ctx, func(ctx context.Context) error {
		done, messages = payments.DiscardResult{}, nil
		return s.transact(ctx, func(tx *transaction) error {
			if err := s.notRewinding(ctx, tx); err != nil {
				return err
			}
			letters, rows, behind, now, err := s.lockDiscards(ctx, tx, ids)
			if err != nil {
				return err
			}
			var changes []*change
			var gone []string
			for _, id := range ids {
				l, there := letters[id]
				if !there || l.state != payments.DeadLetterOpen {
					continue // somebody else was faster
				}
				c, refusal, err := s.discardOne(l, rows, token, now)
				switch {
				case err != nil:
					return err
				case refusal != "":
					done.Refused = append(done.Refused, payments.RefusedLetter{LetterID: id, Why: refusal})
					continue
				case c != nil:
					changes = append(changes, c)
				}
				gone = append(gone, id)
			}
			done.Discarded, done.Canceled = len(gone), len(changes)
			b := tx.batch()
			if len(changes) > 0 {
				slices.SortFunc(changes, func(a, b *change) int { return a.key().compare(b.key()) })
				if err := s.queueChanges(b, changes, now, &messages); err != nil {
					return err
				}
				queueWake(b, changes, behind, rows, now)
			}
			if len(gone) > 0 {
				b.Queue(query("move_letters"), gone, slices.Repeat([]string{string(payments.DeadLetterDiscarded)}, len(gone)), make([]int32, len(gone)))
			}
			line.Result, _ = json.Marshal(map[string]any{"discarded": done.Discarded, "canceled": done.Canceled, "refused": len(done.Refused)})
			if len(ids) == 1 {
				line.Target = ids[0]
			}
			s.queueAudit(b, line)
			s.reached("discard")
			return tx.commit(ctx, b)
		})
	})
	if err == nil {
		s.committed(messages)
	}
	return done, err
}

// lockDiscards locks the payments of dead letters, what waits behind those that are captures, cancels or refunds, and then the letters, in the order of everybody.
func (s *Store) lockDiscards(ctx context.Context, tx *transaction, ids []string) (letters map[string]letterLock, rows map[key]row, behind map[key][]key, now time.Time, err error) {
	var named []payments.DeadLetter
	b := tx.batch()
	b.Queue(query("clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
	b.Queue(query("letters_by_id"), ids).Query(func(r pgx.Rows) (err error) {
		named, err = collectLetters(r)
		return err
	})
	if err = tx.send(ctx, b); err != nil {
		return nil, nil, nil, now, err
	}
	var keys []key
	for _, d := range named {
		if d.Origin.Stream == "" && d.PaymentID != nil {
			keys = append(keys, key{d.TenantID, *d.PaymentID})
		}
	}
	if behind, err = s.nextFollowUps(ctx, tx, keys); err != nil {
		return nil, nil, nil, now, err
	}
	for _, next := range behind {
		keys = append(keys, next...)
	}
	if rows, err = s.lockEach(ctx, tx, keys); err != nil {
		return nil, nil, nil, now, err
	}
	letters, err = s.lockLetters(ctx, tx, ids)
	return letters, rows, behind, now.UTC(), err
}

// discardOne says what discarding does to the dead letter's payment, or why it must not be.
func (s *Store) discardOne(l letterLock, rows map[key]row, token payments.Token, now time.Time) (c *change, refusal string, err error) {
	r, there := rows[l.key]
	switch {
	case l.busy:
		return nil, replayHasIt, nil
	case l.ofMessage, !there, r.payment.Status.Settled():
		return nil, "", nil
	}
	t, wrong := payments.Discard(r.payment)
	if wrong != nil {
		return nil, wrong.Error(), nil
	}
	c, err = s.newChange(r, t, token, now, now)
	return c, "", err
}
