package payments

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
)

// FingerprintVersion numbers the list of fields that Fingerprint covers. Stored fingerprints are compared with new ones for ever: a change of the
// list or of its encoding needs a new version beside the old one, never instead of it.
const FingerprintVersion = 1

// fingerprintField is one field that decides what is charged. The names are those of the wire.
type fingerprintField struct {
	name  string
	value func(*Intent) string
	// every says that a follow-up has it, too. Its other fields count as empty: its row has the charge's currency, which nobody asked for.
	every bool
}

// of is the field's value as the fingerprint has it.
func (f fingerprintField) of(i *Intent) string {
	if i.Kind.FollowUp() && !f.every {
		return ""
	}
	return f.value(i)
}

// fingerprintFields are the fields of version 1 in their order, metadata and reason excepted, which come last. expires_at decides whether, not what,
// is charged; tenant and key name the request and are no part of it.
var fingerprintFields = []fingerprintField{
	{"kind", func(i *Intent) string { return string(i.Kind) }, true},
	{"payment_id", func(i *Intent) string { return i.PaymentID }, true},
	{"amount", amountAsked, true},
	{"currency", func(i *Intent) string { return i.Currency }, false},
	{"customer", func(i *Intent) string { return i.Customer }, false},
	{"payment_method", func(i *Intent) string { return i.PaymentMethod }, false},
	{"description", func(i *Intent) string { return i.Description }, false},
	{"statement_descriptor_suffix", func(i *Intent) string { return i.StatementDescriptorSuffix }, false},
	{"receipt_email", func(i *Intent) string { return i.ReceiptEmail }, false},
	{"capture_method", func(i *Intent) string { return string(i.CaptureMethod) }, false},
	{"off_session", func(i *Intent) string { return strconv.FormatBool(i.OffSession) }, false},
	{"return_url", func(i *Intent) string { return i.ReturnURL }, false},
}

const (
	fieldMetadata = "metadata"
	fieldReason   = "reason"
)

// amountAsked is the amount that was named; "0": none was, and all that is left is asked for, whatever that came to.
func amountAsked(i *Intent) string {
	if i.All {
		return "0"
	}
	return strconv.FormatInt(i.Amount, 10)
}

// Fingerprint is SHA-256 over what the intent asks for: under one key, equal fingerprints are one request and different ones are a conflict. It
// is taken from the normalised intent. The hashed bytes are a list of strings, each after its uvarint length: "version", "1", then name and value
// of every field, then "metadata", the number of its entries, and its names and values sorted by name; then, only if there is one, "reason" and
// the reason. Of a follow-up all fields but kind, payment_id, amount, metadata and reason count as empty, and an amount that was not named as 0.
func Fingerprint(i Intent) [sha256.Size]byte {
	i = i.Normalized()
	buf := make([]byte, 0, 512)
	add := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	add("version")
	add(strconv.Itoa(FingerprintVersion))
	for _, f := range fingerprintFields {
		add(f.name)
		add(f.of(&i))
	}
	add(fieldMetadata)
	add(strconv.Itoa(len(i.Metadata)))
	names := make([]string, 0, 8)
	for name := range i.Metadata {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name)
		add(i.Metadata[name])
	}
	if i.Reason != "" {
		add(fieldReason)
		add(i.Reason)
	}
	return sha256.Sum256(buf)
}

// Differs names the fields in which two intents differ as far as Fingerprint sees them, in its order; metadata is one field. It is empty if and
// only if the fingerprints are equal. Of a charge and a follow-up only the fields that both have are held against each other: their kinds differ.
func Differs(a, b Intent) []string {
	a, b = a.Normalized(), b.Normalized()
	mixed := a.Kind.FollowUp() != b.Kind.FollowUp()
	var names []string
	for _, f := range fingerprintFields {
		if (f.every || !mixed) && f.of(&a) != f.of(&b) {
			names = append(names, f.name)
		}
	}
	if !maps.Equal(a.Metadata, b.Metadata) {
		names = append(names, fieldMetadata)
	}
	if a.Reason != b.Reason {
		names = append(names, fieldReason)
	}
	return names
}
