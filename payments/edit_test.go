package payments

import (
	"strings"
	"testing"
)

func TestCheckEdit(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"":                         "",
		"amount=9900":              "",
		"amount=-1":                "amount must be a positive integer",
		"amount=0":                 "amount must be a positive integer",
		"amount=":                  "", // it may be a refund, of all that is left
		"amount=5123&currency=kwd": "amount must end in 0",
		"amount=5123":              "", // the message's currency may take it
		"amount=5120&currency=KWD": "",
		"currency=kwd":             "", // and its amount may fit
		"currency=usdx":            "currency must be one of Stripe's",
		"currency=":                "",
		"currency=&kind=charge":    "currency is required",
		"currency= usd":            "currency must be one of Stripe's",
		"payment_method=":          "",
		"payment_method=&kind=":    "payment_method is required",
		"payment_method=pm 1":      "payment_method must consist of printable",
		"payment_method=pm_2":      "",
		"customer=":                "",
		"customer=ä":               "customer must consist of printable",
		"description=" + strings.Repeat("x", 1001):        "description must have at most 1000",
		"description=Order 17":                            "",
		"kind=refund":                                     "",
		"kind=batch":                                      "kind must be charge",
		"kind=refund&amount=":                             "",
		"kind=refund&amount=0":                            "amount must be a positive integer",
		"kind=cancel&amount=5":                            "amount is not for cancels",
		"kind=refund&currency=usd":                        "currency is only for charges",
		"kind=refund&expires_at=2030-01-01T00:00:00Z":     "expires_at is only for charges",
		"kind=refund&off_session=":                        "",
		"kind=capture&reason=duplicate":                   "reason is only for",
		"kind=capture&metadata.a=1":                       "metadata is only for",
		"reason=abandoned":                                "",
		"reason=bored":                                    "reason is only for cancels",
		"kind=cancel&reason=bored":                        "reason must be one of duplicate",
		"kind=charge&reason=duplicate":                    "reason is only for cancels",
		"kind=":                                           "",
		"payment_id=pay_1":                                "payment_id is only for",
		"payment_id=pay_1&kind=refund":                    "payment_id must be the id of the payment",
		"payment_id=pay_af5f4f1841e88ebcae502028d51c062c": "",
		"payment_id=":                                     "",
		"capture_method=later":                            "capture_method must be automatic or manual",
		"capture_method=manual":                           "",
		"statement_descriptor_suffix=17":                  "statement_descriptor_suffix must contain at least one letter",
		"receipt_email=jenny":                             "receipt_email must be an email address",
		"return_url=/return":                              "return_url must be an absolute URL",
		"metadata.oncepay_x=1":                            "metadata must not use names",
		"metadata.a=1":                                    "",
		"metadata.a=":                                     "",
		"off_session=false":                               "",
		"expires_at=2030-01-01T00:00:00Z":                 "",
	} {
		changes := map[string]string{}
		for part := range strings.SplitSeq(set, "&") {
			if name, value, ok := strings.Cut(part, "="); ok {
				changes[name] = value
			}
		}
		field, message := CheckEdit(changes)
		if got := strings.TrimSpace(field + " " + message); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", set, got, want)
		}
	}
}
