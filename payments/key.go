package payments

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// Limits of CONTRACT's section "Keys, ids, tenants".
const (
	KeyLengthMax      = 255
	BatchKeyLengthMax = 240
	BatchSizeMax      = 100
	// ChildSeparator is reserved: only the key of a batch's child contains it.
	ChildSeparator = "::"
)

// ID names a keyed request for ever: the first 16 bytes of SHA-256(tenant 0x00 key). A producer can compute it before any server knows of
// the request, and it is the same after a restore.
type ID [16]byte

// NewID returns the id of the request that the key names for the tenant.
func NewID(tenantID, key string) ID {
	sum := hash(tenantID, key)
	return ID(sum[:16])
}

// Hex returns the 32 hex digits without a prefix.
func (id ID) Hex() string { return hex.EncodeToString(id[:]) }

// String returns the id as a payment's: pay_ and 32 hex digits.
func (id ID) String() string { return "pay_" + id.Hex() }

// Format returns the id with the prefix of its kind: pay_, ref_, op_ or bat_.
func (id ID) Format(kind Kind) string { return kind.idPrefix() + id.Hex() }

// ParseID reads an id with any of the prefixes pay_, ref_, op_, bat_.
func ParseID(s string) (ID, error) {
	var id ID
	prefix, digits, ok := strings.Cut(s, "_")
	switch prefix {
	case "pay", "ref", "op", "bat":
	default:
		ok = false
	}
	if !ok || len(digits) != 2*len(id) || strings.ToLower(digits) != digits {
		return id, &Error{Code: CodeInvalid, Field: "id", Message: "must be pay_, ref_, op_ or bat_ followed by 32 lower-case hex digits"}
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return id, &Error{Code: CodeInvalid, Field: "id", Message: "must end in 32 lower-case hex digits"}
	}
	return id, nil
}

// StripeKey is the Idempotency-Key that Stripe sees for a request: hex SHA-256(namespace 0x00 kind 0x00 tenant 0x00 key). Two installations
// on one Stripe account differ by namespace; a capture and a charge differ by kind.
func StripeKey(namespace string, kind Kind, tenantID, key string) string {
	sum := hash(namespace, string(kind), tenantID, key)
	return hex.EncodeToString(sum[:])
}

// KeySHA256 is the hex SHA-256 of a client's key, as sent in the metadata oncepay_key_sha256.
func KeySHA256(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// ContentKey makes an idempotency key out of what identifies a request, for callers who have no key of their own: SHA-256 over the
// namespace and the fields, each preceded by its uvarint length, first 16 bytes in hex.
func ContentKey(namespace string, fields ...string) string {
	h := sha256.New()
	var length [binary.MaxVarintLen64]byte
	for _, f := range append([]string{namespace}, fields...) {
		h.Write(length[:binary.PutUvarint(length[:], uint64(len(f)))])
		h.Write([]byte(f))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ChildKey is the key of a batch's i-th payment, i from 0 to 99.
func ChildKey(batchKey string, i int) (string, error) {
	if i < 0 || i >= BatchSizeMax {
		return "", &Error{Code: CodeInvalid, Field: "payments", Message: "a batch has at most 100 payments"}
	}
	if len(batchKey) > BatchKeyLengthMax {
		return "", &Error{Code: CodeInvalid, Field: "idempotency_key", Message: "a batch key has at most 240 characters"}
	}
	return batchKey + ChildSeparator + strconv.Itoa(i), nil
}

// ReservedKey reports whether the key has the form that only a batch's children may have.
func ReservedKey(key string) bool { return strings.Contains(key, ChildSeparator) }

// CheckKey says what is wrong with an idempotency key, or returns "". It accepts reserved keys: whether a child's key may be used depends
// on where it came from.
func CheckKey(key string) string {
	if key == "" {
		return "is required: choose one key for each payment, capture, cancel or refund, and repeat it on every attempt"
	}
	if len(key) > KeyLengthMax {
		return "must have at most 255 characters"
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7E {
			return "must consist of printable ASCII characters without spaces"
		}
	}
	return ""
}

// CheckTenantID says what is wrong with a tenant id, or returns "". The form is ^[a-z0-9][a-z0-9_-]{0,62}$.
func CheckTenantID(id string) string {
	const remedy = "must be 1 to 63 characters of a-z, 0-9, _ and -, beginning with a letter or digit"
	if id == "" || len(id) > 63 {
		return remedy
	}
	for i := range len(id) {
		c := id[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '-') {
			return remedy
		}
	}
	return ""
}

// hash is SHA-256 over the parts with one zero byte between them; no part that we hash can contain a zero byte.
func hash(parts ...string) [sha256.Size]byte {
	var room [512]byte // of all but the longest
	text := room[:0]
	for i, part := range parts {
		if i > 0 {
			text = append(text, 0)
		}
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}
