package consumer

import "github.com/oncepay/oncepay/payments"

// delivery is what is done with a message.
type delivery string

const (
	// deliverAck: PostgreSQL has the payment with its ticket or its outcome.
	deliverAck delivery = "ack"
	// deliverBury: commit a dead letter, then ack.
	deliverBury delivery = "bury"
	// deliverLeave: nothing could be committed; say nothing, AckWait brings it back.
	deliverLeave delivery = "leave"
)

// afterAdmission says what a verdict means for the message that asked for it, when there is no payment of the caller's to settle.
func afterAdmission(v payments.Verdict) (delivery, payments.Reason) {
	switch v {
	case payments.VerdictExists, payments.VerdictStored:
		return deliverAck, "" // the ticket carries the work
	case payments.VerdictConflict:
		return deliverBury, payments.ReasonKeyReused
	case payments.VerdictTenantUnknown:
		return deliverBury, payments.ReasonTenantUnknown
	case payments.VerdictAbsent:
		return deliverBury, payments.ReasonKeyInvalid
	case payments.VerdictRefused, payments.VerdictPaymentUnknown, payments.VerdictInvalidState, payments.VerdictAmountExceeds, payments.VerdictAmountInvalid:
		return deliverBury, payments.ReasonInvalid
	default:
		return deliverLeave, ""
	}
}

// afterSettlement says what the end of a claim means for the message that is held for it. A claim whose outcome could not be recorded leaves
// the message alone: a redelivery finds the row and acks, and the ticket brings the payment back.
func afterSettlement(s payments.Settlement) delivery {
	if s.Err != nil && !s.Lost {
		return deliverLeave
	}
	return deliverAck
}
