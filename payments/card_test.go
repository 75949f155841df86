package payments

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// testCards are the published test numbers of the schemes and of Stripe (docs.stripe.com/testing), and generated ones for the rarer lengths.
var testCards = map[string]string{
	"visa 16":            "4242424242424242",
	"visa debit":         "4000056655665556",
	"visa 13":            "4222222222222",
	"mastercard":         "5555555555554444",
	"mastercard 2":       "2223003122003222",
	"mastercard 2 first": withCheckDigit("222100000000000"),
	"mastercard 2 last":  withCheckDigit("272099999999999"),
	"amex 37":            "378282246310005",
	"amex 34":            "343434343434343",
	"discover":           "6011111111111117",
	"discover 65":        "6500000000000002",
	"discover 644":       withCheckDigit("644000000000000"),
	"discover 649 19":    withCheckDigit("649999999999999999"),
	"discover 622126":    withCheckDigit("622126000000000"),
	"diners 14":          "30569309025904",
	"diners 36":          "36227206271667",
	"diners 38":          "38520000023237",
	"diners 309":         withCheckDigit("3095000000000"),
	"diners 16":          "3056930009020004",
	"diners 39 19":       withCheckDigit("390000000000000000"),
	"jcb":                "3566002020360505",
	"jcb first":          withCheckDigit("352800000000000"),
	"jcb last 19":        withCheckDigit("358999999999999999"),
	"unionpay 16":        "6200000000000005",
	"unionpay 19":        "6205500000000000004",
	"maestro 12":         withCheckDigit("50180000001"),
	"maestro 13":         withCheckDigit("502000000001"),
	"maestro 6759 19":    withCheckDigit("675900000000000001"),
	"maestro 6763 16":    withCheckDigit("676300000000001"),
	"visa 19":            withCheckDigit("400000000000000001"),
}

// withCheckDigit appends the Luhn digit, computed in another way than the code does: by trying.
func withCheckDigit(s string) string {
	for c := byte('0'); c <= '9'; c++ {
		if luhnByTable(s + string(c)) {
			return s + string(c)
		}
	}
	panic("no check digit fits")
}

func luhnByTable(s string) bool {
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			d = []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}[d]
		}
		sum += d
	}
	return sum%10 == 0
}

func TestCardNumbersAreFound(t *testing.T) {
	t.Parallel()
	for name, card := range testCards {
		for _, wrapped := range []string{card, "card" + card + "x", `{"description":"pay ` + card + `."}`, "_" + card + "_", "é" + card + "é", "1. " + card, card + ".00", "no." + card} {
			if !ContainsCardNumberString(wrapped) || !ContainsCardNumber([]byte(wrapped)) {
				t.Errorf("%s: not found in %q", name, wrapped)
			}
		}
		for offset := range 9 {
			if s := strings.Repeat("x", offset) + card; !ContainsCardNumberString(s) {
				t.Errorf("%s: not found at offset %d", name, offset)
			}
		}
	}
}

func TestGroupedCardNumbersAreFound(t *testing.T) {
	t.Parallel()
	for _, layout := range []struct {
		digits string
		sizes  []int
	}{
		{"4242424242424242", []int{4, 4, 4, 4}},
		{testCards["visa 19"], []int{4, 4, 4, 4, 3}},
		{testCards["unionpay 19"], []int{6, 13}},
		{withCheckDigit("6200000000000001"), []int{4, 4, 4, 4, 1}},
		{withCheckDigit("62000000000000012"), []int{4, 4, 4, 4, 2}},
		{"378282246310005", []int{4, 6, 5}},
		{"30569309025904", []int{4, 6, 4}},
		{"30569309025904", []int{4, 4, 4, 2}},
		{"4222222222222", []int{4, 4, 4, 1}},
		{testCards["maestro 12"], []int{4, 4, 4}},
		{testCards["maestro 13"], []int{4, 4, 5}},
	} {
		for _, sep := range []string{" ", "-", "\u00a0", "\u2010", "\u2011", "\u2013"} {
			var groups []string
			rest := layout.digits
			for _, n := range layout.sizes {
				groups, rest = append(groups, rest[:n]), rest[n:]
			}
			s := strings.Join(groups, sep)
			for _, wrapped := range []string{s, "a" + s, "12" + sep + s, s + " 12/27", s + sep + "x", "(" + s + ")"} {
				if !ContainsCardNumberString(wrapped) || !ContainsCardNumber([]byte(wrapped)) {
					t.Errorf("not found: %q", wrapped)
				}
			}
			if double := strings.Join(groups, sep+sep); ContainsCardNumberString(double) {
				t.Errorf("found across two separators: %q", double)
			}
		}
	}
}

