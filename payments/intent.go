package payments

import (
	"time"
)

// Kind is what a keyed request asks for.
type Kind string

// The kinds of CONTRACT, and the parent row of a batch.
const (
	KindCharge  Kind = "charge"
	KindCapture Kind = "capture"
	KindCancel  Kind = "cancel"
	KindRefund  Kind = "refund"
	KindBatch   Kind = "batch"
)

func (k Kind) idPrefix() string {
	switch k {
	case KindRefund:
		return "ref_"
	case KindCapture, KindCancel:
		return "op_"
	case KindBatch:
		return "bat_"
	default:
		return "pay_"
	}
}

// CaptureMethod says whether Stripe takes the money at once or only holds it.
type CaptureMethod string

// Stripe's capture methods.
const (
	CaptureAutomatic CaptureMethod = "automatic"
	CaptureManual    CaptureMethod = "manual"
)

// Intent is one request to move money, as a producer stated it, with defaults filled in and the currency in lower case (Normalized). It is
// stored unchanged and is all that the request to Stripe is made from.
type Intent struct {
	TenantID                  string
	IdempotencyKey            string
	Kind                      Kind
	PaymentID                 string // the payment that a capture, cancel or refund is about
	Amount                    int64  // minor units as Stripe counts them (currency.go)
	All                       bool   // of a capture or refund: no amount was named, and Amount is what was left when it was accepted
	Reason                    string // of a cancel or refund: why, in a word of Stripe's
	Currency                  string
	Customer                  string
	PaymentMethod             string
	Description               string
	StatementDescriptorSuffix string
	ReceiptEmail              string
	CaptureMethod             CaptureMethod
	OffSession                bool
	ReturnURL                 string
	Metadata                  map[string]string
	ExpiresAt                 time.Time // zero: never; after it no charge is ever made
}

// ID returns the id that the intent's tenant and key name.
func (i Intent) ID() ID { return NewID(i.TenantID, i.IdempotencyKey) }
