package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// Record implements payments.Store: it writes an outcome with its timeline entry and its event, if the claim's token is still in the ticket.
// Concurrent calls share their commits. CodeTicketLost; CodeInternal for a transition that the state machine does not have.
func (s *Store) Record(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	if r.Transition.ThenSend {
		return payments.Recorded{}, payments.Errorf(payments.CodeInternal, "a transition that sends at once is not recorded")
	}
	done, err := s.records.Do(ctx, r)
	return done, translate(err)
}

// recording is what one flush of Record knows.
type recording struct {
	batch   []payments.Recording
	now     time.Time
	rows    map[key]row
	changes []*change
	results []coalesce.Result[payments.Recorded]
}

func (s *Store) flushRecord(ctx context.Context, batch []payments.Recording) ([]coalesce.Result[payments.Recorded], error) {
	f := &recording{batch: batch, rows: make(map[key]row, len(batch)), results: make([]coalesce.Result[payments.Recorded], len(batch))}
	var messages []payments.OutboxItem
	err := s.transact(ctx, func(tx *transaction) error {
		if err := s.readOwned(ctx, tx, f); err != nil {
			return err
		}
		s.decideRecords(f)
		b := tx.batch()
		if len(f.changes) > 0 {
			slices.SortFunc(f.changes, func(a, b *change) int { return a.key().compare(b.key()) })
			if err := s.queueChanges(b, f.changes, f.now, &messages); err != nil {
				return err
			}
		}
		s.reached("record")
		return tx.commit(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	s.committed(messages)
	return f.results, nil
}

func claimKey(c payments.Claim) key { return key{c.Payment.TenantID, c.Payment.ID} }

// readOwned locks the tickets that hold the claims' tokens, and then reads all the payments with a newer snapshot.
func (s *Store) readOwned(ctx context.Context, tx *transaction, f *recording) error {
	order := make([]int, len(f.batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return claimKey(f.batch[i].Claim).compare(claimKey(f.batch[j].Claim)) })
	keys, tokens := make([]key, len(order)), make([][]byte, len(order))
	for at, i := range order {
		keys[at], tokens[at] = claimKey(f.batch[i].Claim), tokenParam(f.batch[i].Claim.Token)
	}
	tenants, ids := keyArrays(keys)
	b := tx.batch()
	b.Queue(query("lock_tickets"), tenants, ids, tokens, payments.SabotageNoTokenCheck).Query(drain)
	b.Queue(query("clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&f.now) })
	keys = slices.Compact(keys)
	tenants, ids = keyArrays(keys)
	var rows []row
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&rows))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	f.now = f.now.UTC()
	for _, r := range rows {
		f.rows[r.key()] = r
	}
	return nil
}

// drain reads rows that are locked and not looked at.
func drain(rows pgx.Rows) error {
	for rows.Next() {
	}
	return rows.Err()
}

// decideRecords settles each recording by the row that is there.
func (s *Store) decideRecords(f *recording) {
	writer := map[key]int{} // of two recordings of one payment only the first writes
	for i, r := range f.batch {
		k := claimKey(r.Claim)
		stored, there := f.rows[k]
		first, taken := writer[k]
		owner := there && !taken && (stored.holds(r.Claim.Token) || payments.SabotageNoTokenCheck)
		switch {
		case taken && f.batch[first].Claim.Token == r.Claim.Token:
			f.results[i] = f.results[first]
		case owner:
			c, err := s.recordChange(stored, r, f.now)
			if err != nil {
				f.results[i].Err = err
				continue
			}
			writer[k] = i
			f.changes = append(f.changes, c)
			f.results[i].Value = recorded(c)
		case there && !r.Claim.Token.IsZero() && stored.lastToken == r.Claim.Token:
			// Our own commit, whose answer was lost.
			f.results[i].Value = payments.Recorded{Payment: stored.payment, Sequence: stored.payment.Sequence}
			if r.Transition.Quiet(r.Claim.Payment) {
				f.results[i].Value.Sequence = 0
			}
		default:
			f.results[i].Err = ticketLost(k.id)
		}
	}
}

func (s *Store) recordChange(stored row, r payments.Recording, now time.Time) (*change, error) {
	p, t := stored.payment, r.Transition
	if !p.Status.CanMove(t.Status) && !payments.SabotageNoTokenCheck {
		return nil, impossible(p, t)
	}
	at := r.At
	if at.IsZero() {
		at = now
	}
	return s.newChange(p, t, r.Claim.Token, at, now.Add(r.Delay))
}

// recorded is the answer that a change gives.
func recorded(c *change) payments.Recorded {
	r := payments.Recorded{Payment: c.after}
	if len(c.events) > 0 {
		r.Sequence = c.after.Sequence
	}
	return r
}

func ticketLost(id payments.ID) error {
	return payments.Errorf(payments.CodeTicketLost, "somebody else owns the payment %s by now; nothing was written", id)
}

func impossible(p payments.Payment, t payments.Transition) error {
	return payments.Errorf(payments.CodeInternal, "the payment %s cannot go from %s to %s", p.ID, p.Status, t.Status)
}
