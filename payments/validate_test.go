package payments

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

func metadataOf(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint("n", i)] = "v"
	}
	return m
}

func TestNormalized(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 3600)
	i := Intent{Currency: "EuR", Metadata: map[string]string{}, ExpiresAt: time.Date(2027, 1, 1, 1, 0, 0, 0, east)}.Normalized()
	want := Intent{Currency: "eur", Kind: KindCharge, CaptureMethod: CaptureAutomatic, ExpiresAt: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	if !reflect.DeepEqual(i, want) {
		t.Errorf("got %+v", i)
	}
	full := goodIntent()
	if got := full.Normalized(); !reflect.DeepEqual(got, full) {
		t.Errorf("a normal intent was changed: %+v", got)
	}
	if got := (Intent{Currency: "\u212aRW"}).Normalized().Currency; got != "\u212arw" {
		t.Errorf("a letter outside ASCII was folded: %q", got)
	}
	if !(Intent{}).Normalized().ExpiresAt.IsZero() {
		t.Error("never became a time")
	}
	if got := (Intent{Kind: KindRefund, CaptureMethod: CaptureManual}).Normalized(); got.Kind != KindRefund || got.CaptureMethod != CaptureManual {
		t.Error("a default replaced what was said")
	}
}

func TestGoodIntentsPass(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Intent){
		"full":                     func(*Intent) {},
		"smallest":                 func(i *Intent) { *i = Intent{IdempotencyKey: "k", Amount: 1, Currency: "usd", PaymentMethod: "pm_1"} },
		"upper case currency":      func(i *Intent) { i.Currency = "USD" },
		"reserved key":             func(i *Intent) { i.IdempotencyKey = "batch::0" },
		"manual capture":           func(i *Intent) { i.CaptureMethod = CaptureManual },
		"longest description":      func(i *Intent) { i.Description = strings.Repeat("ü", 1000) },
		"lines in a description":   func(i *Intent) { i.Description = "a\nb\tc" },
		"longest suffix":           func(i *Intent) { i.StatementDescriptorSuffix = strings.Repeat("X", 22) },
		"accented suffix":          func(i *Intent) { i.StatementDescriptorSuffix = "CAFÉ 12" },
		"longest reference":        func(i *Intent) { i.Customer = strings.Repeat("c", 255) },
		"most metadata":            func(i *Intent) { i.Metadata = metadataOf(46) },
		"longest metadata":         func(i *Intent) { i.Metadata = map[string]string{strings.Repeat("ü", 40): strings.Repeat("ü", 500)} },
		"nearly reserved metadata": func(i *Intent) { i.Metadata = map[string]string{"oncepay": "a", "my_oncepay_x": "b"} },
		"app's return url":         func(i *Intent) { i.ReturnURL = "myapp://return/here" },
		"query in return url":      func(i *Intent) { i.ReturnURL = "http://127.0.0.1:8080/r?a=b#c" },
		"plain mail":               func(i *Intent) { i.ReceiptEmail = "a+b.c@mail.example.co.uk" },
		"expired long ago":         func(i *Intent) { i.ExpiresAt = time.Unix(0, 0) },
		"last second of 9999":      func(i *Intent) { i.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) },
		"yen":                      func(i *Intent) { i.Currency, i.Amount = "jpy", 500 },
	} {
		i := goodIntent()
		change(&i)
		if err := i.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadIntentsAreRefused(t *testing.T) {
	t.Parallel()
	const secret = "s3cretvalue"
	text := func(set func(*Intent, string)) func(*Intent, string) { return set }
	strange := map[string]func(*Intent, string){
		"payment_method":              text(func(i *Intent, s string) { i.PaymentMethod = s }),
		"customer":                    text(func(i *Intent, s string) { i.Customer = s }),
		"description":                 text(func(i *Intent, s string) { i.Description = s }),
		"statement_descriptor_suffix": text(func(i *Intent, s string) { i.StatementDescriptorSuffix = s }),
		"receipt_email":               text(func(i *Intent, s string) { i.ReceiptEmail = s }),
		"return_url":                  text(func(i *Intent, s string) { i.ReturnURL = s }),
		"currency":                    text(func(i *Intent, s string) { i.Currency = s }),
		"kind":                        text(func(i *Intent, s string) { i.Kind = Kind(s) }),
		"capture_method":              text(func(i *Intent, s string) { i.CaptureMethod = CaptureMethod(s) }),
		"idempotency_key":             text(func(i *Intent, s string) { i.IdempotencyKey = s }),
		"tenant_id":                   text(func(i *Intent, s string) { i.TenantID = s }),
		"metadata.a":                  text(func(i *Intent, s string) { i.Metadata = map[string]string{"a": s} }),
		"metadata ":                   text(func(i *Intent, s string) { i.Metadata = map[string]string{s: "a"} }),
	}
	type bad struct {
		field  string
		reason Reason
		change func(*Intent)
	}
	cases := map[string]bad{
		"no key":                   {"idempotency_key", ReasonKeyMissing, func(i *Intent) { i.IdempotencyKey = "" }},
		"key with a space":         {"idempotency_key", ReasonKeyInvalid, func(i *Intent) { i.IdempotencyKey = secret + " a" }},
		"key too long":             {"idempotency_key", ReasonKeyInvalid, func(i *Intent) { i.IdempotencyKey = strings.Repeat("k", 256) }},
		"no amount":                {"amount", ReasonInvalid, func(i *Intent) { i.Amount = 0 }},
		"negative amount":          {"amount", ReasonInvalid, func(i *Intent) { i.Amount = -9900 }},
		"too many digits":          {"amount", ReasonInvalid, func(i *Intent) { i.Amount = 100_000_000 }},
		"fraction of a krona":      {"amount", ReasonInvalid, func(i *Intent) { i.Amount, i.Currency = 550, "isk" }},
		"no currency":              {"currency", ReasonInvalid, func(i *Intent) { i.Currency = "" }},
		"unknown currency":         {"currency", ReasonInvalid, func(i *Intent) { i.Currency = "xyz" }},
		"no payment method":        {"payment_method", ReasonInvalid, func(i *Intent) { i.PaymentMethod = "" }},
		"spaced payment method":    {"payment_method", ReasonInvalid, func(i *Intent) { i.PaymentMethod = secret + " x" }},
		"long payment method":      {"payment_method", ReasonInvalid, func(i *Intent) { i.PaymentMethod = strings.Repeat("p", 256) }},
		"umlaut in customer":       {"customer", ReasonInvalid, func(i *Intent) { i.Customer = "cüs" }},
		"payment id on a charge":   {"payment_id", ReasonInvalid, func(i *Intent) { i.PaymentID = "pay_1" }},
		"capture":                  {"kind", ReasonInvalid, func(i *Intent) { i.Kind, i.PaymentID = KindCapture, "pay_1" }},
		"cancel":                   {"kind", ReasonInvalid, func(i *Intent) { i.Kind, i.PaymentID = KindCancel, "pay_1" }},
		"refund":                   {"kind", ReasonInvalid, func(i *Intent) { i.Kind, i.PaymentID = KindRefund, "pay_1" }},
		"batch":                    {"kind", ReasonInvalid, func(i *Intent) { i.Kind = KindBatch }},
		"no kind that there is":    {"kind", ReasonInvalid, func(i *Intent) { i.Kind = "gift" }},
		"kind in capitals":         {"kind", ReasonInvalid, func(i *Intent) { i.Kind = "Charge" }},
		"capture method":           {"capture_method", ReasonInvalid, func(i *Intent) { i.CaptureMethod = "automatic_async" }},
		"long description":         {"description", ReasonInvalid, func(i *Intent) { i.Description = strings.Repeat("ü", 1001) }},
		"long suffix":              {"statement_descriptor_suffix", ReasonInvalid, func(i *Intent) { i.StatementDescriptorSuffix = strings.Repeat("X", 23) }},
		"suffix without a letter":  {"statement_descriptor_suffix", ReasonInvalid, func(i *Intent) { i.StatementDescriptorSuffix = "2026 #1" }},
		"suffix in Greek":          {"statement_descriptor_suffix", ReasonInvalid, func(i *Intent) { i.StatementDescriptorSuffix = "ΑΘΗΝΑ A" }},
		"suffix with a line break": {"statement_descriptor_suffix", ReasonInvalid, func(i *Intent) { i.StatementDescriptorSuffix = "A\nB" }},
		"too much metadata":        {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = metadataOf(47) }},
		"no metadata name":         {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"": "a"} }},
		"long metadata name":       {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{strings.Repeat("n", 41): "a"} }},
		"bracket in metadata name": {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{secret + "[0]": "a"} }},
		"long value, odd name":     {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"order 1234567": strings.Repeat("v", 501)} }},
		"long value, secret name":  {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"sk1234": strings.Repeat("v", 501)} }},
		"long values": {"metadata.order", ReasonInvalid, func(i *Intent) {
			i.Metadata = map[string]string{"order": strings.Repeat("v", 501), "x": strings.Repeat("v", 501), "a": "b"}
		}},
		"long metadata value":      {"metadata.a", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"a": strings.Repeat(secret, 50)} }},
		"reserved metadata name":   {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"oncepay_" + secret: "a"} }},
		"our own metadata name":    {"metadata", ReasonInvalid, func(i *Intent) { i.Metadata = map[string]string{"oncepay_payment": "a"} }},
		"relative return url":      {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "/return" }},
		"return url without host":  {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "javascript:alert(1)" }},
		"schemeless return url":    {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "//example.com/" }},
		"broken return url":        {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "https://exa mple.com" }},
		"return url with bad port": {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "https://example.com:port/" }},
		"long return url":          {"return_url", ReasonInvalid, func(i *Intent) { i.ReturnURL = "https://example.com/" + strings.Repeat("a", 5000) }},
		"expires before 1970":      {"expires_at", ReasonInvalid, func(i *Intent) { i.ExpiresAt = time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC) }},
		"expires in the year 10000": {"expires_at", ReasonInvalid, func(i *Intent) {
			i.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -14*3600))
		}},
	}
	for _, c := range `<>\'"*` {
		cases["suffix with "+string(c)] = bad{"statement_descriptor_suffix", ReasonInvalid, func(i *Intent) { i.StatementDescriptorSuffix = "AB" + string(c) }}
	}
	for n, email := range []string{
		secret, "@example.com", "a@", "a@b", "a@@example.com", "a@b@example.com", "a b@example.com", "a@exa mple.com", "a@.com", "a@example.", "a@-x.com", "a@x-.com",
		"A <a@example.com>", "a,b@example.com", "a@example.com\r\nBcc: b@example.com", strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b.", 130) + "com",
	} {
		cases[fmt.Sprint("email ", n)] = bad{"receipt_email", ReasonInvalid, func(i *Intent) { i.ReceiptEmail = email }}
	}
	for name, set := range strange {
		field := strings.TrimSpace(name)
		reason := ReasonInvalid
		if field == "idempotency_key" {
			reason = ReasonKeyInvalid
		}
		cases["U+0000 in "+name] = bad{field, reason, func(i *Intent) { set(i, secret+"\x00@x.example") }}
		cases["invalid UTF-8 in "+name] = bad{field, reason, func(i *Intent) { set(i, secret+"\xff@x.example") }}
	}
	for name, c := range cases {
		i := goodIntent()
		c.change(&i)
		err := i.Validate()
		switch {
		case err == nil:
			t.Errorf("%s passes", name)
		case err.Reason != c.reason || len(err.Fields) != 1 || err.Fields[0].Field != c.field || err.Fields[0].Message == "":
			t.Errorf("%s: %v, want only %s with reason %s", name, err, c.field, c.reason)
		case strings.Contains(err.Error(), secret):
			t.Errorf("%s: the message repeats the value: %v", name, err)
		}
	}
}

