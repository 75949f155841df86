package payments

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCurrencyTable(t *testing.T) {
	t.Parallel()
	exponents := map[int]string{
		0: "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF",
		3: "BHD JOD KWD OMR TND",
		2: "USD EUR GBP ISK UGX HUF TWD IDR AUD CHF BRL INR COP",
	}
	for exponent, list := range exponents {
		for code := range strings.FieldsSeq(list) {
			for _, c := range []string{code, strings.ToLower(code), code[:1] + strings.ToLower(code[1:])} {
				if got, ok := Exponent(c); !ok || got != exponent || !KnownCurrency(c) {
					t.Errorf("%s: exponent %d, known %v", c, got, ok)
				}
			}
		}
	}
	for _, c := range []string{"", "us", "usdd", "xxx", "u$d", "123", "   ", "\u212aRW", "btc", "ſek"} {
		if KnownCurrency(c) {
			t.Errorf("%q is known", c)
		}
	}
	if n := len(currencies); n < 135 {
		t.Errorf("%d currencies: Stripe has more than 135", n)
	}
	lists := twoDecimalCurrencies + " " + zeroDecimalCurrencies + " " + threeDecimalCurrencies + " " + wholeUnitCurrencies
	if n := len(strings.Fields(lists)); n != len(currencies) {
		t.Errorf("%d codes are listed and %d are different: one stands in two lists", n, len(currencies))
	}
	for code := range amountDigitsMore {
		if !KnownCurrency(code) {
			t.Errorf("%s has a limit and is not known", code)
		}
	}
}

func TestCheckAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		wrong    string // a word of the message, "" if all is well
	}{
		{1, "usd", ""}, {9900, "USD", ""}, {99_999_999, "usd", ""}, {100_000_000, "usd", "8 digits"}, {math.MaxInt64, "usd", "8 digits"},
		{0, "usd", "positive"}, {-1, "usd", "positive"}, {math.MinInt64, "usd", "positive"}, {0, "", "positive"}, {5, "nonsense", ""},
		{999_999_999_999, "idr", ""}, {1_000_000_000_000, "idr", "12 digits"},
		{9_999_999_999, "cop", ""}, {10_000_000_000, "cop", "10 digits"}, {999_999_999, "inr", ""}, {1_000_000_000, "inr", "9 digits"},
		{50, "jpy", ""}, {99_999_999, "jpy", ""}, {100_000_000, "jpy", "8 digits"},
		{5120, "kwd", ""}, {5124, "kwd", "end in 0"}, {10, "bhd", ""}, {1, "tnd", "end in 0"}, {5, "omr", "end in 0"}, {5, "jod", "end in 0"},
		{500, "isk", ""}, {5, "isk", "divisible by 100"}, {550, "ISK", "divisible by 100"}, {500, "ugx", ""}, {501, "ugx", "divisible by 100"},
		{1045, "huf", ""}, {80045, "twd", ""},
	} {
		got := CheckAmount(c.amount, c.currency)
		if c.wrong == "" && got != "" || !strings.Contains(got, c.wrong) {
			t.Errorf("CheckAmount(%d, %q) = %q, want %q in it", c.amount, c.currency, got, c.wrong)
		}
	}
}

func TestFormatAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{9900, "usd", "99.00 USD"}, {5, "usd", "0.05 USD"}, {0, "usd", "0.00 USD"}, {-5, "eur", "-0.05 EUR"}, {-12345, "eur", "-123.45 EUR"},
		{500, "jpy", "500 JPY"}, {0, "jpy", "0 JPY"}, {5120, "kwd", "5.120 KWD"}, {20, "kwd", "0.020 KWD"}, {500, "isk", "5.00 ISK"},
		{math.MaxInt64, "usd", "92233720368547758.07 USD"}, {math.MinInt64, "usd", "-92233720368547758.08 USD"}, {math.MinInt64, "jpy", "-9223372036854775808 JPY"},
		{7, "xyz", "7 XYZ"},
	} {
		if got := FormatAmount(c.amount, c.currency); got != c.want {
			t.Errorf("FormatAmount(%d, %q) = %q, want %q", c.amount, c.currency, got, c.want)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s, currency string
		want        int64
	}{
		{"99.00", "usd", 9900}, {"99", "USD", 9900}, {"99.5", "usd", 9950}, {"0.05", "usd", 5}, {"0", "usd", 0}, {"007", "usd", 700},
		{"500", "jpy", 500}, {"5.12", "kwd", 5120}, {"5.124", "kwd", 5124}, {"5", "isk", 500}, {"5.50", "isk", 550}, {"92233720368547758.07", "usd", math.MaxInt64},
	} {
		if got, err := ParseDecimal(c.s, c.currency); err != nil || got != c.want {
			t.Errorf("ParseDecimal(%q, %q) = %d, %v, want %d", c.s, c.currency, got, err, c.want)
		}
	}
	for _, c := range []struct{ s, currency, field string }{
		{"", "usd", "amount"}, {".", "usd", "amount"}, {".5", "usd", "amount"}, {"5.", "usd", "amount"}, {"1.2.3", "usd", "amount"}, {"-1", "usd", "amount"},
		{"+1", "usd", "amount"}, {" 1", "usd", "amount"}, {"1 ", "usd", "amount"}, {"1,000.00", "usd", "amount"}, {"1_000", "usd", "amount"}, {"1e3", "usd", "amount"},
		{"0x10", "usd", "amount"}, {"1.005", "usd", "amount"}, {"5.0", "jpy", "amount"}, {"5.1200", "kwd", "amount"}, {"١", "usd", "amount"}, {"99,00", "eur", "amount"},
		{"92233720368547758.08", "usd", "amount"}, {strings.Repeat("9", 400), "usd", "amount"}, {"Infinity", "usd", "amount"}, {"NaN", "usd", "amount"},
		{"1", "xyz", "currency"}, {"1", "", "currency"},
	} {
		got, err := ParseDecimal(c.s, c.currency)
		e, ok := err.(*Error)
		if !ok || got != 0 || e.Code != CodeInvalid || e.Field != c.field {
			t.Errorf("ParseDecimal(%q, %q) = %d, %v", c.s, c.currency, got, err)
		} else if c.s != "" && len(c.s) > 3 && strings.Contains(e.Error(), c.s) {
			t.Errorf("the message repeats the value: %v", err)
		}
	}
}

func TestWhatIsFormattedIsReadBack(t *testing.T) {
	t.Parallel()
	codes := strings.Fields("usd jpy kwd isk ugx idr xaf")
	rapid.Check(t, func(rt *rapid.T) {
		amount := rapid.Int64Min(0).Draw(rt, "amount")
		currency := rapid.SampledFrom(codes).Draw(rt, "currency")
		decimal, _, _ := strings.Cut(FormatAmount(amount, currency), " ")
		if got, err := ParseDecimal(decimal, currency); err != nil || got != amount {
			rt.Fatalf("%d %s is written %s and read as %d, %v", amount, currency, decimal, got, err)
		}
	})
}
