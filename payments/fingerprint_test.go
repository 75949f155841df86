package payments

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Recorded for ever: stored fingerprints are compared with what these functions return. A change here is a change of FingerprintVersion.
func TestFingerprintGoldenValues(t *testing.T) {
	t.Parallel()
	smallest := Intent{Amount: 9900, Currency: "usd", PaymentMethod: "pm_card_visa", Customer: "cus_1", OffSession: true}
	for name, c := range map[string]struct {
		intent Intent
		want   string
	}{
		"smallest": {smallest, "a8ed209491b14a155efce11a8951219ce75dd30a1249c855bf3f3361847931fd"},
		"zero":     {Intent{}, "f9c3dae748607e54c74b8c327dff39a5dbc4afe772321bffcd90562be859b5e7"},
		"full":     {goodIntent(), "2289b3c708720734e6e7bae7919afab46a9dc9ecf2ca8c8ca9b5cdc866481760"},
	} {
		sum := Fingerprint(c.intent)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if FingerprintVersion != 1 {
		t.Error("the values above are version 1's")
	}
}

// fieldChanges changes each field that is part of the request, by its name on the wire, to something that s decides.
var fieldChanges = map[string]func(i *Intent, s string){
	"kind":                        func(i *Intent, s string) { i.Kind = Kind("k" + s) },
	"payment_id":                  func(i *Intent, s string) { i.PaymentID += "." + s },
	"amount":                      func(i *Intent, s string) { i.Amount += int64(len(s)) + 1 },
	"currency":                    func(i *Intent, s string) { i.Currency += "." + s },
	"customer":                    func(i *Intent, s string) { i.Customer += "." + s },
	"payment_method":              func(i *Intent, s string) { i.PaymentMethod += "." + s },
	"description":                 func(i *Intent, s string) { i.Description += "." + s },
	"statement_descriptor_suffix": func(i *Intent, s string) { i.StatementDescriptorSuffix += "." + s },
	"receipt_email":               func(i *Intent, s string) { i.ReceiptEmail += "." + s },
	"capture_method":              func(i *Intent, s string) { i.CaptureMethod = CaptureMethod("c" + s) },
	"off_session":                 func(i *Intent, _ string) { i.OffSession = !i.OffSession },
	"return_url":                  func(i *Intent, s string) { i.ReturnURL += "." + s },
	"metadata": func(i *Intent, s string) {
		m := maps.Clone(i.Metadata)
		if m == nil {
			m = map[string]string{}
		}
		m["."+s] += "." + s
		i.Metadata = m
	},
}

func anyIntent() *rapid.Generator[Intent] {
	return rapid.Custom(func(t *rapid.T) Intent {
		word := rapid.OneOf(rapid.Just(""), rapid.StringN(0, 8, -1))
		return Intent{
			TenantID: word.Draw(t, "tenant"), IdempotencyKey: word.Draw(t, "key"), Kind: Kind(rapid.SampledFrom([]string{"", "charge"}).Draw(t, "kind")),
			PaymentID: word.Draw(t, "payment_id"), Amount: rapid.Int64().Draw(t, "amount"), Currency: rapid.SampledFrom([]string{"usd", "USD", "jpy", ""}).Draw(t, "currency"),
			Customer: word.Draw(t, "customer"), PaymentMethod: word.Draw(t, "payment_method"), Description: word.Draw(t, "description"),
			StatementDescriptorSuffix: word.Draw(t, "suffix"), ReceiptEmail: word.Draw(t, "email"),
			CaptureMethod: CaptureMethod(rapid.SampledFrom([]string{"", "automatic", "manual"}).Draw(t, "capture")), OffSession: rapid.Bool().Draw(t, "off"),
			ReturnURL: word.Draw(t, "url"), Metadata: rapid.MapOfN(word, word, 0, 5).Draw(t, "metadata"),
			ExpiresAt: time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "expires"), 0),
		}
	})
}

func TestEveryFieldOfTheRequestIsInTheFingerprint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := anyIntent().Draw(rt, "intent")
		names := slices.Sorted(maps.Keys(fieldChanges))
		changed := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(rt, "fields"))))
		b := a
		for _, name := range changed {
			fieldChanges[name](&b, rapid.StringN(0, 3, -1).Draw(rt, name))
		}
		if Fingerprint(a) == Fingerprint(b) {
			rt.Fatalf("%v changed and the fingerprint did not", changed)
		}
		got := Differs(a, b)
		if slices.Sort(got); !slices.Equal(got, changed) {
			rt.Fatalf("%v changed, Differs says %v", changed, got)
		}
	})
}

func TestTwoRandomIntentsDifferExactlyIfTheirFingerprintsDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := anyIntent().Draw(rt, "a")
		b := a
		if rapid.Bool().Draw(rt, "other") {
			b = anyIntent().Draw(rt, "b")
		}
		if same := Fingerprint(a) == Fingerprint(b); same != (len(Differs(a, b)) == 0) {
			rt.Fatalf("same fingerprint %v, Differs %v", same, Differs(a, b))
		}
	})
}

func TestWhatNamesOrDatesARequestIsNotInTheFingerprint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := anyIntent().Draw(rt, "a")
		b := a
		other := anyIntent().Draw(rt, "b")
		b.ExpiresAt, b.IdempotencyKey, b.TenantID = other.ExpiresAt, other.IdempotencyKey, other.TenantID
		if Fingerprint(a) != Fingerprint(b) || len(Differs(a, b)) != 0 {
			rt.Fatal("expires_at, the key or the tenant changed the fingerprint")
		}
	})
}

func TestTheSameRequestSaidInTwoWays(t *testing.T) {
	t.Parallel()
	a := goodIntent()
	b := a
	b.Currency, b.Kind, b.CaptureMethod = "USD", "", ""
	b.Metadata = map[string]string{}
	for _, name := range []string{"channel", "order"} { // built in another order
		b.Metadata[name] = a.Metadata[name]
	}
	if Fingerprint(a) != Fingerprint(b) || len(Differs(a, b)) != 0 {
		t.Errorf("case, defaults or order changed the fingerprint: %v", Differs(a, b))
	}
	a.Metadata, b.Metadata = nil, map[string]string{}
	if Fingerprint(a) != Fingerprint(b) || len(Differs(a, b)) != 0 {
		t.Error("no metadata and empty metadata are two requests")
	}
}

func TestMetadataOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	i := goodIntent()
	i.Metadata = map[string]string{}
	for n := range 40 {
		i.Metadata[fmt.Sprint("name", n)] = fmt.Sprint(n)
	}
	want := Fingerprint(i)
	for range 50 { // maps are iterated in random order
		i.Metadata = maps.Clone(i.Metadata)
		if Fingerprint(i) != want {
			t.Fatal("the fingerprint depends on map order")
		}
	}
}

func TestFieldsDoNotRunIntoEachOther(t *testing.T) {
	t.Parallel()
	a, b := Intent{Customer: "ab"}, Intent{Customer: "a", PaymentMethod: "b"}
	if Fingerprint(a) == Fingerprint(b) {
		t.Error("a value moved to the next field and the fingerprint stayed")
	}
	a, b = Intent{Metadata: map[string]string{"ab": "c"}}, Intent{Metadata: map[string]string{"a": "bc"}}
	if Fingerprint(a) == Fingerprint(b) {
		t.Error("a metadata name and its value run into each other")
	}
}
