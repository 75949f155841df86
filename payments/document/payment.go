package document

import (
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Payment is the document of a payment as it stands: with the shown status, and without next_action and client_secret, which only an answer
// to the owning tenant may carry.
func Payment(p payments.Payment) schema.Payment {
	return schema.Payment{
		ID:                  p.ID.Format(p.Kind),
		TenantID:            p.TenantID,
		IdempotencyKey:      p.IdempotencyKey,
		Kind:                string(p.Kind),
		Status:              string(p.ShownStatus()),
		Amount:              p.Amount,
		AmountCaptured:      p.AmountCaptured,
		AmountRefunded:      p.AmountRefunded,
		Currency:            p.Currency,
		Customer:            schema.Null(p.Customer),
		PaymentMethod:       schema.Null(p.PaymentMethod),
		Description:         schema.Null(p.Description),
		Metadata:            schema.Metadata(p.Metadata),
		BatchID:             schema.Null(p.BatchID),
		StripePaymentIntent: schema.Null(p.StripePaymentIntent),
		StripeAccount:       schema.Null(p.StripeAccount),
		Tries:               p.Tries,
		Reason:              schema.Null(p.Reason),
		Failure:             Failure(p.Failure),
		NextAttemptAt:       schema.NullTimestamp(p.NextAttemptAt),
		ExpiresAt:           schema.NullTimestamp(p.ExpiresAt),
		CreatedAt:           schema.NewTimestamp(p.CreatedAt),
		UpdatedAt:           schema.NewTimestamp(p.UpdatedAt),
		FinalizedAt:         schema.NullTimestamp(p.FinalizedAt),
	}
}

// PaymentWithEvents is the document of a payment with its timeline, as `payments show` prints it.
func PaymentWithEvents(p payments.Payment, timeline []payments.Entry) schema.Payment {
	doc := Payment(p)
	doc.Events = Timeline(timeline)
	return doc
}

// Failure is the document of a failure; nil for none.
func Failure(f *payments.Failure) *schema.Failure {
	if f == nil {
		return nil
	}
	return &schema.Failure{Code: schema.Null(f.Code), DeclineCode: schema.Null(f.DeclineCode), Message: schema.Null(f.Message)}
}

// Entry is the document of one line of the timeline.
func Entry(e payments.Entry) schema.TimelineEntry {
	return schema.TimelineEntry{
		Sequence: e.Sequence, At: schema.NewTimestamp(e.At), Type: e.Type, Status: string(e.Status), Reason: schema.Null(e.Reason),
	}
}

// Timeline is the document of a timeline; never nil.
func Timeline(entries []payments.Entry) []schema.TimelineEntry {
	list := make([]schema.TimelineEntry, len(entries))
	for i, e := range entries {
		list[i] = Entry(e)
	}
	return list
}