func TestWhatIsNoCard(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "4", "424242424242424", "4242424242424241",
		"42424242424242424242",                   // 20 digits
		"94242424242424242",                      // the group is taken whole
		"4242 4242 4242 42421",                   // as is the last
		"4242-4242-4242-424a4242",                // a group cut by a letter
		"4242-4242 4242.4242",                    // a decimal point between numbers
		"4242.4242 4242.4242",                    // two decimal numbers
		"1.4242.4242.4242.4242",                  // a longer row of dotted numbers
		"4242.4242.4242.4242.1",                  // as well
		"624242.4242424242424",                   // a decimal number
		"424242 4242424242",                      // no layout of cards
		"5555555555554", "378282246310", "30569", // a prefix without a length of its issuer
		withCheckDigit("411111111111111"[:13]),                               // 14 digits is not Visa's
		withCheckDigit("272100000000000"),                                    // past Mastercard's last
		withCheckDigit("352700000000000"), withCheckDigit("359000000000000"), // beside JCB
		withCheckDigit("676400000000000"), withCheckDigit("501900000000000"), // beside Maestro
		withCheckDigit("306000000000000"), withCheckDigit("100000000000000"), "0000000000000000", // nobody's
		"12345678-4242-4242-8242-424242424242", "urn:uuid:42424242-4242-4242-4242-424242424242", // UUIDs, all digits
		"deadbeefdeadbeef4242424242424242", "4242424242424242deadbeefcafe", "A" + "4242424242424242" + "BCDEFAB", // hex ids
		"pay_af5f4f1841e88ebcae502028d51c062c",
		"+" + testCards["visa 13"],                                                                                        // +42 22 …
		"FR76 3000 6000 0112 3456 7890 189", "LU36 0010 0000 0000 0106", "IBAN:" + ibanOf("ES", "4242424242424242") + ".", // IBANs that hold one
		"0.4242424242424242", "12.4242424242424242",
		`{"amount":` + testCards["maestro 12"] + `}`, "{\"amount\" :\n " + testCards["maestro 12"] + "}",
		"2026-11-30T03:26:42.000Z", "2026-11-30 03:26:42 1700000000", "1700000000000", "1700000000000000", "1700000000000000000",
	} {
		if ContainsCardNumberString(s) || ContainsCardNumber([]byte(s)) {
			t.Errorf("taken for a card number: %q", s)
		}
	}
}

// ibanOf gives a BBAN the check digits that make an IBAN of it, in groups of four.
func ibanOf(country, bban string) string {
	for check := range 98 {
		rem := 0
		for _, c := range bban + country + fmt.Sprintf("%02d", check) {
			if c >= 'A' {
				rem = (rem*100 + int(c-'A') + 10) % 97
			} else {
				rem = (rem*10 + int(c-'0')) % 97
			}
		}
		if rem == 1 {
			s := country + fmt.Sprintf("%02d", check) + bban
			var groups []string
			for ; len(s) > 4; s = s[4:] {
				groups = append(groups, s[:4])
			}
			return strings.Join(append(groups, s), " ")
		}
	}
	panic("no check digits fit")
}

// Only an IBAN whose own check digits are right hides what looks like a card in it.
func TestOnlyValidIBANsHideACard(t *testing.T) {
	t.Parallel()
	valid := ibanOf("ES", "1234"+"4242424242424242")
	compact := strings.ReplaceAll(ibanOf("AT", "424242424242424"+"242"), " ", "")
	for _, s := range []string{valid, "(" + valid + ")", valid + " and more", "to " + valid, compact} {
		if ContainsCardNumberString(s) {
			t.Errorf("an IBAN is taken for a card: %q", s)
		}
	}
	broken := []byte(valid)
	broken[2] = '0' + (broken[2]-'0'+1)%10
	for _, s := range []string{
		string(broken), "X" + valid, strings.ToLower(valid[:2]) + valid[2:], valid + " 4242 4242 4242 4242", "4242424242424242 " + valid,
		valid[:9] + " " + valid[9:], "AB12 4242 4242 4242 4242", "ES|" + valid[2:],
	} {
		if !ContainsCardNumberString(s) {
			t.Errorf("a card is hidden: %q", s)
		}
	}
}

