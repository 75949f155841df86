package document

import (
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Intent is an intent as it stands on the wire. The tenant is left to the subject or the caller's key, which is what the receiver believes.
func Intent(i payments.Intent) schema.Intent {
	if i.Kind.FollowUp() {
		return followUpIntent(i)
	}
	return schema.Intent{
		IdempotencyKey:            some(i.IdempotencyKey),
		Kind:                      some(string(i.Kind)),
		PaymentID:                 some(i.PaymentID),
		Amount:                    schema.Some(i.Amount),
		Currency:                  some(i.Currency),
		PaymentMethod:             some(i.PaymentMethod),
		Customer:                  some(i.Customer),
		Description:               some(i.Description),
		StatementDescriptorSuffix: some(i.StatementDescriptorSuffix),
		ReceiptEmail:              some(i.ReceiptEmail),
		CaptureMethod:             some(string(i.CaptureMethod)),
		OffSession:                schema.Some(i.OffSession),
		ReturnURL:                 some(i.ReturnURL),
		Metadata:                  i.Metadata,
		ExpiresAt:                 schema.Optional[time.Time]{Value: i.ExpiresAt, Set: !i.ExpiresAt.IsZero()},
	}
}

// followUpIntent is a follow-up as it was asked for: the amount that all of it came to, and the currency, were not.
func followUpIntent(i payments.Intent) schema.Intent {
	return schema.Intent{
		IdempotencyKey: some(i.IdempotencyKey),
		Kind:           some(string(i.Kind)),
		PaymentID:      some(i.PaymentID),
		Amount:         schema.Optional[int64]{Value: i.Amount, Set: !i.All && i.Kind != payments.KindCancel},
		Metadata:       i.Metadata,
		Reason:         some(i.Reason),
	}
}

// ReadIntent is what an intent on the wire asks for, with the default of off_session filled in and nothing normalised. The tenant is the
// authenticated caller's or the subject's, the key is the one that was decided on where the wire has two places for it. Follow-ups have no
// off_session: it is true for one that was sent all the same, whatever it said, so that ValidateFollowUp sees it.
func ReadIntent(wire schema.Intent, tenant, key string) payments.Intent {
	kind := payments.Kind(wire.Kind.Value)
	offSession, all := wire.OffSession.Or(true), false
	if kind.FollowUp() {
		offSession, all = wire.OffSession.Set, kind != payments.KindCancel && !wire.Amount.Set
	}
	return payments.Intent{
		TenantID:                  tenant,
		IdempotencyKey:            key,
		Kind:                      kind,
		PaymentID:                 wire.PaymentID.Value,
		Amount:                    wire.Amount.Value,
		All:                       all,
		Reason:                    wire.Reason.Value,
		Currency:                  wire.Currency.Value,
		Customer:                  wire.Customer.Value,
		PaymentMethod:             wire.PaymentMethod.Value,
		Description:               wire.Description.Value,
		StatementDescriptorSuffix: wire.StatementDescriptorSuffix.Value,
		ReceiptEmail:              wire.ReceiptEmail.Value,
		CaptureMethod:             payments.CaptureMethod(wire.CaptureMethod.Value),
		OffSession:                offSession,
		ReturnURL:                 wire.ReturnURL.Value,
		Metadata:                  wire.Metadata,
		ExpiresAt:                 wire.ExpiresAt.Value,
	}
}

// some is a member that is absent when it is empty.
func some(s string) schema.Optional[string] { return schema.Optional[string]{Value: s, Set: s != ""} }
