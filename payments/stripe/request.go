package stripe

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// RequestVersion is the form of the request that new payments are bound to. What a version makes of an intent never changes, since Stripe
// compares a repeated request with the first under the same key: a change is a new version, and the old one stays.
const RequestVersion = 1

// The metadata that every PaymentIntent of ours carries; clients may not use the prefix.
const (
	MetadataPayment   = "oncepay_payment"
	MetadataTenant    = "oncepay_tenant"
	MetadataNamespace = "oncepay_namespace"
	MetadataKeySHA256 = "oncepay_key_sha256"
	metadataPrefix    = "oncepay_"
)

const createPath = "/v1/payment_intents"

// field is one member of a form.
type field struct{ name, value string }

// Body returns the form body of the POST /v1/payment_intents that charges the intent, sorted by member and then by value. It is a pure
// function of its arguments (invariant I5). An unknown version, another kind than a charge, and client metadata under our own prefix are
// errors: such a request is never sent.
func Body(version int, namespace string, i payments.Intent) (string, error) {
	fields, err := requestFields(version, namespace, i)
	return encode(fields), err
}

// known refuses versions of which this build does not know what they make of an intent.
func known(version int) error {
	if version != 1 {
		return fmt.Errorf("request_version %d is not known to this build; run one that knows it", version)
	}
	return nil
}

func requestFields(version int, namespace string, i payments.Intent) ([]field, error) {
	if err := known(version); err != nil {
		return nil, err
	}
	if i.Kind != payments.KindCharge {
		return nil, fmt.Errorf("the kind %q is not a charge", i.Kind)
	}
	return fieldsV1(namespace, i)
}

// fieldsV1 is version 1, for API 2023-10-16. automatic_payment_methods is stated, since confirming is otherwise refused without a
// return_url (docs.stripe.com/changelog/2023-08-16/automatic-payment-methods). off_session is left out when false, its default.
func fieldsV1(namespace string, i payments.Intent) ([]field, error) {
	fields := []field{
		{"amount", strconv.FormatInt(i.Amount, 10)},
		{"automatic_payment_methods[enabled]", "true"},
		{"capture_method", string(i.CaptureMethod)},
		{"confirm", "true"},
		{"currency", i.Currency},
		{"customer", i.Customer},
		{"description", i.Description},
		{"payment_method", i.PaymentMethod},
		{"receipt_email", i.ReceiptEmail},
		{"return_url", i.ReturnURL},
		{"statement_descriptor_suffix", i.StatementDescriptorSuffix},
	}
	fields = append(fields, ourMetadata(namespace, i)...)
	// An empty value would unset the member at Stripe; what the intent leaves out is left out.
	fields = slices.DeleteFunc(fields, func(f field) bool { return f.value == "" })
	if i.ReturnURL == "" {
		fields = append(fields, field{"automatic_payment_methods[allow_redirects]", "never"})
	}
	if i.OffSession {
		fields = append(fields, field{"off_session", "true"})
	}
	theirs, err := clientMetadata(i)
	if err != nil {
		return nil, err
	}
	return sorted(append(fields, theirs...)), nil
}

// ourMetadata say whose the object is, whatever its customer or charge.
func ourMetadata(namespace string, i payments.Intent) []field {
	return []field{
		{"metadata[" + MetadataPayment + "]", i.ID().Format(i.Kind)},
		{"metadata[" + MetadataTenant + "]", i.TenantID},
		{"metadata[" + MetadataNamespace + "]", namespace},
		{"metadata[" + MetadataKeySHA256 + "]", payments.KeySHA256(i.IdempotencyKey)},
	}
}

func clientMetadata(i payments.Intent) ([]field, error) {
	fields := make([]field, 0, len(i.Metadata))
	for name, value := range i.Metadata {
		if strings.HasPrefix(name, metadataPrefix) || strings.ContainsAny(name, "[]") {
			return nil, fmt.Errorf("the metadata of the intent use a name that is ours or not Stripe's")
		}
		fields = append(fields, field{"metadata[" + name + "]", value})
	}
	return fields, nil
}

func sorted(fields []field) []field {
	slices.SortFunc(fields, func(a, b field) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return fields
}

// encode writes a form as Stripe's SDKs do: brackets stay, all else is escaped. It is our own, so that a new SDK cannot change a body that
// Stripe has seen already.
func encode(fields []field) string {
	var b strings.Builder
	b.Grow(1024) // of a usual charge
	for _, f := range fields {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		writeName(&b, f.name)
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(f.value))
	}
	return b.String()
}

// writeName writes a member's name, escaped but for its brackets.
func writeName(b *strings.Builder, name string) {
	from := 0
	for i := range len(name) {
		if name[i] == '[' || name[i] == ']' {
			b.WriteString(url.QueryEscape(name[from:i]))
			b.WriteByte(name[i])
			from = i + 1
		}
	}
	b.WriteString(url.QueryEscape(name[from:]))
}
