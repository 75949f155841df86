package stripesim

import (
	"fmt"
	"strconv"
	"strings"
)

// Stripe's presentment currencies (docs.stripe.com/currencies).
var currencies = func() map[string]bool {
	m := map[string]bool{}
	for c := range strings.FieldsSeq(`usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob
		brl bsd bwp byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd
		gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl
		mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg
		qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx uyu
		uzs vnd vuv wst xaf xcd xof xpf yer zar zmw`) {
		m[c] = true
	}
	return m
}()

// Minimum amounts in minor units (docs.stripe.com/currencies). Stripe applies
// the settlement currency's; the simulator settles in the presented one.
var minimums = map[string]int64{
	"usd": 50, "eur": 50, "gbp": 30, "aud": 50, "cad": 50, "chf": 50, "nzd": 50, "sgd": 50, "brl": 50, "inr": 50,
	"jpy": 50, "hkd": 400, "mxn": 1000, "myr": 200, "nok": 300, "sek": 300, "dkk": 250, "pln": 200, "ron": 200,
	"bgn": 100, "aed": 200, "czk": 1500, "huf": 17500, "thb": 1000,
}

var threeDecimal = map[string]bool{"bhd": true, "jod": true, "kwd": true, "omr": true, "tnd": true}

// zeroDecimal currencies have no smaller unit (docs.stripe.com/currencies#zero-decimal); isk and ugx count as if they had.
var zeroDecimal = map[string]bool{
	"bif": true, "clp": true, "djf": true, "gnf": true, "jpy": true, "kmf": true, "krw": true, "mga": true, "pyg": true, "rwf": true, "vnd": true,
	"vuv": true, "xaf": true, "xof": true, "xpf": true,
}

// shownMoney writes an amount as Stripe's messages do.
func shownMoney(amount int64, currency string) string {
	text := fmt.Sprintf("%d.%02d", amount/100, amount%100)
	switch {
	case zeroDecimal[currency]:
		text = strconv.FormatInt(amount, 10)
	case threeDecimal[currency]:
		text = fmt.Sprintf("%d.%03d", amount/1000, amount%1000)
	case currency == "usd":
		return "$" + text
	}
	return text + " " + currency
}

// Amounts have at most 8 digits; rupiah 12.
const (
	maxAmount       = 99_999_999
	maxAmountRupiah = 999_999_999_999
)

// checkMoney applies Stripe's amount rules to a currency in lower case.
func checkMoney(amount int64, currency string) *apiError {
	if !currencies[currency] {
		return invalid("", "currency", "Invalid currency: "+currency+".")
	}
	limit := int64(maxAmount)
	if currency == "idr" {
		limit = maxAmountRupiah
	}
	switch {
	case amount < 1:
		return invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount > limit:
		return invalid("amount_too_large", "amount", fmt.Sprintf("Amount must be no more than %d in the smallest unit of %s", limit, currency))
	case amount < minimums[currency]:
		if currency == "usd" {
			return invalid("amount_too_small", "amount", "Amount must be at least $0.50 usd")
		}
		return invalid("amount_too_small", "amount", fmt.Sprintf("Amount must be at least %d in the smallest unit of %s", minimums[currency], currency))
	case threeDecimal[currency] && amount%10 != 0:
		return invalid("", "amount", "Amounts in "+currency+" must end in 0: only two decimals can be charged.")
	case (currency == "isk" || currency == "ugx") && amount%100 != 0:
		return invalid("", "amount", "Amounts in "+currency+" must be divisible by 100: it has no decimals.")
	}
	return nil
}
