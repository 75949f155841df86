package payments

import (
	"strings"
	"testing"
)

// TestAcceptAmountsOfTheCurrency: a part is held against what Stripe takes in the charge's currency, before it is stored and later refused there. All that
// is left can always be asked for, by name as well, whatever it is; and what a stream brings back may have been executed.
func TestAcceptAmountsOfTheCurrency(t *testing.T) {
	t.Parallel()
	odd := chargeIn(StatusSucceeded) // by refunds that were made in Stripe's dashboard
	odd.AmountRefunded = 5
	for name, c := range map[string]struct {
		currency string
		charge   Payment
		ask      Intent
		verdict  Verdict
		says     string
	}{
		"three decimals":            {"kwd", chargeIn(StatusSucceeded), asks(KindRefund, 105), VerdictAmountInvalid, "must end in 0"},
		"three decimals, right":     {"kwd", chargeIn(StatusSucceeded), asks(KindRefund, 110), VerdictStored, ""},
		"no fractions":              {"isk", chargeIn(StatusSucceeded), asks(KindRefund, 150), VerdictAmountInvalid, "divisible by 100"},
		"no fractions, right":       {"ugx", chargeIn(StatusSucceeded), asks(KindRefund, 200), VerdictStored, ""},
		"a capture":                 {"bhd", chargeIn(StatusRequiresCapture), asks(KindCapture, 999), VerdictAmountInvalid, "must end in 0"},
		"a capture, right":          {"bhd", chargeIn(StatusRequiresCapture), asks(KindCapture, 990), VerdictStored, ""},
		"a cancel":                  {"kwd", chargeIn(StatusRequiresCapture), asks(KindCancel, 0), VerdictStored, ""},
		"all":                       {"kwd", odd, asks(KindRefund, 0), VerdictStored, ""},
		"all, named":                {"kwd", odd, asks(KindRefund, 995), VerdictStored, ""},
		"too much, and out of step": {"kwd", odd, asks(KindRefund, 1001), VerdictAmountExceeds, "995"},
		"two decimals":              {"usd", chargeIn(StatusSucceeded), asks(KindRefund, 1), VerdictStored, ""},
		"none":                      {"jpy", chargeIn(StatusSucceeded), asks(KindRefund, 1), VerdictStored, ""},
	} {
		c.charge.Currency = c.currency
		amount, verdict, why := AcceptFollowUp(c.charge, nil, c.ask)
		if verdict != c.verdict || !strings.Contains(why, c.says) || (verdict == VerdictStored) != (why == "") || verdict == VerdictAmountInvalid && amount != 0 {
			t.Errorf("%s: %d, %s, %q; want %s", name, amount, verdict, why, c.verdict)
		}
		if _, again, _, _ := AcceptForgotten(c.charge, nil, c.ask); again == VerdictAmountInvalid {
			t.Errorf("%s: what was accepted once is refused when it comes back", name)
		}
	}
}
