package stripemock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// tester is what testing.T and rapid.T share.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// session is a Gateway behind a recorder, for one test that makes its calls one after another.
type session struct {
	*recorder
	*stripe.Gateway
	account payments.Account
	events  []string // queries of events of the last look-up
}

func newSession(t *testing.T, change ...func(*stripe.Options)) *session {
	t.Helper()
	r := newRecorder(t)
	g := r.gateway(t, change...)
	return &session{recorder: r, Gateway: g, account: accountOf(t, g)}
}

func accountOf(t testing.TB, g *stripe.Gateway) payments.Account {
	t.Helper()
	account, err := g.Account(t.Context(), "acme")
	if err != nil {
		t.Fatalf("Account: %v", err)
	}
	return account
}

func charge(change ...func(*payments.Intent)) payments.Intent {
	i := payments.Intent{
		TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 9900, Currency: "usd", PaymentMethod: "pm_card_visa",
		CaptureMethod: payments.CaptureAutomatic,
	}
	for _, f := range change {
		f(&i)
	}
	return i
}

// stored is the payment of an intent as its owner gets it.
func (s *session) stored(i payments.Intent) payments.Payment {
	return payments.Payment{
		Intent: i, ID: i.ID(), Lane: payments.LaneInteractive, Status: payments.StatusReceived, RequestVersion: stripe.RequestVersion,
		StripeAccount: s.account.ID, Livemode: s.account.Livemode,
	}
}

// submits sends the intent, which must be one that we would accept, and wants stripe-mock to take it and the Gateway to read the answer as
// one about this payment.
func (s *session) submits(t tester, i payments.Intent) {
	t.Helper()
	i = i.Normalized()
	if v := i.Validate(); v != nil {
		t.Fatalf("the test's intent would not be accepted: %v", v)
	}
	body, err := stripe.Body(stripe.RequestVersion, namespace, i)
	if err != nil {
		t.Fatalf("Body: %v", err)
	}
	p := s.stored(i)
	key := payments.StripeKey(namespace, p.Kind, p.TenantID, p.IdempotencyKey)
	before := len(s.all())
	o := s.Submit(contextOf(t), payments.Submission{Payment: p, StripeKey: key, MayLeave: func() error { return nil }})
	calls := s.all()[before:]
	if len(calls) != 1 {
		t.Fatalf("%d requests left, want 1; observed %s (%s)", len(calls), o.Kind, o.Detail)
	}
	c := calls[0]
	if c.method != "POST" || c.path != "/v1/payment_intents" || c.body != body || c.header.Get("Idempotency-Key") != key ||
		c.header.Get("Stripe-Version") != apiVersion {
		t.Errorf("another request than the intent's arrived: %+v", c)
	}
	if o.Kind != payments.ObservedAnswer || o.HTTPStatus != 200 || o.Object == nil {
		t.Fatalf("observed %s (%s): %s", o.Kind, o.Detail, strings.Join(s.complaints(), "; "))
	}
	// stripe-mock confirms nothing, so the PaymentIntent is one that is still being confirmed: to be looked at again, not in disagreement.
	done, err := payments.Decide(p, o, time.Now(), payments.Policy{TriesMax: 20})
	if err != nil || done.Status != payments.StatusUnknown || done.Reason != payments.ReasonConfirming {
		t.Errorf("decided %s (%s), %v; the object is %+v", done.Status, done.Reason, err, o.Object)
	}
}

// members are the optional fields of an intent, one by one.
var members = []func(*payments.Intent){
	func(i *payments.Intent) { i.Customer = "cus_1" },
	func(i *payments.Intent) { i.Description = "Two shirts, size “L” & a hat = 10 % off; 日本 🎁" },
	func(i *payments.Intent) { i.StatementDescriptorSuffix = "SHIRTS & CO" },
	func(i *payments.Intent) { i.ReceiptEmail = "jo+shop@example.com" },
	func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual },
	func(i *payments.Intent) { i.OffSession = true },
	func(i *payments.Intent) { i.ReturnURL = "https://shop.example/back?order=1&a[]=b#top" },
	func(i *payments.Intent) {
		i.Metadata = map[string]string{"order": "o 1", "0": "1", "a.b-c_d": "ä&=+%", "größe 日本": "", "card": "[x]"}
	},
	func(i *payments.Intent) { i.ExpiresAt = time.Unix(2_000_000_000, 0) },
}

