package batch

import (
	"errors"
	"math"
	"strconv"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// setAmount reads minor units: digits and nothing else. What a spreadsheet makes of a number (1,234 or 9.9E+03 or 99.00) is refused.
func setAmount(in *intent, cell string) string {
	for i := range len(cell) {
		if cell[i] < '0' || cell[i] > '9' {
			return "must be the amount in minor units, in digits only, as 9900 for 99.00 USD; amounts with decimals go into the column amount_decimal"
		}
	}
	if leadingZero(cell) {
		return leadingZeroRemedy
	}
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil || n > math.MaxInt64 {
		return "is too large: check it"
	}
	in.Amount = schema.Some(int64(n))
	return ""
}

const leadingZeroRemedy = "must not begin with a needless 0: is this really the column of amounts?"

// leadingZero reports a number that is written as a code is: 007.
func leadingZero(cell string) bool {
	return len(cell) > 1 && cell[0] == '0' && cell[1] >= '0' && cell[1] <= '9'
}

// setDecimal reads an amount with the currency's decimals.
func setDecimal(in *intent, cell, currency string) string {
	if leadingZero(cell) {
		return leadingZeroRemedy
	}
	amount, err := payments.ParseDecimal(cell, currency)
	var wrong *payments.Error
	if errors.As(err, &wrong) {
		return wrong.Message
	}
	in.Amount = schema.Some(amount)
	return ""
}

// setOffSession takes the capitals that spreadsheets write, too.
func setOffSession(in *intent, cell string) string {
	switch cell {
	case "true", "TRUE":
		in.OffSession = schema.Some(true)
	case "false", "FALSE":
		in.OffSession = schema.Some(false)
	default:
		return "must be true or false"
	}
	return ""
}

func setExpiresAt(in *intent, cell string) string {
	t, err := schema.ParseTime(cell)
	if err != nil || t.IsZero() { // the zero time would stand for none
		return "must be an RFC 3339 time with its offset, such as 2030-01-31T12:00:00Z"
	}
	in.ExpiresAt = schema.Some(t)
	return ""
}
