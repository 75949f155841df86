package stripe

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/form"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

var addGolden = flag.Bool("add", false, "write golden bodies that do not exist yet; those that do never change")

func manyMetadata() map[string]string {
	m := map[string]string{"order": "o 1", "Zeta": "ä&=+%", "empty": "", "a.b-c_d": "日本"}
	for c := 'a'; c <= 'z'; c++ {
		m["key_"+string(c)] = strings.Repeat(string(c), 3)
	}
	return m
}

// goldenIntents name the files in testdata/v1. Cases are only ever added.
func goldenIntents() map[string]payments.Intent {
	base := testPayment().Intent
	with := func(change func(*payments.Intent)) payments.Intent {
		i := base
		change(&i)
		return i
	}
	return map[string]payments.Intent{
		"smallest": {
			TenantID: "demo", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 1, Currency: "jpy", PaymentMethod: "pm_1",
			CaptureMethod: payments.CaptureAutomatic,
		},
		"off_session": base,
		"on_session":  with(func(i *payments.Intent) { i.OffSession = false }),
		"manual":      with(func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual }),
		"return_url": with(func(i *payments.Intent) {
			i.OffSession, i.ReturnURL = false, "https://shop.example/back?order=1&a[]=b#top"
		}),
		"everything": with(func(i *payments.Intent) {
			i.Description, i.StatementDescriptorSuffix, i.ReceiptEmail = "Two shirts, size “L” & a hat", "SHIRTS*1", "jo+shop@example.com"
			i.Metadata, i.ExpiresAt = manyMetadata(), time.Unix(2_000_000_000, 0)
			i.Amount, i.Currency = 9_223_372_036_854_775_807, "idr"
		}),
		"child_key": with(func(i *payments.Intent) { i.TenantID, i.IdempotencyKey = "acme_2-b", strings.Repeat("k", 240)+"::99" }),
	}
}

func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	cases := goldenIntents()
	for name, intent := range cases {
		path := filepath.Join("testdata", "v1", name+".form")
		body, err := Body(1, testNamespace, intent)
		if err != nil {
			t.Fatal(err)
		}
		golden, err := os.ReadFile(path)
		if os.IsNotExist(err) && *addGolden {
			golden = []byte(body)
			err = os.WriteFile(path, golden, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(golden) != body {
			t.Errorf("%s: the body of version 1 has changed:\n%s\nwas\n%s", name, body, golden)
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := cases[strings.TrimSuffix(f.Name(), ".form")]; !ok {
			t.Errorf("%s has no case any more: cases are only ever added", f.Name())
		}
	}
}

// A body depends on nothing but its arguments: not on the order of a map, and not on the fields that Stripe is not told.
func TestBodyIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		i := testPayment().Intent
		i.Amount = rapid.Int64Range(1, 1<<62).Draw(t, "amount")
		i.Description = rapid.String().Draw(t, "description")
		i.Metadata = rapid.MapOf(rapid.StringMatching(`[a-zA-Z0-9_.-]{1,40}`), rapid.String()).Draw(t, "metadata")
		for name := range i.Metadata {
			if strings.HasPrefix(name, metadataPrefix) {
				delete(i.Metadata, name)
			}
		}
		first, err := Body(1, testNamespace, i)
		if err != nil {
			t.Fatal(err)
		}
		other := i
		other.Metadata = map[string]string{}
		maps.Copy(other.Metadata, i.Metadata)
		other.ExpiresAt = time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "expires"), 0)
		if again, _ := Body(1, testNamespace, other); again != first {
			t.Fatalf("two bodies of one intent:\n%s\n%s", first, again)
		}
		fields, _ := requestFields(1, testNamespace, i)
		sdk := &form.Values{}
		for _, f := range fields {
			sdk.Add(f.name, f.value)
		}
		if sdk := sdk.Encode(); sdk != first {
			t.Fatalf("the SDK encodes it otherwise:\n%s\n%s", sdk, first)
		}
		other = i
		other.Amount++
		if again, _ := Body(1, testNamespace, other); again == first {
			t.Fatal("another amount makes the same body")
		}
	})
}