// TestEveryCombination sends an intent with each set of optional fields, and has sent every parameter that any golden body has.
func TestEveryCombination(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	seen := map[string]bool{}
	for set := range 1 << len(members) {
		s.submits(t, charge(func(i *payments.Intent) {
			i.IdempotencyKey = fmt.Sprintf("set-%d", set)
			for n, add := range members {
				if set>>n&1 == 1 {
					add(i)
				}
			}
		}))
	}
	for _, c := range s.all() {
		if c.method == "POST" {
			for _, name := range c.names(t) {
				seen[name] = true
			}
		}
	}
	for _, form := range goldenBodies(t) {
		for _, name := range form.names(t) {
			if !seen[name] {
				t.Errorf("%s has %s, which no combination here has: add it to members", form.name, name)
			}
		}
	}
}

// allCurrencies finds what payments/currency.go knows by asking for every code there can be.
func allCurrencies() []string {
	var list []string
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			for c := 'a'; c <= 'z'; c++ {
				if code := string([]rune{a, b, c}); payments.KnownCurrency(code) {
					list = append(list, code)
				}
			}
		}
	}
	return list
}

// amountsOf are the smallest and the greatest amount that we accept in a currency.
func amountsOf(t tester, currency string) []int64 {
	t.Helper()
	var smallest, greatest int64
	for _, step := range []int64{1, 10, 100} {
		if smallest == 0 && payments.CheckAmount(step, currency) == "" {
			smallest = step
		}
	}
	for power := int64(10); power > 0 && power < 1e18; power *= 10 {
		if amount := power - smallest; smallest > 0 && amount > 0 && payments.CheckAmount(amount, currency) == "" {
			greatest = amount
		}
	}
	if smallest == 0 || greatest <= smallest {
		t.Fatalf("%s: no amounts (%d to %d)", currency, smallest, greatest)
	}
	return []int64{smallest, greatest}
}

func TestEveryCurrency(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	currencies := allCurrencies()
	if len(currencies) < 130 || !slices.Contains(currencies, "usd") || !slices.Contains(currencies, "kwd") {
		t.Fatalf("only %d currencies: %v", len(currencies), currencies)
	}
	for _, currency := range currencies {
		for _, amount := range amountsOf(t, currency) {
			s.submits(t, charge(func(i *payments.Intent) {
				i.IdempotencyKey, i.Currency, i.Amount = fmt.Sprintf("%s-%d", currency, amount), currency, amount
			}))
		}
	}
}

// longest is a text of exactly n characters, of several bytes each where the field allows that.
func longest(n int, unit string) string {
	text := strings.Repeat(unit, n/utf8.RuneCountInString(unit)+1)
	return string([]rune(text)[:n])
}

// TestLimits sends every field at its greatest length, in one byte a character and in several, and the metadata full.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	full := func(name, value string) map[string]string {
		m := map[string]string{}
		for n := range payments.MetadataMax {
			tail := fmt.Sprint(n)
			m[longest(payments.MetadataNameLengthMax-len(tail), name)+tail] = longest(payments.MetadataValueLengthMax, value)
		}
		return m
	}
	for name, change := range map[string]func(*payments.Intent){
		"tenant":               func(i *payments.Intent) { i.TenantID = longest(63, "a_-0") },
		"key":                  func(i *payments.Intent) { i.IdempotencyKey = longest(payments.KeyLengthMax, "~!k&=[]") },
		"customer":             func(i *payments.Intent) { i.Customer = longest(payments.ReferenceLengthMax, "cus&=%+[]") },
		"payment method":       func(i *payments.Intent) { i.PaymentMethod = longest(payments.ReferenceLengthMax, "pm_&=%+[]") },
		"description":          func(i *payments.Intent) { i.Description = longest(payments.DescriptionLengthMax, "d") },
		"description, 2 bytes": func(i *payments.Intent) { i.Description = longest(payments.DescriptionLengthMax, "é") },
		"description, 4 bytes": func(i *payments.Intent) { i.Description = longest(payments.DescriptionLengthMax, "🎁") },
		"description, odd":     func(i *payments.Intent) { i.Description = "\n\t \u202e\u00a0é\u0301\ufeff&amp;=+%00<>\"'\\" },
		"suffix": func(i *payments.Intent) {
			i.StatementDescriptorSuffix = longest(payments.DescriptorSuffixLengthMax, "S&= ")
		},
		"suffix, 2 bytes": func(i *payments.Intent) {
			i.StatementDescriptorSuffix = longest(payments.DescriptorSuffixLengthMax, "É")
		},
		"email": func(i *payments.Intent) {
			i.ReceiptEmail = longest(64, "a+") + "@" + longest(181, "example") + ".example"
		},
		"email, unicode": func(i *payments.Intent) { i.ReceiptEmail = "jö@exämple.de" },
		"return URL": func(i *payments.Intent) {
			i.ReturnURL = "https://s.example/" + longest(payments.ReturnURLLengthMax-18, "a&=")
		},
		"return URL, an app's": func(i *payments.Intent) { i.ReturnURL = "my-app://back?ä=%F0%9F%8E%81" },
		"metadata":             func(i *payments.Intent) { i.Metadata = full("n", "v") },
		"metadata, 2 bytes":    func(i *payments.Intent) { i.Metadata = full("é", "é") },
		"metadata, 4 bytes":    func(i *payments.Intent) { i.Metadata = full("🎁", "日本") },
		"metadata, odd": func(i *payments.Intent) {
			i.Metadata = map[string]string{" ": " ", "&=+%": "&=+%", "\n": "\n", "é": "", "-1": "[]"}
		},
		"everything at its most": func(i *payments.Intent) { // all at once
			i.Customer, i.Description = longest(payments.ReferenceLengthMax, "c"), longest(payments.DescriptionLengthMax, "日")
			i.StatementDescriptorSuffix, i.ReceiptEmail = longest(payments.DescriptorSuffixLengthMax, "S"), "a@example.com"
			i.ReturnURL, i.Metadata = "https://s.example/"+longest(payments.ReturnURLLengthMax-18, "r"), full("m", "🎁")
			i.CaptureMethod, i.OffSession, i.Currency, i.Amount = payments.CaptureManual, true, "IDR", 999_999_999_999
		},
	} {
		t.Run(name, func(t *testing.T) { s.submits(t, charge(change)) })
	}
}

