package postgres

import (
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// change is what one transition does to the rows of a payment.
type change struct {
	after       payments.Payment
	refund      string         // of a follow-up: what Stripe calls its refund
	token       payments.Token // stored as last_token
	adopts      bool           // it takes over a PaymentIntent that a person may have given to another payment
	clearSubmit bool           // take back first_submit_at and last_submit_at, which are left alone otherwise
	due         time.Time      // of the ticket, while the status has one
	ended       bool           // the ticket is deleted already
	events      []event
	letter      *payments.DeadLetter
}

func (c *change) key() key { return key{c.after.TenantID, c.after.ID} }

// event is one new row of the timeline.
type event struct {
	sequence int64
	at       time.Time
	kind     string // the event's type
	body     []byte
}

// apply returns the payment that a transition makes of p, at the time at or, if that is earlier, when p was last changed: a timeline does not
// run backwards because two processes' clocks differ. It is pure.
func apply(p payments.Payment, t payments.Transition, at time.Time) payments.Payment {
	at = later(micro(at), p.UpdatedAt)
	next := p
	if !t.Quiet(p) {
		next.UpdatedAt = at
	}
	next.Status, next.Reason = t.Status, sanitised(t.Reason, reasonMax)
	next.Failure = nil
	if f := t.Failure; f != nil {
		next.Failure = &payments.Failure{
			Code: sanitised(f.Code, nameMax), DeclineCode: sanitised(f.DeclineCode, nameMax), Message: sanitised(f.Message, messageMax),
		}
	}
	if o := t.Object; o != nil {
		next.StripePaymentIntent = sanitised(o.ID, nameMax)
		if o.LatestCharge != "" {
			next.StripeCharge = sanitised(o.LatestCharge, nameMax)
		}
		// An object that disagrees is stored for whoever reviews it; our amounts keep to their bounds.
		next.AmountCaptured = max(min(o.AmountReceived, p.Amount), p.AmountRefunded)
	}
	next.InDoubt, next.AbsentAt, next.Rounds = t.InDoubt, time.Time{}, t.Rounds
	if !t.AbsentAt.IsZero() {
		next.AbsentAt = micro(t.AbsentAt)
	}
	if t.ClearSubmit {
		next.FirstSubmitAt, next.LastSubmitAt = time.Time{}, time.Time{}
	}
	if t.ResetTries {
		next.Tries = 0
	}
	if t.CountTry {
		next.Tries++
	}
	next.FinalizedAt = time.Time{}
	if next.Status.Final() {
		next.FinalizedAt = at
	}
	return next
}

// tell adds an entry to the change's timeline; "" is the type that the status gives.
func (c *change) tell(kind, namespace string) error {
	c.after.Sequence++
	if kind == "" {
		kind = document.EventType(c.after)
	}
	var body []byte
	var err error
	if c.after.Kind.FollowUp() {
		body, err = document.FollowUpEvent(payments.FollowUp{Payment: c.after, StripeRefund: c.refund}, kind, namespace, c.after.UpdatedAt)
	} else {
		body, err = document.Event(c.after, kind, namespace, c.after.UpdatedAt)
	}
	if err != nil {
		return err
	}
	c.events = append(c.events, event{c.after.Sequence, c.after.UpdatedAt, kind, body})
	return nil
}

// newChange applies a transition to what is stored, with its timeline and its dead letter. due is when the ticket is due again.
func (s *Store) newChange(r row, t payments.Transition, token payments.Token, at, due time.Time) (*change, error) {
	p := r.payment
	c := &change{after: apply(p, t, at), refund: r.refund, token: token, clearSubmit: t.ClearSubmit, adopts: t.Adopts()}
	if t.Status.HasTicket() {
		c.due = micro(due)
		c.after = withTicket(c.after, &payments.Ticket{DueAt: c.due})
	} else {
		c.after = withTicket(c.after, nil)
	}
	if !t.Quiet(p) {
		if err := c.tell("", s.opts.Namespace); err != nil {
			return nil, err
		}
	}
	if t.DeadLetter != "" {
		c.letter = &payments.DeadLetter{
			Reason:  t.DeadLetter,
			Message: "given up after the last allowed try: " + c.after.Reason + "; replay it once the cause is mended",
		}
		return c, c.buried(s.opts.Namespace)
	}
	return c, nil
}

// buried fills in what the dead letter has of its payment, and tells of it.
func (c *change) buried(namespace string) error {
	p := c.after
	c.letter.TenantID, c.letter.IdempotencyKey, c.letter.PaymentID = p.TenantID, p.IdempotencyKey, &p.ID
	if c.letter.Tries == 0 {
		c.letter.Tries = p.Tries
	}
	return c.tell(schema.EventPaymentDeadLettered, namespace)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
