package stripe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncepay/oncepay/payments"
)

// answered returns the exchange of a POST that was sent and answered with the raw bytes.
func answered(response []byte) *exchange {
	x := &exchange{method: http.MethodPost, path: createPath, maybeSent: true, gate: &passage{once: true}, begun: true}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), &http.Request{Method: http.MethodPost})
	if err != nil {
		x.err = err
		return x
	}
	x.status, x.header = resp.StatusCode, resp.Header
	x.body, x.err = readAnswer(resp.Body, resp.ContentLength)
	return x
}

// isIntent is a second opinion on what a PaymentIntent is.
func isIntent(body []byte) bool {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	m, _ := v.(map[string]any)
	id, _ := m["id"].(string)
	status, _ := m["status"].(string)
	_, amount := m["amount"].(float64)
	_, currency := m["currency"].(string)
	_, livemode := m["livemode"].(bool)
	return m["object"] == "payment_intent" && strings.HasPrefix(id, "pi_") && status != "" && amount && currency && livemode
}

// Whatever arrives, nothing panics, nothing but a PaymentIntent is an answer, and nothing but an error in Stripe's own form means more than
// "unclear".
func FuzzAnswers(f *testing.F) {
	p := testPayment()
	ok := intentJSON(p, "succeeded")
	for _, body := range []string{ok, "{}", "null", listJSON(false, ok), "<html>", errorJSON("card_error", "card_declined", `,"payment_intent":`+ok)} {
		for _, status := range []int{200, 302, 400, 402, 409, 429, 500} {
			f.Add([]byte(reply(status, body)))
		}
	}
	f.Add([]byte(reply(200, ok)[:300]))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 402 \r\nRetry-After: 99999999999999999999\r\nRequest-Id: sk_test_1\r\n\r\n{\"error\":{\"type\":\"card_error\"}}"))
	opts, err := options(DefaultURL).complete()
	if err != nil {
		f.Fatal(err)
	}
	g := newGateway(opts)
	g.account = testAccount
	f.Fuzz(func(t *testing.T, response []byte) {
		x := answered(response)
		o := g.observe(p, x)
		if !slices.Contains(payments.ObservationKinds(), o.Kind) {
			t.Fatalf("kind %q", o.Kind)
		}
		if o.Kind == payments.ObservedAnswer && (x.err != nil || x.status < 200 || x.status > 299 || !isIntent(x.body) || o.Object == nil) {
			t.Fatalf("garbage is an answer: %q", response)
		}
		if o.Kind != payments.ObservedAnswer && o.Kind != payments.ObservedUnclear && (x.status < 400 || x.status > 499) {
			t.Fatalf("%d is %s", x.status, o.Kind)
		}
		if o.RetryAfter < 0 || o.RetryAfter > retryAfterMax {
			t.Fatalf("retry after %s", o.RetryAfter)
		}
		if o.Failure != nil {
			noSecrets(t, *o.Failure)
		}
		noSecrets(t, o.Detail)
		noSecrets(t, o.RequestID)
		if page, err := decodePage(x.body); err == nil && !bytes.Contains(x.body, []byte("has_more")) && !bytes.Contains(x.body, []byte(`\u`)) {
			t.Fatalf("a page without has_more: %+v", page)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"", "Your card was declined.", "sk_test_abc", "pi_1_secret_x", "4242 4242 4242 4242", "4242.4242.4242.4242", "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢",
		"\xff\x00\n", strings.Repeat("ü", 600), "sk_test_\u200babc", "378282246310005",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s, messageMax)
		if len(got) > messageMax || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\n\r") {
			t.Fatalf("%q", got)
		}
		if payments.ContainsCardNumberString(got) || keyPattern.MatchString(got) || secretPattern.MatchString(got) {
			t.Fatalf("a secret is left in %q", got)
		}
	})
}
