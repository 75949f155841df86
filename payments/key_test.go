package payments

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// The example values of the contract: producers in other languages compute them too.
func TestContractExamples(t *testing.T) {
	t.Parallel()
	id := NewID("acme", "order-1")
	if got, want := id.String(), "pay_af5f4f1841e88ebcae502028d51c062c"; got != want {
		t.Errorf("payment id %s, want %s", got, want)
	}
	if got := (Intent{TenantID: "acme", IdempotencyKey: "order-1"}).ID(); got != id {
		t.Errorf("the intent's id is %s", got)
	}
	if got, want := StripeKey("oncepay", KindCharge, "acme", "order-1"), "da65c6349f7ecaa55ce334eccdd23abd08d37e383f2e3e78370ffe652515c5c6"; got != want {
		t.Errorf("Stripe key %s, want %s", got, want)
	}
	sum := sha256.Sum256([]byte("order-1"))
	if got := KeySHA256("order-1"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("key hash %s", got)
	}
}

func TestStripeKeyDiffersByEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, parts := range [][4]string{
		{"oncepay", "charge", "acme", "order-1"}, {"other", "charge", "acme", "order-1"}, {"oncepay", "capture", "acme", "order-1"},
		{"oncepay", "charge", "acme2", "order-1"}, {"oncepay", "charge", "acme", "order-2"}, {"oncepay", "charge", "acm", "eorder-1"},
	} {
		key := StripeKey(parts[0], Kind(parts[1]), parts[2], parts[3])
		if before, ok := seen[key]; ok {
			t.Errorf("%v and %s have the same key", parts, before)
		}
		seen[key] = strings.Join(parts[:], " ")
	}
}

func TestIDFormats(t *testing.T) {
	t.Parallel()
	id := NewID("acme", "order-1")
	for kind, prefix := range map[Kind]string{KindCharge: "pay_", KindRefund: "ref_", KindCapture: "op_", KindCancel: "op_", KindBatch: "bat_"} {
		s := id.Format(kind)
		if s != prefix+id.Hex() {
			t.Errorf("%s: %s", kind, s)
		}
		if back, err := ParseID(s); err != nil || back != id {
			t.Errorf("%s: parsed as %v, %v", s, back, err)
		}
	}
	for _, s := range []string{
		"", "pay_", id.Hex(), "pay" + id.Hex(), "dl_" + id.Hex(), "pay_" + id.Hex()[1:], "pay_" + id.Hex() + "0", "pay_" + strings.ToUpper(id.Hex()),
		"pay_" + strings.Repeat("g", 32), " pay_" + id.Hex(), "PAY_" + id.Hex(), "pay_" + strings.Repeat("é", 16),
	} {
		if _, err := ParseID(s); ErrorCode(err) != CodeInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// Recorded for ever: callers store what ContentKey gave them.
func TestContentKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want      string
		namespace string
		fields    []string
	}{
		{"c83036d313c276042c2bce86f5cbc136", "invoices", []string{"2026-11", "cus_1"}},
		{"8a95e92b07498f9e3f07135d14845e68", "invoices", nil},
	} {
		if got := ContentKey(c.namespace, c.fields...); got != c.want {
			t.Errorf("ContentKey(%q, %q) = %s, want %s", c.namespace, c.fields, got, c.want)
		}
	}
	if ContentKey("n", "ab", "c") == ContentKey("n", "a", "bc") || ContentKey("n", "a", "") == ContentKey("n", "a") {
		t.Error("where a field ends does not matter to ContentKey")
	}
	long := strings.Repeat("x", 300) // a length of two uvarint bytes
	sum := sha256.Sum256(append([]byte{1, 'n', 0xAC, 0x02}, long...))
	if got := ContentKey("n", long); got != hex.EncodeToString(sum[:16]) {
		t.Errorf("a long field: %s", got)
	}
}

