package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// queueChanges adds the statements that write changes, sorted by key, and collects the messages that the commit wants sent. now is the
// store's time.
func (s *Store) queueChanges(b *pgx.Batch, changes []*change, now time.Time, messages *[]payments.OutboxItem) error {
	if err := queuePayments(b, changes, now); err != nil {
		return err
	}
	queueTickets(b, changes)
	var hold *time.Time
	if d := s.hold(); d > 0 {
		hold = nullable(now.Add(d))
	}
	queueEvents(b, changes, hold, messages)
	for _, c := range changes {
		if c.letter != nil {
			s.queueTicketLetter(b, *c.letter, now, hold, messages)
		}
	}
	return nil
}

func queuePayments(b *pgx.Batch, changes []*change, now time.Time) error {
	n := len(changes)
	tenants, ids := keyArrays(changedKeys(changes))
	statuses, reasons, failures, intents, charges := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	captured, sequences, tries, rounds, inDoubt := make([]int64, n), make([]int64, n), make([]int32, n), make([]int32, n), make([]bool, n)
	absent, finalized := make([]*time.Time, n), make([]*time.Time, n)
	tokens, updated, cleared, adopts := make([][]byte, n), make([]time.Time, n), make([]bool, n), make([]bool, n)
	for i, c := range changes {
		p := c.after
		var err error
		if failures[i], err = encodeFailure(p.Failure); err != nil {
			return payments.Errorf(payments.CodeInternal, "the failure of %s cannot be written: %w", p.ID, err)
		}
		statuses[i], reasons[i], intents[i], charges[i] = string(p.Status), p.Reason, p.StripePaymentIntent, p.StripeCharge
		captured[i], sequences[i], tries[i], rounds[i], inDoubt[i] = p.AmountCaptured, p.Sequence, int32(p.Tries), int32(p.Rounds), p.InDoubt
		cleared[i], adopts[i], absent[i] = c.clearSubmit, c.adopts, nullable(p.AbsentAt)
		finalized[i], tokens[i], updated[i] = nullable(p.FinalizedAt), tokenParam(c.token), p.UpdatedAt
	}
	if slices.Contains(adopts, true) {
		b.Queue(query("revoke_provisional"), tenants, ids, intents, adopts)
		b.Queue(query("refuse_taken"), tenants, ids, intents, adopts, now)
	}
	b.Queue(query("write_payments"), tenants, ids, statuses, reasons, failures, intents, charges, captured, inDoubt, cleared, absent,
		tries, rounds, sequences, tokens, updated, finalized)
	return nil
}

func changedKeys(changes []*change) []key {
	keys := make([]key, len(changes))
	for i, c := range changes {
		keys[i] = c.key()
	}
	return keys
}

func queueTickets(b *pgx.Batch, changes []*change) {
	var done, due []key
	var lanes []int16
	var times []time.Time
	for _, c := range changes {
		if c.ended {
			continue
		}
		if !c.after.Status.HasTicket() {
			done = append(done, c.key())
			continue
		}
		due, lanes, times = append(due, c.key()), append(lanes, int16(c.after.Lane)), append(times, c.due)
	}
	if len(done) > 0 {
		tenants, ids := keyArrays(done)
		b.Queue(query("delete_tickets"), tenants, ids)
	}
	if len(due) > 0 {
		tenants, ids := keyArrays(due)
		b.Queue(query("set_tickets"), tenants, ids, lanes, times)
	}
}

func queueEvents(b *pgx.Batch, changes []*change, hold *time.Time, messages *[]payments.OutboxItem) {
	type place struct {
		key
		sequence int64
	}
	var keys []key
	var sequences []int64
	var at []time.Time
	var types, statuses, reasons, bodies []string
	items := map[place]payments.OutboxItem{}
	for _, c := range changes {
		for _, e := range c.events {
			keys, sequences, at = append(keys, c.key()), append(sequences, e.sequence), append(at, e.at)
			types, statuses, reasons = append(types, e.kind), append(statuses, string(c.after.Status)), append(reasons, c.after.Reason)
			bodies = append(bodies, string(e.body)) // as bytes they would be bytea where pgx does not ask for types
			items[place{c.key(), e.sequence}] = eventItem(c.after, e.sequence, e.kind, e.body)
		}
	}
	if len(keys) == 0 {
		return
	}
	tenants, ids := keyArrays(keys)
	b.Queue(query("write_events"), tenants, ids, sequences, at, types, statuses, reasons, bodies, hold).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var outbox int64
			var p place
			var id []byte
			if err := rows.Scan(&outbox, &p.tenant, &id, &p.sequence); err != nil {
				return err
			}
			copy(p.id[:], id)
			item, ok := items[p]
			if !ok {
				return fmt.Errorf("%w: an event that nobody wrote", errMapping)
			}
			item.ID = outbox
			*messages = append(*messages, item)
		}
		return rows.Err()
	})
}
