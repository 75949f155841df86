package payments

import (
	"math"
	"strconv"
	"strings"
)

// CheckAmount says what is wrong with an amount in the currency's minor units as Stripe counts them, or returns "". An unknown currency is not
// the amount's fault and leaves only the rule that it must be positive.
//
// Stripe's minimum (0.50 USD, 50 JPY, …) is not checked: it is stated per settlement currency, the currency of the bank account that is paid
// out to, after a conversion at a rate of that moment, and some payment methods have none. An intent shows none of these. Stripe refuses an
// amount that is too small without charging, and the payment becomes rejected.
func CheckAmount(amount int64, currency string) string {
	if amount <= 0 {
		return "must be a positive integer in the currency's minor units, as 9900 for 99.00 USD"
	}
	rule, ok := currencyOf(currency)
	if !ok {
		return ""
	}
	if digits := len(strconv.FormatInt(amount, 10)); digits > rule.digits {
		return "must have at most " + strconv.Itoa(rule.digits) + " digits in this currency, which is what Stripe accepts: split the payment"
	}
	if amount%rule.step == 0 {
		return ""
	}
	if rule.exponent == 3 {
		return "must end in 0, since Stripe rounds three-decimal currencies to two: 5.124 is sent as 5120 or 5130"
	}
	return "must be divisible by 100, since Stripe takes this currency with two decimals and no fractions: 5 is sent as 500"
}

// FormatAmount writes an amount in minor units for people: "99.00 USD". A currency that is not known is written as the bare number of units.
func FormatAmount(amount int64, currency string) string {
	exponent, _ := Exponent(currency)
	sign, abs := "", uint64(amount)
	if amount < 0 {
		sign, abs = "-", -abs // right for the smallest int64 as well
	}
	digits := strconv.FormatUint(abs, 10)
	if missing := exponent + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if exponent > 0 {
		point := len(digits) - exponent
		digits = digits[:point] + "." + digits[point:]
	}
	return sign + digits + " " + upperASCII(currency)
}

// ParseDecimal reads what a person or a spreadsheet wrote, "99.00", as minor units of the currency: 9900. It wants plain digits with at most one
// point and at most the currency's decimals; signs, separators, exponents and spaces are refused, since each could mean another amount. The
// error is an *Error with CodeInvalid. Whether Stripe takes the amount is CheckAmount's matter.
func ParseDecimal(s, currency string) (int64, error) {
	exponent, ok := Exponent(currency)
	if !ok {
		return 0, &Error{Code: CodeInvalid, Field: "currency", Message: currencyRemedy}
	}
	invalid := func(message string) (int64, error) {
		return 0, &Error{Code: CodeInvalid, Field: "amount", Message: message}
	}
	whole, fraction, point := strings.Cut(s, ".")
	if !allDigits(whole) || point && !allDigits(fraction) {
		return invalid("must be written in digits with at most one decimal point, as 99.00, without sign, spaces or thousands separators")
	}
	if len(fraction) > exponent {
		if exponent == 0 {
			return invalid("must be a whole number in this currency, which has no decimals")
		}
		return invalid("must have at most " + strconv.Itoa(exponent) + " decimals in this currency")
	}
	amount, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", exponent-len(fraction)), 10, 64)
	if err != nil || amount > math.MaxInt64 {
		return invalid("is too large: check it for missing decimal points")
	}
	return int64(amount), nil
}

// allDigits reports whether s is one or more ASCII digits.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