// What is no kind is told all that there are; those that are one, and not here, where they belong.
func TestUnknownKindIsToldAll(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]string{"gift": "must be charge, capture, cancel or refund, or left out for charge", KindRefund: "is a request of its own about one payment"} {
		i := goodIntent()
		i.Kind = kind
		if err := i.ValidateAny(); kind != KindRefund && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", kind, err)
		}
		if err := i.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as a charge: %v", kind, err)
		}
	}
}

func TestAllFaultsAreListedTheKeyFirst(t *testing.T) {
	t.Parallel()
	err := Intent{Metadata: map[string]string{"oncepay_a": "\xff", "[": strings.Repeat("v", 501)}, ReceiptEmail: "x"}.Validate()
	if err == nil || err.Reason != ReasonKeyMissing {
		t.Fatalf("got %v", err)
	}
	count := map[string]int{}
	for _, f := range err.Fields {
		count[f.Field]++
	}
	want := map[string]int{"idempotency_key": 1, "amount": 1, "currency": 1, "payment_method": 1, "receipt_email": 1, "metadata": 2, "metadata.oncepay_a": 1}
	if !maps.Equal(count, want) || err.Fields[0].Field != "idempotency_key" {
		t.Errorf("got %v, want %v, the key first", err.Fields, want)
	}
	again := Intent{Metadata: map[string]string{"oncepay_a": "\xff", "[": strings.Repeat("v", 501)}, ReceiptEmail: "x"}.Validate()
	if err.Error() != again.Error() {
		t.Error("the message depends on map order")
	}
}