func TestChildKeys(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("b", BatchKeyLengthMax)
	for i, want := range map[int]string{0: "::0", 9: "::9", 57: "::57", 99: "::99"} {
		for _, batch := range []string{"b", longest} {
			key, err := ChildKey(batch, i)
			if err != nil || key != batch+want || !ReservedKey(key) || CheckKey(key) != "" {
				t.Errorf("child %d: %q, %v", i, key, err)
			}
		}
	}
	for _, i := range []int{-1, 100} {
		if _, err := ChildKey("b", i); ErrorCode(err) != CodeInvalid {
			t.Errorf("child %d: %v", i, err)
		}
	}
	if _, err := ChildKey(longest+"b", 0); ErrorCode(err) != CodeInvalid {
		t.Errorf("a batch key of 241 characters: %v", err)
	}
	if ReservedKey("a:b:c") || !ReservedKey("a::b") {
		t.Error("two colons in a row are reserved, and nothing else is")
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "!", "~", "order-1", strings.Repeat("k", 255), "batch::7"} {
		if message := CheckKey(key); message != "" {
			t.Errorf("%q: %s", key, message)
		}
	}
	for _, key := range []string{"", " ", "a b", "a\tb", "a\x00", "é", "\x7f", strings.Repeat("k", 256), "a\n"} {
		if CheckKey(key) == "" {
			t.Errorf("%q passes", key)
		}
	}
}

func TestCheckTenantID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "0", "acme", "a_b-c", strings.Repeat("t", 63), "0-_"} {
		if message := CheckTenantID(id); message != "" {
			t.Errorf("%q: %s", id, message)
		}
	}
	for _, id := range []string{"", "-a", "_a", "A", "acme.de", "a b", "é", strings.Repeat("t", 64), "a\x00", "a>"} {
		if CheckTenantID(id) == "" {
			t.Errorf("%q passes", id)
		}
	}
}

// FuzzKey: a key that passes can be hashed, sent as a header and named in a batch without being another key.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"order-1", "", "a\x00b", "k::9", strings.Repeat("k", 256), "é"} {
		f.Add("acme", s, "order-2")
	}
	f.Fuzz(func(t *testing.T, tenant, key, other string) {
		if CheckTenantID(tenant) != "" || CheckKey(key) != "" || CheckKey(other) != "" {
			return
		}
		if strings.TrimSpace(key) != key || len(key) > 255 || strings.ContainsAny(key, "\x00\r\n") {
			t.Fatalf("%q cannot be a header's value", key)
		}
		if same := NewID(tenant, key) == NewID(tenant, other); same != (key == other) {
			t.Fatalf("%q and %q: same id %v", key, other, same)
		}
		if same := StripeKey("oncepay", KindCharge, tenant, key) == StripeKey("oncepay", KindCharge, tenant, other); same != (key == other) {
			t.Fatalf("%q and %q: same Stripe key %v", key, other, same)
		}
		if id, err := ParseID(NewID(tenant, key).String()); err != nil || id != NewID(tenant, key) {
			t.Fatalf("%q: its id is not read back: %v", key, err)
		}
		if child, err := ChildKey(key, 7); err == nil && (CheckKey(child) != "" || !ReservedKey(child)) {
			t.Fatalf("%q: a child's key is no key", key)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	away := Errorf(CodeUnavailable, "asking the store: %w", cause)
	wrapped := errors.Join(errors.New("outer"), away)
	if !errors.Is(wrapped, cause) || ErrorCode(wrapped) != CodeUnavailable || !Retryable(wrapped) || TicketLost(wrapped) {
		t.Errorf("a wrapped error lost its code or cause: %v", wrapped)
	}
	if !strings.Contains(away.Error(), "asking the store") || !strings.Contains(away.Error(), "connection refused") {
		t.Errorf("the message says nothing: %v", away)
	}
	if plain := Errorf(CodeTicketLost, "lost %d", 1); !TicketLost(plain) || plain.Error() != "lost 1" || errors.Unwrap(plain) != nil {
		t.Errorf("a plain error: %v", plain)
	}
	if ErrorCode(nil) != "" || ErrorCode(cause) != CodeInternal || Retryable(nil) {
		t.Error("no error and a foreign error have the wrong code")
	}
	if got := (&Error{Code: CodeInvalid, Field: "amount", Message: "is wrong"}).Error(); got != "amount: is wrong" {
		t.Errorf("with a field: %s", got)
	}
	v := &ValidationError{Reason: ReasonInvalid, Fields: []FieldError{{"amount", "is wrong"}, {"currency", "too"}}}
	if got := v.Error(); got != "invalid: amount is wrong; currency too" {
		t.Errorf("validation error: %s", got)
	}
}
