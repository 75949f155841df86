package document

import (
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// FollowUp is the document of a follow-up as it stands, an operation in the words of users. What it asks for stands under reason, why it stands where it
// stands under status_reason.
func FollowUp(f payments.FollowUp) schema.Operation {
	return schema.Operation{
		ID:                  f.ID.Format(f.Kind),
		Kind:                string(f.Kind),
		PaymentID:           f.PaymentID,
		TenantID:            f.TenantID,
		IdempotencyKey:      f.IdempotencyKey,
		Status:              string(f.ShownStatus()),
		Amount:              f.Amount,
		Currency:            f.Currency,
		Reason:              schema.Null(f.Intent.Reason),
		Metadata:            schema.Metadata(f.Metadata),
		StripeRefund:        schema.Null(f.StripeRefund),
		StripePaymentIntent: schema.Null(f.StripePaymentIntent),
		StripeAccount:       schema.Null(f.StripeAccount),
		Tries:               f.Tries,
		StatusReason:        schema.Null(f.Payment.Reason),
		Failure:             Failure(f.Failure),
		NextAttemptAt:       schema.NullTimestamp(f.NextAttemptAt),
		CreatedAt:           schema.NewTimestamp(f.CreatedAt),
		UpdatedAt:           schema.NewTimestamp(f.UpdatedAt),
		FinalizedAt:         schema.NullTimestamp(f.FinalizedAt),
	}
}

// FollowUpWithEvents is the document of a follow-up with its timeline, as `payments show` prints it.
func FollowUpWithEvents(f payments.FollowUp, timeline []payments.Entry) schema.Operation {
	doc := FollowUp(f)
	doc.Events = Timeline(timeline)
	return doc
}

// FollowUps is the document of a payment's follow-ups, all of them.
func FollowUps(list []payments.FollowUp) schema.List[schema.Operation] {
	docs := schema.List[schema.Operation]{Data: make([]schema.Operation, len(list))}
	for i, f := range list {
		docs.Data[i] = FollowUp(f)
	}
	return docs
}

// ReadOperation is what the body of a request for a follow-up of the charge asks for, with nothing normalised: the kind and the charge stand in the
// request's address.
func ReadOperation(wire schema.OperationRequest, kind payments.Kind, tenant, key string, charge payments.ID) payments.Intent {
	return payments.Intent{
		TenantID: tenant, IdempotencyKey: key, Kind: kind, PaymentID: charge.Format(payments.KindCharge),
		Amount: wire.Amount.Value, All: kind != payments.KindCancel && !wire.Amount.Set, Reason: wire.Reason.Value, Metadata: wire.Metadata,
	}
}
