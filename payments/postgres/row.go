package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// row is a payment as it is stored, with its ticket.
type row struct {
	payment            payments.Payment
	fingerprint        [32]byte
	fingerprintVersion int
	lastToken          payments.Token
	ticket             *payments.Ticket // nil: none

	// Of a follow-up, where the statement asked for them.
	number int64
	refund string
}

func (r row) key() key { return key{r.payment.TenantID, r.payment.ID} }

// followUp is the row as a follow-up; number and refund have been read.
func (r row) followUp() payments.FollowUp {
	return payments.FollowUp{Payment: r.payment, Number: r.number, StripeRefund: r.refund}
}

// naming is the row with what Stripe calls its refund from now on, when that is known.
func (r row) naming(refund *payments.Refund) row {
	if refund != nil && refund.ID != "" {
		r.refund = sanitised(refund.ID, nameMax)
	}
	return r
}

// holds reports whether the token stands in the payment's ticket.
func (r row) holds(t payments.Token) bool {
	return r.ticket != nil && !t.IsZero() && r.ticket.Token == t
}

// scanned are the targets of the columns that need work after the scan.
type scanned struct {
	id, fingerprint, lastToken, token                                  []byte
	kind, status, capture, details, failure                            string
	expires, first, last, absent, created, updated, finalized, due     pgtype.Timestamptz
	lane, requestVersion, fingerprintVersion, abandoned, tries, rounds int
}

// scanRow reads {payment}, {ticket} and what the statement adds.
func scanRow(rows pgx.Rows, more ...any) (row, error) {
	var r row
	var c scanned
	p := &r.payment
	targets := append([]any{
		&p.TenantID, &c.id, &p.IdempotencyKey, &c.kind, &c.lane, &c.status, &p.Reason, &c.requestVersion,
		&c.fingerprint, &c.fingerprintVersion, &p.Amount, &p.AmountCaptured, &p.AmountRefunded, &p.Currency, &c.capture, &p.OffSession,
		&p.Customer, &p.PaymentMethod, &c.details, &c.failure, &c.expires,
		&c.first, &c.last, &p.InDoubt, &c.absent, &c.tries, &c.rounds, &p.Sequence, &c.lastToken,
		&p.StripeAccount, &p.Livemode, &p.StripePaymentIntent, &p.StripeCharge,
		&p.BatchID, &c.created, &c.updated, &c.finalized,
		&c.due, &c.token, &c.abandoned,
	}, more...)
	if err := rows.Scan(targets...); err != nil {
		return row{}, err
	}
	if len(c.id) != len(p.ID) || len(c.fingerprint) != len(r.fingerprint) {
		return row{}, fmt.Errorf("%w: an id of %d and a fingerprint of %d bytes", errMapping, len(c.id), len(c.fingerprint))
	}
	copy(p.ID[:], c.id)
	copy(r.fingerprint[:], c.fingerprint)
	copy(r.lastToken[:], c.lastToken)
	r.fingerprintVersion = c.fingerprintVersion
	p.Kind, p.Status, p.CaptureMethod = payments.Kind(c.kind), payments.Status(c.status), payments.CaptureMethod(c.capture)
	p.Lane, p.RequestVersion, p.Tries, p.Rounds = payments.Lane(c.lane), c.requestVersion, c.tries, c.rounds
	p.ExpiresAt, p.FirstSubmitAt, p.LastSubmitAt, p.AbsentAt = instant(c.expires), instant(c.first), instant(c.last), instant(c.absent)
	p.CreatedAt, p.UpdatedAt, p.FinalizedAt = instant(c.created), instant(c.updated), instant(c.finalized)
	if err := decodeDetails(c.details, &p.Intent); err != nil {
		return row{}, err
	}
	var err error
	if p.Failure, err = decodeFailure(c.failure); err != nil {
		return row{}, err
	}
	if c.due.Valid {
		r.ticket = &payments.Ticket{Lane: p.Lane, DueAt: instant(c.due), Abandoned: c.abandoned}
		copy(r.ticket.Token[:], c.token)
	}
	r.payment = withTicket(r.payment, r.ticket)
	return r, nil
}

// collect is the callback of a statement that returns rows.
func collect(into *[]row) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRow(rows)
			if err != nil {
				return err
			}
			*into = append(*into, r)
		}
		return rows.Err()
	}
}

// parkedUntil is when a ticket is due that waits for the end of a cancel (park_ticket.sql).
var parkedUntil = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// parked reports whether the payment waits for the end of its cancel.
func (r row) parked() bool { return r.ticket != nil && !r.ticket.DueAt.Before(parkedUntil) }

// withTicket fills in what a payment shows of its ticket.
func withTicket(p payments.Payment, t *payments.Ticket) payments.Payment {
	p.NextAttemptAt, p.Owned = time.Time{}, false
	if t != nil {
		p.Owned = !t.Token.IsZero()
		if !p.Owned && t.DueAt.Before(parkedUntil) {
			p.NextAttemptAt = t.DueAt
		}
	}
	return p
}

// instant is a time in UTC, zero for null.
func instant(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// nullable is the parameter for a time that may be zero: null then.
func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = micro(t)
	return &t
}

// micro is a time as PostgreSQL keeps it.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// tokenParam is the parameter for a token: null for none.
func tokenParam(t payments.Token) []byte {
	if t.IsZero() {
		return nil
	}
	return t[:]
}