func TestCardFieldNamesTheField(t *testing.T) {
	t.Parallel()
	const card = "x 4242 4242 4242 4242"
	set := map[string]func(*Intent){
		"idempotency_key":             func(i *Intent) { i.IdempotencyKey = card },
		"kind":                        func(i *Intent) { i.Kind = card },
		"payment_id":                  func(i *Intent) { i.PaymentID = card },
		"currency":                    func(i *Intent) { i.Currency = card },
		"payment_method":              func(i *Intent) { i.PaymentMethod = card },
		"customer":                    func(i *Intent) { i.Customer = card },
		"description":                 func(i *Intent) { i.Description = card },
		"statement_descriptor_suffix": func(i *Intent) { i.StatementDescriptorSuffix = card },
		"receipt_email":               func(i *Intent) { i.ReceiptEmail = card },
		"capture_method":              func(i *Intent) { i.CaptureMethod = card },
		"return_url":                  func(i *Intent) { i.ReturnURL = card },
		"tenant_id":                   func(i *Intent) { i.TenantID = card },
	}
	for name, f := range set {
		i := goodIntent()
		if got := i.CardField(); got != "" {
			t.Fatalf("a good intent has a card in %q", got)
		}
		f(&i)
		if got := i.CardField(); got != name {
			t.Errorf("CardField = %q, want %q", got, name)
		}
	}
	for _, m := range []map[string]string{{"a": card}, {card: "a"}} {
		i := goodIntent()
		i.Metadata = m
		if got := i.CardField(); got != "metadata" {
			t.Errorf("CardField = %q, want metadata", got)
		}
	}
}

// TestIdsAreNoCards counts false alarms over what ids look like; by construction there are none.
func TestIdsAreNoCards(t *testing.T) {
	t.Parallel()
	n := 1_000_000
	if testing.Short() {
		n = 50_000
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	const hexDigits = "0123456789abcdef"
	buf := make([]byte, 64)
	hexInto := func(b []byte) {
		for i := 0; i < len(b); i += 16 {
			for j, v := 0, rnd.Uint64(); j < 16 && i+j < len(b); j, v = j+1, v>>4 {
				b[i+j] = hexDigits[v&15]
			}
		}
	}
	alarms := 0
	for range n {
		uuid := buf[:36]
		hexInto(uuid)
		uuid[8], uuid[13], uuid[18], uuid[23] = '-', '-', '-', '-'
		uuid[14], uuid[19] = '4', "89ab"[rnd.IntN(4)]
		if ContainsCardNumber(uuid) {
			t.Logf("UUID %s", uuid)
			alarms++
		}
		for _, length := range []int{32, 64} {
			hexInto(buf[:length])
			if ContainsCardNumber(buf[:length]) {
				t.Logf("hex %s", buf[:length])
				alarms++
			}
		}
	}
	if alarms != 0 {
		t.Errorf("%d false alarms in %d ids of each form", alarms, n)
	}
}

// containsCardSlowly is an independent detector for text of digits, spaces and letters g to z only, where no context applies.
func containsCardSlowly(s string) bool {
	type prefix struct {
		s       string
		lengths string
	}
	prefixes := []prefix{{"4", " 13 16 19"}, {"34", " 15"}, {"37", " 15"}}
	all := func(low, high int) (s string) {
		for n := low; n <= high; n++ {
			s += fmt.Sprint(" ", n)
		}
		return s
	}
	add := func(low, high int, lengths string) {
		for p := low; p <= high; p++ {
			prefixes = append(prefixes, prefix{fmt.Sprint(p), lengths})
		}
	}
	add(51, 55, " 16")
	add(2221, 2720, " 16")
	add(6011, 6011, all(16, 19))
	add(644, 649, all(16, 19))
	add(65, 65, all(16, 19))
	add(622126, 622925, all(16, 19))
	add(62, 62, all(16, 19))
	add(300, 305, all(14, 19))
	add(309, 309, all(14, 19))
	add(36, 36, all(14, 19))
	add(38, 39, all(14, 19))
	add(3528, 3589, all(16, 19))
	for _, p := range []int{5018, 5020, 5038, 6304, 6759, 6761, 6762, 6763} {
		add(p, p, all(12, 19))
	}
	check := func(digits string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(digits, p.s) && strings.Contains(p.lengths+" ", fmt.Sprint(" ", len(digits), " ")) && luhnByTable(digits) {
				return true
			}
		}
		return false
	}
	layouts := " 4-4-4-4 4-4-4-4-1 4-4-4-4-2 4-4-4-4-3 4-6-5 4-6-4 4-4-4-1 4-4-4-2 4-4-4-3 4-4-4 4-4-5 6-13 "
	s = strings.ReplaceAll(s, "  ", " | ")
	for c := 'g'; c <= 'z'; c++ {
		s = strings.ReplaceAll(s, string(c), " | ")
	}
	for part := range strings.SplitSeq(s, "|") {
		// The split leaves a space beside every cut; a group of digits never stands beside an empty one.
		groups := strings.Fields(part)
		for i := range groups {
			if check(groups[i]) {
				return true
			}
			sizes, digits := fmt.Sprint(len(groups[i])), groups[i]
			for _, g := range groups[i+1:] {
				sizes, digits = sizes+"-"+fmt.Sprint(len(g)), digits+g
				if strings.Contains(layouts, " "+sizes+" ") && check(digits) {
					return true
				}
			}
		}
	}
	return false
}

