package consumer

import (
	"crypto/sha256"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Forgotten is what a message asks for that is read again from its stream, since the database may have forgotten what came of it.
type Forgotten struct {
	// Payments are the message's payment, or those of its batch; none of what was refused.
	Payments []payments.ForgottenPayment
	Batch    *payments.BatchRequest // nil: it is an intent, or nothing
	// Letter is set for what can never become a payment; a message with a card number has none, since nothing of it is kept.
	Letter *payments.DeadLetter

	read   reading
	letter payments.DeadLetter
}

// ReadForgotten reads a message of a stream again. It is pure and total, as the reading of a message that is delivered.
func ReadForgotten(subjects schema.Subjects, origin payments.MessageOrigin, stored time.Time, headers map[string][]string, data []byte) Forgotten {
	r := read(subjects, message{subject: origin.Subject, headers: headers, data: data})
	f := Forgotten{Batch: r.batch, read: r, letter: payments.DeadLetter{
		TenantID: r.tenant, IdempotencyKey: r.key, Origin: origin, Headers: wireHeaders(headers), Payload: data, PayloadLength: len(data),
		PayloadSHA256: sha256.Sum256(data), Tries: 1, State: payments.DeadLetterOpen, FirstSeen: stored, LastSeen: stored,
	}}
	why := r.refusal
	if why == nil && r.refused != nil {
		explained := explain(payments.ReasonInvalid, nil, r)
		why = &explained
	}
	switch {
	case why != nil && why.erase:
		return f
	case why != nil:
		f.Letter, f.Batch = f.bury(*why), nil
		return f
	case r.batch != nil:
		for _, child := range r.batch.Children() {
			f.Payments = append(f.Payments, payments.ForgottenPayment{Intent: child, Lane: payments.LaneBulk, StoredAt: stored})
		}
		return f
	}
	f.Payments = []payments.ForgottenPayment{{Intent: r.intent, Lane: r.lane, StoredAt: stored}}
	return f
}

// FollowUp reports whether the message asks for a capture, a cancel or a refund.
func (f Forgotten) FollowUp() bool {
	return len(f.Payments) == 1 && f.Payments[0].Intent.Kind.FollowUp()
}

func (f Forgotten) bury(why refusal) *payments.DeadLetter {
	letter := f.letter
	letter.Reason, letter.Message = why.reason, why.message
	return &letter
}

// Refused is the dead letter of a message whose payment or batch could not be stored; nil: it was.
func (f Forgotten) Refused(v payments.Verdict, differs []string) *payments.DeadLetter {
	what, reason := afterAdmission(v)
	if what != deliverBury {
		return nil
	}
	return f.bury(explain(reason, differs, f.read))
}

// NotAllowed is the dead letter of a capture, a cancel or a refund that its payment does not allow, and why.
func (f Forgotten) NotAllowed(why string) *payments.DeadLetter {
	return f.bury(refusal{reason: payments.ReasonInvalid, message: "payment_id: " + why + ". It came before the database was restored, and what it came to is forgotten: " +
		"look at Stripe before it is asked for under another key; `oncepay dlq replay` asks again, under its own"})
}
