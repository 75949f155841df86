package payments

import (
	"slices"
	"strings"
)

// The reasons that may be stated, in Stripe's words: cancellation_reason of a PaymentIntent, and reason of a refund.
var (
	cancelReasons = []string{"duplicate", "fraudulent", "requested_by_customer", "abandoned"}
	refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}
)

// ValidateFollowUp is Validate for a capture, a cancel or a refund. Whether its charge is there and allows it is for AcceptFollowUp to say.
func (i Intent) ValidateFollowUp() *ValidationError {
	i = i.Normalized()
	v := &ValidationError{Reason: ReasonInvalid}
	v.addKey(i.IdempotencyKey)
	if !i.Kind.FollowUp() {
		v.add("kind", "must be capture, cancel or refund")
		return v
	}
	v.add("payment_id", checkPaymentID(i.PaymentID))
	v.add("amount", checkFollowUpAmount(i))
	for _, member := range chargeMembers(i) {
		if member.there {
			v.add(member.name, "is only for charges: remove it from a "+string(i.Kind))
		}
	}
	v.add(fieldReason, checkReason(i))
	if i.Kind == KindRefund {
		v.addMetadata(i.Metadata)
	} else if len(i.Metadata) > 0 {
		v.add(fieldMetadata, "is only for charges and refunds: remove it from a "+string(i.Kind))
	}
	v.add("tenant_id", checkEncoding(i.TenantID))
	if len(v.Fields) == 0 {
		return nil
	}
	return v
}

// ValidateAny is ValidateFollowUp for a capture, a cancel or a refund, and Validate for all else. It is for whoever sends requests of any kind; whoever
// stores them asks for the one that it stores.
func (i Intent) ValidateAny() *ValidationError {
	if i.Kind.FollowUp() {
		return i.ValidateFollowUp()
	}
	return i.Validate()
}

// checkPaymentID wants the id of a payment, in the one form that it has.
func checkPaymentID(s string) string {
	const form = "the id of the payment that it is about, as pay_ and 32 lower-case hex digits"
	if s == "" {
		return "is required: name " + form
	}
	if _, err := ParseID(s); err != nil || !strings.HasPrefix(s, "pay_") {
		return "must be " + form
	}
	return ""
}

func checkFollowUpAmount(i Intent) string {
	switch {
	case i.Kind == KindCancel && i.Amount != 0:
		return "is not for cancels, which release all of it: remove it"
	case i.Kind != KindCancel && !i.All && i.Amount <= 0:
		return "must be a positive integer in the currency's minor units, as 9900 for 99.00 USD, or left out for all that is left"
	}
	return ""
}

// checkReason: it becomes a parameter of the request to Stripe, which takes these words alone.
func checkReason(i Intent) string {
	words := map[Kind][]string{KindCancel: cancelReasons, KindRefund: refundReasons}[i.Kind]
	switch {
	case i.Reason == "" || slices.Contains(words, i.Reason):
		return ""
	case words == nil:
		return "is only for cancels and refunds: remove it from a " + string(i.Kind)
	}
	return "must be one of " + strings.Join(words, ", ") + ", or left out"
}

// chargeMembers are the members that only a charge has, in the order of the wire.
func chargeMembers(i Intent) []struct {
	name  string
	there bool
} {
	return []struct {
		name  string
		there bool
	}{
		{"currency", i.Currency != ""},
		{"payment_method", i.PaymentMethod != ""},
		{"customer", i.Customer != ""},
		{"description", i.Description != ""},
		{"statement_descriptor_suffix", i.StatementDescriptorSuffix != ""},
		{"receipt_email", i.ReceiptEmail != ""},
		{"capture_method", i.CaptureMethod != ""},
		{"off_session", i.OffSession},
		{"return_url", i.ReturnURL != ""},
		{"expires_at", !i.ExpiresAt.IsZero()},
	}
}
