package ingress

import "testing"

// What a person reads first is a sentence about a field, however the message of the field begins.
func TestDetailsRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		body, batch string
		want        string
	}{
		{body: `{"amount":0,"currency":"usd","payment_method":"pm_1"}`, want: "amount: must be a positive integer in the currency's minor units, as 9900 for 99.00 USD"},
		{body: `{"amount":"1"}`, want: "amount: it must be an integer literal in minor units, such as 9900, without quotes, fraction or exponent (at byte 13)"},
		{body: `{"amount":1`, want: "body: the message ends too early: send one whole JSON object (at byte 11)"},
		{batch: `{"payments":[]}`, want: "payments: it is empty: it must be an array of 1 to 100 intents (at byte 14)"},
		{batch: `{"payments":[{"tenant_id":"globex","amount":1,"currency":"usd","payment_method":"pm_1"}]}`, want: "payments[0].tenant_id: it is not the tenant of this API key: leave it out"},
	} {
		target, body := "/v1/payments", c.body
		if c.batch != "" {
			target, body = "/v1/batches", c.batch
		}
		if got := d.post(target, "k", body); got.status != 400 || got.member("detail") != c.want {
			t.Errorf("%s:\n got %v\nwant %s", body, got.member("detail"), c.want)
		}
	}
	for target, want := range map[string]string{
		"/v1/payments?limit=0":         "limit: must be a whole number from 1 to 1000",
		"/v1/payments?limit=1&limit=2": "limit: it is there more than once: send it once",
		"/v1/batches?when=1":           "when: this is no parameter here; there are parent, limit, cursor",
		"/v1/payments/pay_1?a-b=1":     "query: it has a parameter that is no parameter here; there are none",
	} {
		if got := d.get(target); got.status != 400 || got.member("detail") != want {
			t.Errorf("%s:\n got %v\nwant %s", target, got.member("detail"), want)
		}
	}
}
