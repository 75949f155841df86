package consumer

import (
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Reading is what a worker makes of a message, for whoever takes it up again from its dead letter: the one way from the wire to the domain.
type Reading struct {
	Lane         payments.Lane
	Intent       payments.Intent
	Batch        *payments.BatchRequest // nil: it is an intent
	ID           payments.ID            // of the payment or the batch
	ExistingOnly bool                   // as in payments.AdmitRequest
	Refused      *payments.ValidationError
	// Reason and Message say why it can never become a payment or a batch; "" when it can.
	Reason  payments.Reason
	Message string

	read reading
}

// ReadAgain reads the message of a dead letter. It is pure and total, as the reading of a message that is delivered.
func ReadAgain(subjects schema.Subjects, letter payments.DeadLetter) Reading {
	r := read(subjects, message{subject: letter.Origin.Subject, headers: readHeaders(letter.Headers), data: letter.Payload})
	again := Reading{Lane: r.lane, Intent: r.intent, Batch: r.batch, ID: r.id, ExistingOnly: r.existingOnly, Refused: r.refused, read: r}
	if r.refusal != nil {
		again.Reason, again.Message = r.refusal.reason, r.refusal.message
	}
	return again
}

// ExplainFollowUp is Explain for a message that is a capture, a cancel or a refund.
func (r Reading) ExplainFollowUp(a payments.FollowUpAdmission) (payments.Reason, string) {
	r.read.why = whyRefused(a)
	return r.Explain(a.Verdict, a.Differs)
}

// Explain words what a verdict means for the dead letter: "" when the message has become a payment or a batch.
func (r Reading) Explain(v payments.Verdict, differs []string) (payments.Reason, string) {
	what, reason := afterAdmission(v)
	if what != deliverBury {
		return "", ""
	}
	why := explain(reason, differs, r.read)
	return why.reason, why.message
}
