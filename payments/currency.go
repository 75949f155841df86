package payments

import "strings"

// currencyRule is what Stripe says about one currency.
type currencyRule struct {
	exponent int   // how many decimals an amount of 1 unit has, as Stripe counts: 2 for USD, 0 for JPY, 3 for KWD
	step     int64 // an amount must be divisible by it
	digits   int   // an amount has at most so many digits
}

// The table is Stripe's (docs.stripe.com/currencies), in its words:
//
// "Presentment currencies" are those a charge may be in; "zero-decimal" amounts are whole units; "three-decimal" amounts must end in 0; ISK and
// UGX became zero-decimal currencies, but are still sent with two decimals that must be 00 (UGX also stands in the zero-decimal list: the special
// case rules). HUF and TWD are two-decimal for charges and differ only for payouts.
const (
	twoDecimalCurrencies = "usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp byn bzd cad cdf chf cny cop crc cve " +
		"czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl htg huf idr ils inr jmd kes kgs khr kyd kzt lak lbp lkr lrd lsl mad " +
		"mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle " +
		"sos srd std szl thb tjs top try ttd twd tzs uah uyu uzs wst xcd xcg yer zar zmw"
	zeroDecimalCurrencies  = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
	threeDecimalCurrencies = "bhd jod kwd omr tnd"
	wholeUnitCurrencies    = "isk ugx" // two decimals that must be 00
)

// amountDigitsMax holds for every currency that amountDigitsMore does not name. Stripe states these limits for payments of any method; cards may
// go higher in some currencies and on some networks, which cannot be known from an intent.
const amountDigitsMax = 8

var amountDigitsMore = map[string]int{"idr": 12, "cop": 10, "inr": 9}

var currencies = buildCurrencies()

func buildCurrencies() map[string]currencyRule {
	table := make(map[string]currencyRule, 160)
	add := func(list string, exponent int, step int64) {
		for code := range strings.FieldsSeq(list) {
			digits := amountDigitsMax
			if more, ok := amountDigitsMore[code]; ok {
				digits = more
			}
			table[code] = currencyRule{exponent: exponent, step: step, digits: digits}
		}
	}
	add(twoDecimalCurrencies, 2, 1)
	add(zeroDecimalCurrencies, 0, 1)
	add(threeDecimalCurrencies, 3, 10)
	add(wholeUnitCurrencies, 2, 100)
	return table
}

// KnownCurrency reports whether Stripe can charge in the currency; the case of the code does not matter.
func KnownCurrency(currency string) bool {
	_, ok := currencyOf(currency)
	return ok
}

// Exponent returns how many decimals the currency has as Stripe counts it: amount 1 is 10^-exponent units. ISK and UGX have 2, although they
// have no fractions. ok is false for a currency that Stripe does not have.
func Exponent(currency string) (exponent int, ok bool) {
	rule, ok := currencyOf(currency)
	return rule.exponent, ok
}

func currencyOf(code string) (currencyRule, bool) {
	if len(code) != 3 {
		return currencyRule{}, false
	}
	rule, ok := currencies[lowerASCII(code)]
	return rule, ok
}

// lowerASCII lowers A to Z only: other letters that Unicode would fold into ASCII, as the Kelvin sign, must stay visible as what they are.
func lowerASCII(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func upperASCII(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
