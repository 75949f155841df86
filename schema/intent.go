package schema

import "time"

// Bounds on one message, in bytes. An intent that uses all that Stripe allows,
// every character written as an escaped surrogate pair, stays within them.
const (
	IntentMaxBytes = 512 << 10
	BatchMaxBytes  = 8 << 20
)

// The words of [Intent].Kind.
const (
	KindCharge  = "charge" // the default
	KindCapture = "capture"
	KindCancel  = "cancel"
	KindRefund  = "refund"
)

// The words of [Intent].CaptureMethod.
const (
	CaptureAutomatic = "automatic" // the default
	CaptureManual    = "manual"
)

// Intent is one payment intent as it stands on the wire: what was sent, with no
// default filled in, nothing normalised, nothing required. Each field is the
// member of the same name in lower case with underscores.
type Intent struct {
	IdempotencyKey            Optional[string]
	TenantID                  Optional[string]
	Kind                      Optional[string]
	PaymentID                 Optional[string]
	Amount                    Optional[int64] // minor units, as Stripe counts them
	Currency                  Optional[string]
	PaymentMethod             Optional[string]
	Customer                  Optional[string]
	Description               Optional[string]
	StatementDescriptorSuffix Optional[string]
	ReceiptEmail              Optional[string]
	CaptureMethod             Optional[string]
	OffSession                Optional[bool] // true by default
	ReturnURL                 Optional[string]
	Metadata                  map[string]string // nil is absent, empty is {}
	ExpiresAt                 Optional[time.Time]
	Reason                    Optional[string] // of a cancel or a refund
}

// The members of an intent, in the order in which EncodeIntent writes them.
const (
	memberIdempotencyKey            = "idempotency_key"
	memberTenantID                  = "tenant_id"
	memberKind                      = "kind"
	memberPaymentID                 = "payment_id"
	memberAmount                    = "amount"
	memberCurrency                  = "currency"
	memberPaymentMethod             = "payment_method"
	memberCustomer                  = "customer"
	memberDescription               = "description"
	memberStatementDescriptorSuffix = "statement_descriptor_suffix"
	memberReceiptEmail              = "receipt_email"
	memberCaptureMethod             = "capture_method"
	memberOffSession                = "off_session"
	memberReturnURL                 = "return_url"
	memberMetadata                  = "metadata"
	memberExpiresAt                 = "expires_at"
	memberReason                    = "reason"
)

// IntentMembers lists the names of an intent's members in their canonical order.
func IntentMembers() []string {
	return []string{
		memberIdempotencyKey, memberTenantID, memberKind, memberPaymentID, memberAmount, memberCurrency,
		memberPaymentMethod, memberCustomer, memberDescription, memberStatementDescriptorSuffix,
		memberReceiptEmail, memberCaptureMethod, memberOffSession, memberReturnURL, memberMetadata, memberExpiresAt, memberReason,
	}
}

// DecodeIntent reads one intent and refuses whatever a sender and a receiver
// could understand in two ways: unknown, repeated or differently spelled
// members, values of another type, null, amounts that are not integer literals,
// U+0000, half surrogate pairs, invalid UTF-8, anything after the object, more
// than [IntentMaxBytes]. Whether the intent makes sense is not looked at. The
// error is a [*DecodeError].
func DecodeIntent(data []byte) (Intent, error) {
	if len(data) > IntentMaxBytes {
		return Intent{}, errTooLarge(len(data), IntentMaxBytes)
	}
	r := newReader(data)
	defer r.release()
	var in Intent
	err := r.intent("", &in)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return Intent{}, err.settle(data)
	}
	return in, nil
}

// intent reads one object. Errors are named below path, which is empty or ends
// with a dot.
func (r *reader) intent(path string, in *Intent) *DecodeError {
	if err := r.begin(path); err != nil {
		return err
	}
	for {
		name, more, err := r.name(path)
		if err != nil || !more {
			return err
		}
		if err := r.intentMember(name, in); err != nil {
			return err.below(path)
		}
	}
}

// intentMember reads the value of one member. name is valid until the next read:
// the constants below stand for it from then on.
func (r *reader) intentMember(name []byte, in *Intent) *DecodeError {
	switch string(name) {
	case memberIdempotencyKey:
		return r.text(memberIdempotencyKey, &in.IdempotencyKey)
	case memberTenantID:
		return r.text(memberTenantID, &in.TenantID)
	case memberKind:
		return r.text(memberKind, &in.Kind)
	case memberPaymentID:
		return r.text(memberPaymentID, &in.PaymentID)
	case memberAmount:
		return r.integer(memberAmount, &in.Amount)
	case memberCurrency:
		return r.text(memberCurrency, &in.Currency)
	case memberPaymentMethod:
		return r.text(memberPaymentMethod, &in.PaymentMethod)
	case memberCustomer:
		return r.text(memberCustomer, &in.Customer)
	case memberDescription:
		return r.text(memberDescription, &in.Description)
	case memberStatementDescriptorSuffix:
		return r.text(memberStatementDescriptorSuffix, &in.StatementDescriptorSuffix)
	case memberReceiptEmail:
		return r.text(memberReceiptEmail, &in.ReceiptEmail)
	case memberCaptureMethod:
		return r.text(memberCaptureMethod, &in.CaptureMethod)
	case memberOffSession:
		return r.boolean(memberOffSession, &in.OffSession)
	case memberReturnURL:
		return r.text(memberReturnURL, &in.ReturnURL)
	case memberMetadata:
		return r.texts(memberMetadata, &in.Metadata)
	case memberExpiresAt:
		return r.timestamp(memberExpiresAt, &in.ExpiresAt)
	case memberReason:
		return r.text(memberReason, &in.Reason)
	}
	return r.unknown(name, IntentMembers())
}
