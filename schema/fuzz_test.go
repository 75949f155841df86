package schema

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzDecodeIntent(f *testing.F) {
	for _, kind := range []string{"intent/accepted", "intent/refused"} {
		for _, m := range recordings(f, kind) {
			f.Add(m.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := DecodeIntent(data)
		if key, ok := PeekKey(data); ok {
			if !ValidKey(key) {
				t.Fatalf("peeked at %q", key)
			}
			if err == nil && in.IdempotencyKey.Value != key {
				t.Fatalf("peeked at %q, decoded %q", key, in.IdempotencyKey.Value)
			}
		} else if err == nil && ValidKey(in.IdempotencyKey.Value) {
			t.Fatalf("the key %q was not peeked at", in.IdempotencyKey.Value)
		}
		if err != nil {
			checkRefusal(t, data, err)
			return
		}
		// encoding/json must see the same members with the same values.
		view := intentView(in)
		theirs, ok := stdlibView(data).(map[string]any)
		if text, is := theirs["expires_at"].(string); ok && is {
			at, err := ParseTime(text)
			if err != nil {
				t.Fatalf("expires_at %q was accepted: %v", text, err)
			}
			theirs["expires_at"] = at.Format(time.RFC3339Nano)
		}
		if !reflect.DeepEqual(view, map[string]any(theirs)) {
			t.Fatalf("we see %v, encoding/json sees %v", view, theirs)
		}
		checkRoundTrip(t, in)
	})
}

func checkRefusal(t *testing.T, data []byte, err error) {
	t.Helper()
	var refused *DecodeError
	if !errors.As(err, &refused) || refused.Problem == "" || refused.Offset < 0 || refused.Offset > int64(len(data)) {
		t.Fatalf("%#v", err)
	}
	digits := 0
	for _, c := range refused.Field {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	if digits > 3 || len(refused.Field) > len("metadata.")+safeNameMax {
		t.Fatalf("the field %q may be a value", refused.Field)
	}
}

func checkRoundTrip(t interface{ Fatalf(string, ...any) }, in Intent) {
	out, err := EncodeIntent(in)
	if err != nil {
		// Only its size can forbid it: escapes may be longer than what was sent.
		if !strings.Contains(err.Error(), "send at most") {
			t.Fatalf("decoded, but not to be written: %v", err)
		}
		return
	}
	again, err := DecodeIntent(out)
	if err != nil {
		t.Fatalf("written, but not to be read: %v\n%s", err, out)
	}
	if !reflect.DeepEqual(in, again) {
		t.Fatalf("got %+v\nwant %+v", again, in)
	}
	twice, err := EncodeIntent(again)
	if err != nil || string(out) != string(twice) {
		t.Fatalf("not stable: %v\n%s\n%s", err, out, twice)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for _, kind := range []string{"batch/accepted", "batch/refused"} {
		for _, m := range recordings(f, kind) {
			f.Add(m.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeBatch(data)
		if err != nil {
			var refused *DecodeError
			if !errors.As(err, &refused) || refused.Problem == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if len(b.Payments) == 0 {
			return // the list is missing, which only the receiver may mind
		}
		out, err := EncodeBatch(b)
		if err != nil {
			t.Fatalf("decoded, but not to be written: %v", err)
		}
		again, err := DecodeBatch(out)
		if err != nil || !reflect.DeepEqual(b, again) {
			t.Fatalf("%v\ngot %+v\nwant %+v", err, again, b)
		}
	})
}

// optional draws a member that may be absent.
func optional[T any](of *rapid.Generator[T]) *rapid.Generator[Optional[T]] {
	return rapid.Custom(func(t *rapid.T) Optional[T] {
		if rapid.Bool().Draw(t, "set") {
			return Some(of.Draw(t, "value"))
		}
		return Optional[T]{}
	})
}

func drawIntent(t *rapid.T) Intent {
	text := rapid.String().Filter(func(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) })
	texts := optional(text)
	in := Intent{
		IdempotencyKey: texts.Draw(t, "key"), TenantID: texts.Draw(t, "tenant"), Kind: texts.Draw(t, "kind"),
		PaymentID: texts.Draw(t, "payment"), Amount: optional(rapid.Int64()).Draw(t, "amount"), Currency: texts.Draw(t, "currency"),
		PaymentMethod: texts.Draw(t, "method"), Customer: texts.Draw(t, "customer"), Description: texts.Draw(t, "description"),
		StatementDescriptorSuffix: texts.Draw(t, "suffix"), ReceiptEmail: texts.Draw(t, "email"),
		CaptureMethod: texts.Draw(t, "capture"), OffSession: optional(rapid.Bool()).Draw(t, "off_session"),
		ReturnURL: texts.Draw(t, "return_url"),
	}
	if rapid.Bool().Draw(t, "metadata set") {
		in.Metadata = rapid.MapOf(text, text).Draw(t, "metadata")
	}
	if rapid.Bool().Draw(t, "expires set") {
		first, last := time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
		at := time.Unix(rapid.Int64Range(first, last).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		in.ExpiresAt = Some(at.UTC())
	}
	return in
}

func TestIntentRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkRoundTrip(t, drawIntent(t)) })
}

func TestBatchRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := BatchMessage{IdempotencyKey: Some("k"), Payments: rapid.SliceOfN(rapid.Custom(drawIntent), 1, 4).Draw(t, "payments")}
		for i := range b.Payments {
			b.Payments[i].IdempotencyKey = Optional[string]{}
		}
		out, err := EncodeBatch(b)
		if err != nil {
			t.Fatalf("%v", err)
		}
		again, err := DecodeBatch(out)
		if err != nil || !reflect.DeepEqual(b, again) {
			t.Fatalf("%v\ngot %+v\nwant %+v", err, again, b)
		}
	})
}

func TestEncodeBatchRefuses(t *testing.T) {
	t.Parallel()
	for field, b := range map[string]BatchMessage{
		"payments":                    {},
		"payments[1].idempotency_key": {Payments: []Intent{{}, {IdempotencyKey: Some("a")}}},
		"payments[0].customer":        {Payments: []Intent{{Customer: Some("\x00")}, {Customer: Some("\x00")}}},
		"parent":                      {Parent: Some("\xff"), Payments: []Intent{{}}},
	} {
		_, err := EncodeBatch(b)
		var refused *DecodeError
		if !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := EncodeBatch(BatchMessage{Payments: make([]Intent, 101)}); err == nil {
		t.Error("101 intents were written")
	}
}