func TestCardDetectorAgreesWithASlowOne(t *testing.T) {
	t.Parallel()
	cards := make([]string, 0, len(testCards))
	for _, c := range testCards {
		cards = append(cards, c)
	}
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(rt, "parts") {
			switch rapid.IntRange(0, 4).Draw(rt, "part") {
			case 0:
				b.WriteString(rapid.StringMatching(`[0-9]{1,20}`).Draw(rt, "digits"))
			case 1:
				b.WriteString(rapid.StringMatching(`[g-z]{1,5}`).Draw(rt, "letters"))
			case 2:
				b.WriteString(rapid.StringMatching(` {1,2}`).Draw(rt, "spaces"))
			case 3:
				b.WriteString(rapid.SampledFrom(cards).Draw(rt, "card"))
			case 4:
				c := rapid.SampledFrom(cards).Draw(rt, "grouped")
				for len(c) > 4 {
					b.WriteString(c[:4] + " ")
					c = c[4:]
				}
				b.WriteString(c)
			}
		}
		s := b.String()
		if got, want := ContainsCardNumberString(s), containsCardSlowly(s); got != want {
			rt.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}

// FuzzCardNumber: any text at all; the two entrances agree, nothing panics, and a card put in between non-alphanumeric bytes is found.
func FuzzCardNumber(f *testing.F) {
	for _, s := range []string{"", "4242", "4242 4242 4242 4242", "12345678-4242-4242-8242-424242424242", "\xff\xc2\xa0\xe2\x80", "0.4242424242424242", "4-4-4-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ContainsCardNumberString(s) != ContainsCardNumber([]byte(s)) {
			t.Fatal("string and bytes disagree")
		}
		if !ContainsCardNumberString(s + "|4242-4242-4242-4242|" + s) {
			t.Fatal("a card was hidden by what stands around it")
		}
	})
}

func BenchmarkContainsCardNumber(b *testing.B) {
	message := []byte(`{"idempotency_key":"3f0c1d52-6a0e-4e6a-9c53-27b7bb1f3f0a","amount":9900,"currency":"usd","customer":"cus_NffrFeUfNV2Hib",` +
		`"payment_method":"pm_1MtwBwLkdIwHu7ixUEgbFdYF","description":"Order 1042, two tickets for the late show","receipt_email":"jenny.rosen@example.com",` +
		`"metadata":{"order_id":"6735","trace":"4bf92f3577b34da6a3ce929d0e0e4736","cart":"a, b, c, d","channel":"web"},"expires_at":"2026-11-30T03:26:42Z",` +
		`"return_url":"https://shop.example.com/orders/return","off_session":true,"statement_descriptor_suffix":"LATE SHOW"}`)
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		if ContainsCardNumber(message) {
			b.Fatal("no card here")
		}
	}
}
