package stripe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// isRefund is a second opinion on what a refund is.
func isRefund(body []byte) bool {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	m, _ := v.(map[string]any)
	id, _ := m["id"].(string)
	status, _ := m["status"].(string)
	_, amount := m["amount"].(float64)
	currency, _ := m["currency"].(string)
	return m["object"] == "refund" && (strings.HasPrefix(id, "re_") || strings.HasPrefix(id, "pyr_")) && status != "" && amount && currency != ""
}

// Whatever arrives, nothing panics, nothing but a refund of this follow-up is one, and no text of it is kept that may not be.
func FuzzRefunds(f *testing.F) {
	p := followUp(payments.KindRefund)
	ok := refundJSON(p, "succeeded")
	for _, body := range []string{
		ok, refundJSON(p, "pending"), "{}", "null", `{"object":"refund"}`, listJSON(false, ok), "<html>", errorJSON("invalid_request_error", "charge_already_refunded", ""),
		strings.Replace(ok, `"amount":2500`, `"amount":2.5e3`, 1), strings.Replace(ok, "2500", "99999999999999999999", 1), ok[:200],
		strings.Replace(ok, `"pi_3Test"`, `{"id":"pi_3Test"}`, 1), strings.Replace(ok, `"reason":null`, `"failure_reason":"4242424242424242"`, 1),
		strings.Replace(ok, `"usd"`, `"usd","amount":7`, 1), strings.Replace(ok, "re_3Test", `re_3\u0054est`, 1),
	} {
		for _, status := range []int{200, 400, 402, 500} {
			f.Add([]byte(reply(status, body)))
		}
	}
	opts, err := options(DefaultURL).complete()
	if err != nil {
		f.Fatal(err)
	}
	g := newGateway(opts)
	g.account = testAccount
	f.Fuzz(func(t *testing.T, response []byte) {
		x := answered(response)
		o := g.observeRefund(p, x)
		if (o.Kind == payments.ObservedRefund) != (o.Refund != nil) || o.Object != nil || o.Refunds != nil {
			t.Fatalf("observed %+v", o)
		}
		if r := o.Refund; r != nil {
			if x.err != nil || x.status < 200 || x.status > 299 || !isRefund(x.body) || r.PaymentIntent != p.StripePaymentIntent || !validRefund(r.ID) {
				t.Fatalf("garbage is a refund: %q", response)
			}
			if id, named := r.Metadata[MetadataPayment]; named && id != refundName(p) {
				t.Fatalf("another's is ours: %q", response)
			}
			for _, s := range []string{string(r.Status), r.Currency, r.FailureReason} {
				noSecrets(t, s)
			}
		}
		if o.Kind != payments.ObservedRefund && o.Kind != payments.ObservedUnclear && (x.status < 400 || x.status > 499) {
			t.Fatalf("%d is %s", x.status, o.Kind)
		}
		if o.Failure != nil {
			noSecrets(t, *o.Failure)
		}
		noSecrets(t, o.Detail)
		if page, err := decodeRefunds(x.body); err == nil {
			for _, item := range page.items {
				if !validRefund(item.id) {
					t.Fatalf("a page has %+v", item)
				}
			}
		}
	})
}
