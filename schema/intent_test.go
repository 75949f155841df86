package schema

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

const smallestIntent = `{"idempotency_key":"order-1","amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`

func TestDecodeIntentSmallest(t *testing.T) {
	t.Parallel()
	got, err := DecodeIntent([]byte(smallestIntent))
	if err != nil {
		t.Fatal(err)
	}
	want := Intent{
		IdempotencyKey: Some("order-1"), Amount: Some[int64](9900), Currency: Some("usd"),
		Customer: Some("cus_1"), PaymentMethod: Some("pm_card_visa"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if got.OffSession.Or(true) != true || got.Kind.Or(KindCharge) != KindCharge {
		t.Error("an absent member must give its default")
	}
}

func TestDecodeIntentKeepsAbsentAndEmptyApart(t *testing.T) {
	t.Parallel()
	got, err := DecodeIntent([]byte(`{"kind":"","off_session":false,"amount":0,"metadata":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != Some("") || got.OffSession != Some(false) || got.Amount != Some[int64](0) {
		t.Errorf("present and zero was lost: %+v", got)
	}
	if got.Metadata == nil || got.CaptureMethod.Set {
		t.Errorf("empty metadata or absent capture_method is wrong: %+v", got)
	}
}

// refusals holds the field and a part of the text of each error. The messages
// carry a card number wherever a value can stand.
var refusals = []struct {
	name, data, field, text string
	malformed               bool
}{
	{"empty", ``, "", "ends too early", true},
	{"blank", "  \n", "", "ends too early", true},
	{"array", `[{"amount":1}]`, "", "a JSON object", false},
	{"string", `"4242424242424242"`, "", "a JSON object", false},
	{"null", `null`, "", "null is not allowed", false},
	{"begins like null", `nope`, "", "", true},
	{"begins like true", `{"amount":tru}`, "amount", "", true},
	{"truncated", `{"amount":4242424242424242`, "", "ends too early", true},
	{"truncated string", `{"customer":"4242424242424242`, "customer", "ends too early", true},
	{"trailing object", smallestIntent + `{}`, "", "follows the object", true},
	{"trailing garbage", smallestIntent + `4242424242424242`, "", "follows the object", true},
	{"trailing comma", `{"amount":1,}`, "", "well-formed", true},
	{"comment", `{/*4242424242424242*/"amount":1}`, "", "well-formed", true},
	{"bom", "\xEF\xBB\xBF" + smallestIntent, "", "well-formed", true},
	{"unknown", `{"ammount":4242424242424242}`, "ammount", "unknown", false},
	{"unknown card", `{"4242424242424242":1}`, "", "unknown", false},
	{"unknown spaced card", `{"4242 4242 4242 4242":1}`, "", "unknown", false},
	{"unknown then broken", `{"ammount":1,`, "ammount", "unknown", true},
	{"wrong case", `{"Amount":4242424242424242}`, "Amount", "send amount", false},
	{"repeated", `{"amount":1,"amount":4242424242424242}`, "amount", "repeated", true},
	{"repeated by escape", `{"amount":1,"\u0061mount":1}`, "amount", "repeated", true},
	{"repeated metadata", `{"metadata":{"a":"1","a":"4242424242424242"}}`, "metadata.a", "repeated", true},
	{"repeated card", `{"metadata":{"4242424242424242":"1","4242424242424242":"2"}}`, "metadata", "repeated", true},
	{"null amount", `{"amount":null}`, "amount", "null is not allowed", false},
	{"null customer", `{"customer":null}`, "customer", "null is not allowed", false},
	{"null metadata", `{"metadata":null}`, "metadata", "null is not allowed", false},
	{"null in metadata", `{"metadata":{"a":null}}`, "metadata.a", "null is not allowed", false},
	{"null off_session", `{"off_session":null}`, "off_session", "null is not allowed", false},
	{"null expires_at", `{"expires_at":null}`, "expires_at", "null is not allowed", false},
	{"amount 1.0", `{"amount":1.0}`, "amount", "integer literal", false},
	{"amount 1e2", `{"amount":1e2}`, "amount", "integer literal", false},
	{"amount 1E+2", `{"amount":1E+2}`, "amount", "integer literal", false},
	{"amount text", `{"amount":"4242424242424242"}`, "amount", "integer literal", false},
	{"amount -0", `{"amount":-0}`, "amount", "-0: send a positive integer", false},
	{"amount 01", `{"amount":01}`, "", "well-formed", true},
	{"amount +1", `{"amount":+1}`, "amount", "well-formed", true},
	{"amount NaN", `{"amount":NaN}`, "amount", "well-formed", true},
	{"amount above int64", `{"amount":9223372036854775808}`, "amount", "beyond 64 bits", false},
	{"amount below int64", `{"amount":-9223372036854775809}`, "amount", "beyond 64 bits", false},
	{"amount true", `{"amount":true}`, "amount", "integer literal", false},
	{"amount object", `{"amount":{"value":4242424242424242}}`, "amount", "integer literal", false},
	{"off_session text", `{"off_session":"true"}`, "off_session", "true or false", false},
	{"off_session 1", `{"off_session":1}`, "off_session", "true or false", false},
	{"customer number", `{"customer":4242424242424242}`, "customer", "a string", false},
	{"metadata array", `{"metadata":["4242424242424242"]}`, "metadata", "a JSON object", false},
	{"metadata number", `{"metadata":{"order":4242424242424242}}`, "metadata.order", "a string", false},
	{"metadata object", `{"metadata":{"order":{"a":"4242424242424242"}}}`, "metadata.order", "a string", false},
	{"metadata card name", `{"metadata":{"4242424242424242":1}}`, "metadata", "a string", false},
	{"nul escape", `{"description":"4242424242424242\u0000b"}`, "description", "U+0000", true},
	{"nul escape in key", `{"idempotency_key":"a\u0000b"}`, "idempotency_key", "U+0000", true},
	{"nul escape in name", `{"amount\u0000":1}`, "", "U+0000", true},
	{"nul escape in metadata name", `{"metadata":{"a\u0000":"b"}}`, "metadata", "U+0000", true},
	{"nul escape in metadata", `{"metadata":{"a":"\u0000"}}`, "metadata.a", "U+0000", true},
	{"nul byte", "{\"description\":\"a\x00b\"}", "description", "well-formed", true},
	{"nul byte after", smallestIntent + "\x00", "", "follows the object", true},
	{"high surrogate", `{"metadata":{"k":"\ud800"}}`, "metadata.k", "surrogate", true},
	{"low surrogate", `{"description":"\udc00"}`, "description", "surrogate", true},
	{"surrogate in name", `{"metadata":{"\ud800":"k"}}`, "metadata", "surrogate", true},
	{"surrogates swapped", `{"description":"\udc00\ud800"}`, "description", "surrogate", true},
	{"bad utf-8", "{\"description\":\"4242424242424242\xff\"}", "description", "UTF-8", true},
	{"utf-8 surrogate", "{\"description\":\"\xed\xa0\x80\"}", "description", "UTF-8", true},
	{"overlong utf-8", "{\"description\":\"\xc0\x80\"}", "description", "UTF-8", true},
	{"bad escape", `{"description":"\x41"}`, "description", "escapes", true},
	{"newline in text", "{\"description\":\"a\nb\"}", "description", "well-formed", true},
	{"expires_at date", `{"expires_at":"2030-01-31"}`, "expires_at", "RFC 3339", false},
	{"expires_at without offset", `{"expires_at":"2030-01-31T12:00:00"}`, "expires_at", "RFC 3339", false},
	{"expires_at comma", `{"expires_at":"2030-01-31T12:00:00,5Z"}`, "expires_at", "RFC 3339", false},
	{"expires_at hour 24", `{"expires_at":"2030-01-31T24:00:00Z"}`, "expires_at", "RFC 3339", false},
	{"expires_at short hour", `{"expires_at":"2030-01-31T1:00:00Z"}`, "expires_at", "RFC 3339", false},
	{"expires_at 30 February", `{"expires_at":"2030-02-30T12:00:00Z"}`, "expires_at", "RFC 3339", false},
	{"expires_at year 10000", `{"expires_at":"9999-12-31T23:59:59-01:00"}`, "expires_at", "RFC 3339", false},
	{"expires_at year 0", `{"expires_at":"0000-01-01T00:00:00Z"}`, "expires_at", "RFC 3339", false},
	{"expires_at zero time", `{"expires_at":"0001-01-01T00:00:00Z"}`, "expires_at", "first instant", false},
	{"expires_at zero time with offset", `{"expires_at":"0001-01-01T01:00:00+01:00"}`, "expires_at", "first instant", false},
	{"expires_at number", `{"expires_at":1893456000}`, "expires_at", "a string", false},
	{"expires_at card", `{"expires_at":"4242424242424242"}`, "expires_at", "RFC 3339", false},
	{"deep", `{"metadata":{"a":` + strings.Repeat(`[`, 100_000) + `}}`, "metadata.a", "a string", true},
	{"deep unknown", `{"x":` + strings.Repeat(`{"a":`, 100_000), "x", "unknown", true},
	{"oversize", `{"description":"` + strings.Repeat("4", IntentMaxBytes) + `"}`, "", "at most 524288", false},
}

func TestDecodeIntentRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeIntent([]byte(c.data))
			var refused *DecodeError
			if !errors.As(err, &refused) {
				t.Fatalf("accepted as %+v, or another error: %v", got, err)
			}
			if refused.Field != c.field || !strings.Contains(refused.Problem, c.text) {
				t.Errorf("got %q, want field %q and %q", err, c.field, c.text)
			}
			if refused.Malformed != c.malformed {
				t.Errorf("malformed is %v", refused.Malformed)
			}
			if strings.Contains(err.Error(), "4242") {
				t.Errorf("the error repeats a value: %q", err)
			}
			if !reflect.DeepEqual(got, Intent{}) {
				t.Errorf("a refused message gave %+v", got)
			}
			if refused.Offset < 0 || refused.Offset > int64(len(c.data)) {
				t.Errorf("offset %d is outside the message", refused.Offset)
			}
		})
	}
}

func TestDecodeIntentAcceptsBounds(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"0", "-1", "9223372036854775807", "-9223372036854775808"} {
		got, err := DecodeIntent([]byte(`{"amount":` + amount + `}`))
		if err != nil || strconv.FormatInt(got.Amount.Value, 10) != amount {
			t.Errorf("%s: got %d, %v", amount, got.Amount.Value, err)
		}
	}
	got, err := DecodeIntent([]byte(" {\"\\u0061mount\" :1 ,\n\"description\":\"\\ud83d\\ude00 \\\" \\n \xe2\x82\xac\"}\r\n\t "))
	if err != nil || got.Amount.Value != 1 || got.Description.Value != "😀 \" \n €" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = DecodeIntent([]byte(`{"expires_at":"2030-01-31T12:00:00.123456789+02:00"}`))
	want := time.Date(2030, 1, 31, 10, 0, 0, 123456789, time.UTC)
	if err != nil || got.ExpiresAt != Some(want) {
		t.Errorf("got %v, want %v, %v", got.ExpiresAt, want, err)
	}
}

// An intent that uses all that Stripe allows, each character written in the
// longest way, must not be refused for its size.
func TestDecodeIntentTakesTheLargestLegalIntent(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"amount":1,"description":"` + strings.Repeat(`\ud83d\ude00`, 1000) + `","metadata":{`)
	for i := range 50 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.Repeat(`\ud83d\ude00`, 38) + strconv.Itoa(10+i) + `":"` + strings.Repeat(`\ud83d\ude00`, 500) + `"`)
	}
	b.WriteString(`}}`)
	got, err := DecodeIntent([]byte(b.String()))
	if err != nil || len(got.Metadata) != 50 {
		t.Fatalf("%d metadata of 50, %v", len(got.Metadata), err)
	}
}

// A pooled reader must not carry anything from one message to the next, and what
// was decoded must not change with the message's buffer.
func TestDecodeIntentKeepsNothingOfTheBuffer(t *testing.T) {
	t.Parallel()
	data := []byte(`{"customer":"cus_1","description":"a\tb","metadata":{"a":"b"}}`)
	got, err := DecodeIntent(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'x'
	}
	if got.Customer.Value != "cus_1" || got.Description.Value != "a\tb" || got.Metadata["a"] != "b" {
		t.Errorf("the intent changed with the buffer: %+v", got)
	}
	if again, err := DecodeIntent([]byte(`{}`)); err != nil || !reflect.DeepEqual(again, Intent{}) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestEncodeIntentRefuses(t *testing.T) {
	t.Parallel()
	for field, in := range map[string]Intent{
		"customer":    {Customer: Some("a\x00b")},
		"description": {Description: Some("4242\xff")},
		"metadata.a":  {Metadata: map[string]string{"a": "\x00"}},
		"metadata":    {Metadata: map[string]string{"4242424242424242\x00": ""}},
		"expires_at":  {ExpiresAt: Some(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		"":            {Description: Some(strings.Repeat("a", IntentMaxBytes))},
	} {
		_, err := EncodeIntent(in)
		var refused *DecodeError
		if !errors.As(err, &refused) || refused.Field != field || strings.Contains(err.Error(), "4242") {
			t.Errorf("field %q: got %v", field, err)
		}
	}
	// A receiver would take it for no expiry, and charge for ever.
	if got, err := EncodeIntent(Intent{ExpiresAt: Some(time.Time{})}); err == nil {
		t.Errorf("the zero time was written as %s", got)
	}
}

func TestPeekKey(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		smallestIntent: "order-1",
		`{"ammount":{"a":[1,null]},"idempotency_key":"k"}`:       "k",
		`{"idempotency_key":"k","amount":`:                       "k",
		`{"idempotency_key":"k","amount":1,"amount":2}`:          "k",
		`{"idempotency_key":"k","description":"` + "\xff" + `"}`: "k",
		`{"idempotency_k\u0065y":"k"}`:                           "k",
		`{"idempotency_key":"k"`:                                 "k",
		`{"idempotency_key":"k","idempotency_key":"l"}`:          "",
		`{"idempotency_key":"k","idempotency_key":"k"}`:          "",
		`{"idempotency_key":"k`:                                  "",
		`{"idempotency_key":"a b"}`:                              "",
		`{"idempotency_key":"a\u0000b"}`:                         "",
		`{"idempotency_key":"` + "\xff" + `"}`:                   "",
		`{"idempotency_key":""}`:                                 "",
		`{"idempotency_key":1}`:                                  "",
		`{"idempotency_key":null}`:                               "",
		`{"a":{"idempotency_key":"k"}}`:                          "",
		`[{"idempotency_key":"k"}]`:                              "",
		`{"idempotency_key":"` + strings.Repeat("a", 256) + `"}`: "",
		`{"a":` + strings.Repeat("[", 50_000):                    "",
		``:                                                       "",
	} {
		if key, ok := PeekKey([]byte(data)); key != want || ok != (want != "") {
			t.Errorf("%.60q: got %q, %v, want %q", data, key, ok, want)
		}
	}
}

func BenchmarkDecodeIntent(b *testing.B) {
	data := []byte(`{"idempotency_key":"order-1-2030-01-31","amount":9900,"currency":"usd","customer":"cus_NffrFeUfNV2Hib",` +
		`"payment_method":"pm_1MtwBwLkdIwHu7ix28a3tqPa","description":"Order 1 of January","off_session":true,` +
		`"metadata":{"order":"1","region":"eu","channel":"web"}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeIntent(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeIntent(b *testing.B) {
	in, err := DecodeIntent([]byte(smallestIntent))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeIntent(in); err != nil {
			b.Fatal(err)
		}
	}
}
