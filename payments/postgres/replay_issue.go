package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// letterLock is a dead letter that is locked.
type letterLock struct {
	id        string
	state     payments.DeadLetterState
	busy      bool // an unfinished replay has it
	key       key  // of its payment, unless it is a message
	ofMessage bool
}

// IssueReplayed implements payments.Replays, for dead letters of payments. In one transaction each: the ticket, the payment, its timeline, the dead
// letter and the item. An earlier attempt that was committed has ended the holding, so that nothing is issued twice.
func (s *Store) IssueReplayed(ctx context.Context, work []payments.ReplayWork) error {
	if len(work) == 0 {
		return nil
	}
	var messages []payments.OutboxItem
	err := s.write(ctx, func(ctx context.Context) error {
		messages = nil
		return s.transact(ctx, func(tx *transaction) error {
			held, states, now, err := s.lockHeld(ctx, tx, work)
			if err != nil {
				return err
			}
			running := make([]payments.ReplayWork, 0, len(held))
			var released itemEnds
			for i, w := range held {
				if states[i] == payments.ReplayRunning {
					running = append(running, w)
				} else {
					released.add(w, payments.ReplayOutcome{})
				}
			}
			f, err := s.lockIssues(ctx, tx, running, now)
			if err != nil {
				return err
			}
			b := tx.batch()
			if len(released.letters) > 0 {
				b.Queue(query("release_replay_items"), released.replays, released.letters)
			}
			if err := s.queueIssues(b, f, &messages); err != nil {
				return err
			}
			s.reached("issue_replayed")
			return tx.commit(ctx, b)
		})
	})
	if err == nil {
		s.committed(messages)
	}
	return err
}

// issuing is what one transaction issues.
type issuing struct {
	now     time.Time
	work    []payments.ReplayWork
	rows    map[key]row
	letters map[string]letterLock

	changes  []*change
	due      []key
	ends     itemEnds
	replayed []string // letters that are replayed now
	opened   []string // letters that stay open and are counted
}

func (s *Store) lockIssues(ctx context.Context, tx *transaction, work []payments.ReplayWork, now time.Time) (*issuing, error) {
	f := &issuing{now: now, work: work}
	var keys []key
	ids := make([]string, len(work))
	for i, w := range work {
		ids[i] = w.Letter.ID
		if w.Letter.PaymentID != nil {
			keys = append(keys, key{w.Letter.TenantID, *w.Letter.PaymentID})
		}
	}
	var err error
	if f.rows, err = s.lockEach(ctx, tx, keys); err != nil {
		return nil, err
	}
	if f.letters, err = s.lockLetters(ctx, tx, ids); err != nil {
		return nil, err
	}
	for _, w := range work {
		if err := f.decide(s, w); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// decide says what issuing one item comes to.
func (f *issuing) decide(s *Store, w payments.ReplayWork) error {
	letter := f.letters[w.Letter.ID]
	r, there := f.rows[letter.key]
	p := r.payment
	o := payments.ReplayOutcome{PaymentID: p.ID, Status: p.Status}
	switch {
	case !there:
		o.Result, o.Detail = payments.ReplaySkipped, "its payment is not there any more"
	case p.Status.Settled():
		o.Result, o.Detail = payments.ReplayAlreadySettled, p.Reason
		if letter.state == payments.DeadLetterOpen {
			f.replayed = append(f.replayed, letter.id)
		}
	case letter.state != payments.DeadLetterOpen:
		o.Result, o.Detail = payments.ReplaySkipped, "the dead letter is "+string(letter.state)+" by now"
	case p.Status == payments.StatusNeedsReview:
		o.Result, o.Detail = payments.ReplayFailedAgain, "it is for review: a person decides, by `oncepay payments resolve`"
		f.opened = append(f.opened, letter.id)
	case p.Status == payments.StatusStalled:
		t, err := payments.TakeUpAgain(p)
		if err != nil {
			return err
		}
		c, err := s.newChange(r, t, s.newToken(), f.now, f.now)
		if err != nil {
			return err
		}
		f.changes, o.Status = append(f.changes, c), t.Status
		f.replayed = append(f.replayed, letter.id)
	default: // it has its ticket: it goes on by itself, and now, unless its cancel comes before it
		if !r.parked() {
			f.due = append(f.due, letter.key)
		}
		f.replayed = append(f.replayed, letter.id)
	}
	f.ends.add(w, o)
	return nil
}

func (s *Store) queueIssues(b *pgx.Batch, f *issuing, messages *[]payments.OutboxItem) error {
	if len(f.changes) > 0 {
		slices.SortFunc(f.changes, func(a, b *change) int { return a.key().compare(b.key()) })
		if err := s.queueChanges(b, f.changes, f.now, messages); err != nil {
			return err
		}
	}
	if len(f.due) > 0 {
		tenants, ids := keyArrays(f.due)
		b.Queue(query("due_now"), tenants, ids, f.now)
	}
	letters, states, counts := []string{}, []string{}, []int32{}
	for _, id := range f.replayed {
		letters, states, counts = append(letters, id), append(states, string(payments.DeadLetterReplayed)), append(counts, 1)
	}
	for _, id := range f.opened {
		letters, states, counts = append(letters, id), append(states, string(payments.DeadLetterOpen)), append(counts, 1)
	}
	if len(letters) > 0 {
		b.Queue(query("move_letters"), letters, states, counts)
	}
	f.ends.queue(b, f.now)
	return nil
}

// lockEach locks the tickets and then the payments of keys, and reads both, as lockPayment does. Payments that are not there are left out.
func (s *Store) lockEach(ctx context.Context, tx *transaction, keys []key) (map[key]row, error) {
	found := map[key]row{}
	if len(keys) == 0 {
		return found, nil
	}
	slices.SortFunc(keys, key.compare)
	keys = slices.Compact(keys)
	tenants, ids := keyArrays(keys)
	tickets := map[key]bool{}
	b := tx.batch()
	b.Queue(query("lock_each_ticket"), tenants, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var k key
			var id []byte
			if err := rows.Scan(&k.tenant, &id); err != nil {
				return err
			}
			copy(k.id[:], id)
			tickets[k] = true
		}
		return rows.Err()
	})
	b.Queue(query("lock_each_payment"), tenants, ids, s.now())
	var current []row
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&current))
	if err := tx.send(ctx, b); err != nil {
		return nil, err
	}
	if err := nameRefunds(ctx, tx, current); err != nil {
		return nil, err
	}
	for _, r := range current {
		if tickets[r.key()] != (r.ticket != nil) {
			return nil, errTicketCame
		}
		found[r.key()] = r
	}
	return found, nil
}

func (s *Store) lockLetters(ctx context.Context, tx *transaction, ids []string) (map[string]letterLock, error) {
	found := map[string]letterLock{}
	b := tx.batch()
	b.Queue(query("lock_letters"), ids)
	b.Queue(query("read_locked_letters"), ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var l letterLock
			var state string
			var payment []byte
			if err := rows.Scan(&l.id, &state, &l.busy, &l.key.tenant, &payment, &l.ofMessage); err != nil {
				return err
			}
			l.state = payments.DeadLetterState(state)
			copy(l.key.id[:], payment)
			found[l.id] = l
		}
		return rows.Err()
	})
	return found, tx.send(ctx, b)
}
