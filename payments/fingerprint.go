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
}

// fingerprintFields are the fields of version 1 in their order, metadata excepted, which comes last. expires_at decides whether, not what, is
// charged; tenant and key name the request and are no part of it.
var fingerprintFields = []fingerprintField{
	{"kind", func(i *Intent) string { return string(i.Kind) }},
	{"payment_id", func(i *Intent) string { return i.PaymentID }},
	{"amount", func(i *Intent) string { return strconv.FormatInt(i.Amount, 10) }},
	{"currency", func(i *Intent) string { return i.Currency }},
	{"customer", func(i *Intent) string { return i.Customer }},
	{"payment_method", func(i *Intent) string { return i.PaymentMethod }},
	{"description", func(i *Intent) string { return i.Description }},
	{"statement_descriptor_suffix", func(i *Intent) string { return i.StatementDescriptorSuffix }},
	{"receipt_email", func(i *Intent) string { return i.ReceiptEmail }},
	{"capture_method", func(i *Intent) string { return string(i.CaptureMethod) }},
	{"off_session", func(i *Intent) string { return strconv.FormatBool(i.OffSession) }},
	{"return_url", func(i *Intent) string { return i.ReturnURL }},
}

const fieldMetadata = "metadata"

// Fingerprint is SHA-256 over what the intent asks for: under one key, equal fingerprints are one request and different ones are a conflict. It
// is taken from the normalised intent. The hashed bytes are a list of strings, each after its uvarint length: "version", "1", then name and value
// of every field, then "metadata", the number of its entries, and its names and values sorted by name.
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
		add(f.value(&i))
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
	return sha256.Sum256(buf)
}

// Differs names the fields in which two intents differ as far as Fingerprint sees them, in its order; metadata is one field. It is empty if and
// only if the fingerprints are equal.
func Differs(a, b Intent) []string {
	a, b = a.Normalized(), b.Normalized()
	var names []string
	for _, f := range fingerprintFields {
		if f.value(&a) != f.value(&b) {
			names = append(names, f.name)
		}
	}
	if !maps.Equal(a.Metadata, b.Metadata) {
		names = append(names, fieldMetadata)
	}
	return names
}
