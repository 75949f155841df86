package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// prepareLetter fills in what a dead letter's writer may leave out, and makes its text such as PostgreSQL can keep: a message that nobody
// could read must not be refused here again.
func (s *Store) prepareLetter(d payments.DeadLetter) payments.DeadLetter {
	if d.ID == "" {
		var random [16]byte
		s.opts.Token(random[:])
		d.ID = "dl_" + hex.EncodeToString(random[:])
	}
	if d.Payload != nil && d.PayloadSHA256 == ([32]byte{}) {
		d.PayloadSHA256 = sha256.Sum256(d.Payload)
	}
	if d.PayloadLength == 0 {
		d.PayloadLength = len(d.Payload)
	}
	if d.Reason == payments.ReasonCardNumber {
		d.Payload = nil
	}
	d.TenantID, d.IdempotencyKey = sanitised(d.TenantID, nameMax), sanitised(d.IdempotencyKey, nameMax)
	d.Message, d.Origin.Subject = sanitised(d.Message, messageMax), sanitised(d.Origin.Subject, messageMax)
	d.Origin.Stream = sanitised(d.Origin.Stream, nameMax)
	return d
}

// letterParams are the parameters $1 to $15 of the statements about messages.
func letterParams(d payments.DeadLetter) []any {
	return []any{
		d.ID, d.TenantID, d.IdempotencyKey, paymentParam(d.PaymentID), string(d.Reason), d.Message, d.Origin.Stream, micro(d.Origin.StreamCreated),
		int64(d.Origin.Sequence), d.Origin.Subject, d.Headers, d.Payload, d.PayloadLength, d.PayloadSHA256[:], d.Tries,
	}
}

func paymentParam(id *payments.ID) []byte {
	if id == nil {
		return nil
	}
	return id[:]
}

// scanLetter reads {letter} and what the statement adds.
func scanLetter(rows pgx.Rows, more ...any) (payments.DeadLetter, error) {
	var d payments.DeadLetter
	var id, sum []byte
	var reason, state, kind string
	var created pgtype.Timestamptz
	var sequence int64
	targets := append([]any{
		&d.ID, &d.TenantID, &d.IdempotencyKey, &id, &reason, &d.Message, &d.Origin.Stream, &created, &sequence, &d.Origin.Subject, &d.Headers,
		&d.Payload, &d.PayloadLength, &sum, &d.Tries, &state, &d.Replays, &d.FirstSeen, &d.LastSeen, &kind,
	}, more...)
	if err := rows.Scan(targets...); err != nil {
		return d, err
	}
	if len(id) == len(payments.ID{}) {
		d.PaymentID = (*payments.ID)(id)
	}
	if len(sum) != len(d.PayloadSHA256) {
		return d, fmt.Errorf("%w: a hash of %d bytes", errMapping, len(sum))
	}
	copy(d.PayloadSHA256[:], sum)
	d.Reason, d.State, d.PaymentKind = payments.Reason(reason), payments.DeadLetterState(state), payments.Kind(kind)
	d.Origin.StreamCreated, d.Origin.Sequence = instant(created), uint64(sequence)
	d.FirstSeen, d.LastSeen = d.FirstSeen.UTC(), d.LastSeen.UTC()
	return d, nil
}

// queueTicketLetter adds the dead letter of a payment and its copy for the outbox.
func (s *Store) queueTicketLetter(b *pgx.Batch, d payments.DeadLetter, now time.Time, hold *time.Time, messages *[]payments.OutboxItem) {
	d = s.prepareLetter(d)
	b.Queue(query("write_ticket_letter"), d.ID, d.TenantID, d.IdempotencyKey, paymentParam(d.PaymentID), string(d.Reason), d.Message, d.Headers,
		d.Payload, d.PayloadLength, d.PayloadSHA256[:], d.Tries, d.Origin.Subject, micro(now), hold).Query(collectLetter(messages))
}

// collectLetter is the callback of a statement that returns a dead letter and the number of its outbox row, 0 for none.
func collectLetter(messages *[]payments.OutboxItem) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var outbox int64
			d, err := scanLetter(rows, &outbox)
			if err != nil {
				return err
			}
			if outbox == 0 {
				continue
			}
			item, err := letterItem(d, outbox)
			if err != nil {
				return err
			}
			*messages = append(*messages, item)
		}
		return rows.Err()
	}
}