// TestAnyIntent draws intents that we accept.
func TestAnyIntent(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	currencies := allCurrencies()
	rapid.Check(t, func(rt *rapid.T) { s.submits(rt, drawIntent(rt, currencies)) })
}

func drawIntent(rt *rapid.T, currencies []string) payments.Intent {
	visible := rapid.RuneFrom(nil, &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x21, Hi: 0x7E, Stride: 1}}})
	text := rapid.RuneFrom([]rune{' ', '&', '=', '+', '%', '"', 'é', '日', '🎁', '\n'}).Filter(func(r rune) bool { return r != 0 && utf8.ValidRune(r) })
	of := func(runes *rapid.Generator[rune], least, most int, label string) string {
		return rapid.StringOfN(runes, least, most, -1).Draw(rt, label)
	}
	maybe := func(label string, set func()) {
		if rapid.Bool().Draw(rt, "has "+label) {
			set()
		}
	}
	i := payments.Intent{
		TenantID:       rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,62}`).Draw(rt, "tenant"),
		IdempotencyKey: of(visible, 1, payments.KeyLengthMax, "key"),
		Currency:       rapid.SampledFrom(currencies).Draw(rt, "currency"),
		PaymentMethod:  of(visible, 1, payments.ReferenceLengthMax, "payment_method"),
		CaptureMethod:  rapid.SampledFrom([]payments.CaptureMethod{"", payments.CaptureAutomatic, payments.CaptureManual}).Draw(rt, "capture_method"),
		OffSession:     rapid.Bool().Draw(rt, "off_session"),
	}
	amounts := amountsOf(rt, i.Currency)
	i.Amount = rapid.Int64Range(1, amounts[1]/amounts[0]).Draw(rt, "amount") * amounts[0]
	maybe("customer", func() { i.Customer = of(visible, 1, payments.ReferenceLengthMax, "customer") })
	maybe("description", func() { i.Description = of(text, 1, payments.DescriptionLengthMax, "description") })
	maybe("suffix", func() {
		i.StatementDescriptorSuffix = rapid.StringMatching(`[A-Za-zÀ-ÖÉ][A-Za-z0-9À-Ö .,&=+%-]{0,21}`).Draw(rt, "suffix")
	})
	maybe("email", func() {
		i.ReceiptEmail = rapid.StringMatching(`[a-z0-9.+_%=&ö]{1,30}@[a-z0-9]{1,20}(\.[a-z]{2,9}){1,3}`).Draw(rt, "email")
	})
	maybe("return URL", func() {
		i.ReturnURL = rapid.StringMatching(`(https|http|app)://[a-z0-9.]{1,30}(/[a-zA-Z0-9._~&=+é-]{0,40}){0,3}(\?[a-z0-9=&+]{0,40})?`).Draw(rt, "return_url")
	})
	maybe("metadata", func() {
		name := rapid.StringOfN(text.Filter(func(r rune) bool { return r != '[' && r != ']' }), 1, payments.MetadataNameLengthMax, -1).
			Filter(func(s string) bool { return !strings.HasPrefix(s, payments.MetadataReservedNamePrefix) })
		i.Metadata = rapid.MapOfN(name, rapid.StringOfN(text, 0, payments.MetadataValueLengthMax, -1), 0, payments.MetadataMax).Draw(rt, "metadata")
	})
	return i
}
