package stripe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestErrorTable(t *testing.T) {
	t.Parallel()
	p := testPayment()
	const inv, card, api, idem = "invalid_request_error", "card_error", "api_error", "idempotency_error"
	declined := intentJSON(p, "requires_payment_method")
	about := func(s string) string { return `,"payment_intent":` + s }
	other := testPayment(func(p *payments.Payment) { p.IdempotencyKey = "order-2" })
	cases := []struct {
		name, typ, code, more string
		status                int
		kind                  payments.ObservationKind
	}{
		{"decline", card, "card_declined", about(declined) + `,"decline_code":"insufficient_funds"`, 402, payments.ObservedDecline},
		{"decline without object", card, "card_declined", "", 402, payments.ObservedDecline},
		{"authentication", card, "authentication_required", about(declined), 402, payments.ObservedDecline},
		{"decline about garbage", card, "card_declined", about(`{"id":"pi_1"}`), 402, payments.ObservedUnclear},
		{"decline about an id", card, "card_declined", about(`"pi_1"`), 402, payments.ObservedUnclear},
		{"decline about another", card, "card_declined", about(intentJSON(other, "requires_payment_method")), 402, payments.ObservedUnclear},
		{"decline that charged", card, "card_declined", about(intentJSON(p, "succeeded")), 402, payments.ObservedUnclear},
		{"decline that holds", card, "card_declined", about(intentJSON(p, "requires_capture")), 402, payments.ObservedUnclear},
		{"402 that is no decline", inv, "", "", 402, payments.ObservedUnclear},
		{"missing parameter", inv, "parameter_missing", "", 400, payments.ObservedInvalid},
		{"amount", inv, "amount_too_small", "", 400, payments.ObservedInvalid},
		{"no such object", inv, "resource_missing", "", 404, payments.ObservedInvalid},
		{"gone", inv, "", "", 410, payments.ObservedInvalid},
		{"refused while executing", inv, "payment_intent_unexpected_state", about(declined), 400, payments.ObservedInvalid},
		{"refused, yet charged", inv, "payment_intent_unexpected_state", about(intentJSON(p, "succeeded")), 400, payments.ObservedUnclear},
		{"refused, in a new status", inv, "payment_intent_unexpected_state", about(intentJSON(p, "new_status")), 400, payments.ObservedUnclear},
		{"refused about another", inv, "resource_missing", about(intentJSON(other, "requires_payment_method")), 404, payments.ObservedUnclear},
		{"in use by another", inv, "idempotency_key_in_use", about(intentJSON(other, "succeeded")), 409, payments.ObservedUnclear},
		{"other parameters", idem, "", "", 400, payments.ObservedKeyConflict},
		{"other parameters, other status", idem, "", "", 422, payments.ObservedKeyConflict},
		{"trouble as 400", api, "", "", 400, payments.ObservedUnclear},
		{"in use", inv, "idempotency_key_in_use", "", 409, payments.ObservedInUse},
		{"any 409", idem, "", "", 409, payments.ObservedInUse},
		{"lock", inv, "lock_timeout", "", 429, payments.ObservedLocked},
		{"rate", inv, "rate_limit", "", 429, payments.ObservedRateLimited},
		{"rate, another type", "rate_limit_error", "", "", 429, payments.ObservedRateLimited},
		{"key", inv, "", "", 401, payments.ObservedUnauthorized},
		{"expired key", inv, "api_key_expired", "", 401, payments.ObservedUnauthorized},
		{"permission", inv, "", "", 403, payments.ObservedUnauthorized},
		{"time-out", inv, "", "", 408, payments.ObservedUnclear},
		{"dependency", inv, "", "", 424, payments.ObservedUnclear},
		{"too early", inv, "", "", 425, payments.ObservedUnclear},
		{"500", api, "", "", 500, payments.ObservedUnclear},
		{"500 that looks like a refusal", inv, "parameter_missing", "", 500, payments.ObservedUnclear},
		{"500 that looks like a decline", card, "card_declined", about(declined), 500, payments.ObservedUnclear},
		{"502", api, "", "", 502, payments.ObservedUnclear},
		{"503", api, "", "", 503, payments.ObservedUnclear},
		{"504", api, "", "", 504, payments.ObservedUnclear},
		{"599", api, "", "", 599, payments.ObservedUnclear},
		{"300", inv, "", "", 300, payments.ObservedUnclear},
		{"200 with an error", card, "card_declined", "", 200, payments.ObservedUnclear},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, raw(reply(c.status, errorJSON(c.typ, c.code, c.more), "Request-Id: req_Abc1", "Retry-After: 7")))
			o := submit(t, gatewayTo(t, options(s.url)), p)
			want(t, o, c.kind)
			if s.posts.Load() != 1 || o.HTTPStatus != c.status || o.RequestID != "req_Abc1" || o.RetryAfter != 7*time.Second || o.Detail == "" {
				t.Fatalf("after %d requests: %+v", s.posts.Load(), o)
			}
			if unclear := c.kind == payments.ObservedUnclear; unclear != (o.Failure == nil) || unclear && o.Object != nil {
				t.Fatalf("failure %+v, object %+v", o.Failure, o.Object)
			}
			if o.Failure != nil && (o.Failure.Code != c.code || o.Failure.Message != "Stripe says so.") {
				t.Fatalf("failure %+v", o.Failure)
			}
		})
	}
}

// Stripe-Should-Retry and Stripe-Rate-Limited-Reason change what is done next, and never what became of the payment.
func TestAdviceIsNoMeaning(t *testing.T) {
	t.Parallel()
	p := testPayment()
	const inv = "invalid_request_error"
	for name, c := range map[string]struct {
		status int
		body   string
		kind   payments.ObservationKind
	}{
		"200":     {200, intentJSON(p, "succeeded"), payments.ObservedAnswer},
		"decline": {402, errorJSON("card_error", "card_declined", ""), payments.ObservedDecline},
		"invalid": {400, errorJSON(inv, "parameter_missing", ""), payments.ObservedInvalid},
		"key":     {400, errorJSON("idempotency_error", "", ""), payments.ObservedKeyConflict},
		"in use":  {409, errorJSON(inv, "idempotency_key_in_use", ""), payments.ObservedInUse},
		"lock":    {429, errorJSON(inv, "lock_timeout", ""), payments.ObservedLocked},
		"rate":    {429, errorJSON(inv, "rate_limit", ""), payments.ObservedRateLimited},
		"500":     {500, errorJSON("api_error", "", ""), payments.ObservedUnclear},
		"503":     {503, errorJSON("api_error", "", ""), payments.ObservedUnclear},
		"html":    {502, "<html>", payments.ObservedUnclear},
	} {
		for value, advice := range map[string]payments.RetryAdvice{"true": payments.RetrySoon, "false": payments.RetryLater, "perhaps": payments.RetryNotSaid} {
			s := newRawServer(t, raw(reply(c.status, c.body, "Stripe-Should-Retry: "+value)))
			o := submit(t, gatewayTo(t, options(s.url)), p)
			if o.Kind != c.kind || o.ShouldRetry != advice || s.posts.Load() != 1 {
				t.Errorf("%s, Stripe-Should-Retry %s: %s, %q after %d requests; want %s, %q", name, value, o.Kind, o.ShouldRetry, s.posts.Load(), c.kind, advice)
			}
		}
	}
	s := newRawServer(t, raw(reply(429, errorJSON(inv, "lock_timeout", ""), "Stripe-Rate-Limited-Reason: global-rate")))
	want(t, submit(t, gatewayTo(t, options(s.url)), p), payments.ObservedRateLimited)
}

// What is not in Stripe's own form proves nothing, whatever its status.
func TestForeignFormsAreUnclear(t *testing.T) {
	t.Parallel()
	p := testPayment()
	ok := intentJSON(p, "succeeded")
	without := func(member string) string { return strings.Replace(ok, `"`+member+`"`, `"x_`+member+`"`, 1) }
	bodies := []string{
		"", "null", "{}", "[]", `"pi_3Test"`, "true", "<html></html>", `{"error":null}`, `{"error":"card_declined"}`, `{"error":{}}`, `{"error":[]}`,
		`{"error":{"type":null,"message":"m"}}`, `{"error":{"type":7}}`, `{"error":{"type":"Not a word"}}`, `{"Error":{"Type":"card_error"}}`,
		`{"error":{"type":"invalid_request_error","code":7}}`, `{"error":{"type":"invalid_request_error"}} trailing`, `[` + ok + `]`,
		ok + "x", ok[:len(ok)-1], strings.Replace(ok, "payment_intent", "charge", 1), without("id"), without("object"), without("status"),
		without("amount"), without("currency"), without("livemode"), strings.Replace(ok, `"livemode":false`, `"livemode":null`, 1),
		strings.Replace(ok, `9900`, `9.9e3`, 1), strings.Replace(ok, `9900`, `"9900"`, 1), strings.Replace(ok, `9900`, `99000000000000000000`, 1),
		strings.Replace(ok, "pi_3Test", "pi_../../x", 1), strings.Replace(ok, "pi_3Test", "ch_3Test", 1), strings.Replace(ok, `"succeeded"`, `""`, 1),
		strings.Replace(ok, `"object"`, `"Object"`, 1), strings.Replace(ok, p.ID.String(), "pay_00000000000000000000000000000000", 1),
		strings.Replace(ok, `"cus_1"`, `{"object":"customer"}`, 1), strings.Replace(ok, `"cus_1"`, `7`, 1), strings.Replace(ok, `1700000000`, `"x"`, 1),
		strings.Replace(ok, `"last_payment_error":null`, `"last_payment_error":{"code":7}`, 1), strings.Replace(ok, `"usd"`, `"4242424242424242"`, 1),
	}
	for _, status := range []int{200, 201, 400, 401, 402, 403, 404, 409, 429, 500, 503} {
		for i, body := range bodies {
			s := newRawServer(t, raw(reply(status, body)))
			o := submit(t, gatewayTo(t, options(s.url)), p)
			if o.Kind != payments.ObservedUnclear || o.Object != nil || s.posts.Load() != 1 {
				t.Errorf("status %d, body %d %q: %s", status, i, body, o.Kind)
			}
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	p := testPayment()
	statuses := []string{
		"succeeded", "processing", "requires_capture", "requires_action", "requires_confirmation", "requires_payment_method", "canceled", "a_new_status",
	}
	for _, status := range statuses {
		s := newRawServer(t, raw(reply(200, intentJSON(p, status), "Idempotent-Replayed: true", "Request-Id: req_1")))
		o := submit(t, gatewayTo(t, options(s.url)), p)
		want(t, o, payments.ObservedAnswer)
		pi := o.Object
		if !o.Replayed || pi.ID != "pi_3Test" || string(pi.Status) != status || pi.Amount != 9900 || pi.AmountReceived != 9900 || pi.Currency != "usd" ||
			pi.Customer != "cus_1" || pi.LatestCharge != "ch_3Test" || pi.Livemode || !pi.Created.Equal(time.Unix(1700000000, 0)) ||
			pi.Metadata[MetadataPayment] != p.ID.String() || pi.LastError != nil {
			t.Fatalf("%+v of %+v", pi, o)
		}
	}
	expanded := strings.NewReplacer(`"cus_1"`, `{"id":"cus_1","object":"customer"}`, `"ch_3Test"`, `{"id":"ch_3Test"}`,
		`"last_payment_error":null`, `"last_payment_error":{"code":"card_declined","decline_code":"generic_decline","message":"No: 4242 4242 4242 4242"}`)
	s := newRawServer(t, raw(reply(200, expanded.Replace(intentJSON(p, "requires_payment_method")))))
	o := submit(t, gatewayTo(t, options(s.url)), p)
	want(t, o, payments.ObservedAnswer)
	if o.Replayed || o.Object.Customer != "cus_1" || o.Object.LatestCharge != "ch_3Test" ||
		*o.Object.LastError != (payments.Failure{Code: "card_declined", DeclineCode: "generic_decline", Message: "No: [number]"}) {
		t.Fatalf("%+v, %+v", o.Object, o.Object.LastError)
	}
}

func TestAnswerToAnotherKey(t *testing.T) {
	t.Parallel()
	p := testPayment()
	own := submission(p).StripeKey
	for key, kind := range map[string]payments.ObservationKind{own: payments.ObservedAnswer, strings.Repeat("0", 64): payments.ObservedUnclear} {
		s := newRawServer(t, raw(reply(200, intentJSON(p, "succeeded"), "Idempotency-Key: "+key)))
		want(t, submit(t, gatewayTo(t, options(s.url)), p), kind)
	}
}

func TestForeignAccountSendsNothing(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	for _, change := range []func(*payments.Payment){
		func(p *payments.Payment) { p.StripeAccount = "acct_2" },
		func(p *payments.Payment) { p.Livemode = true },
	} {
		p := testPayment(change, func(p *payments.Payment) { p.StripePaymentIntent = "pi_1" })
		want(t, submit(t, g, p), payments.ObservedForeignAccount)
		want(t, g.Look(t.Context(), p, nil), payments.ObservedForeignAccount)
		want(t, g.Retrieve(t.Context(), p), payments.ObservedNoRecords)
	}
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

func TestBugsAreHeldBack(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	cases := map[string]func(*payments.Submission){
		"version 0":    func(s *payments.Submission) { s.Payment.RequestVersion = 0 },
		"version 2":    func(s *payments.Submission) { s.Payment.RequestVersion = 2 },
		"kind":         func(s *payments.Submission) { s.Payment.Kind = payments.KindRefund },
		"id":           func(s *payments.Submission) { s.Payment.ID = payments.ID{} },
		"blank key":    func(s *payments.Submission) { s.StripeKey = "" },
		"client's key": func(s *payments.Submission) { s.StripeKey = s.Payment.IdempotencyKey },
		"namespace": func(s *payments.Submission) {
			s.StripeKey = payments.StripeKey("other", s.Payment.Kind, "acme", "order-1")
		},
		"padded key":     func(s *payments.Submission) { s.StripeKey = " " + s.StripeKey },
		"our metadata":   func(s *payments.Submission) { s.Payment.Metadata = map[string]string{"oncepay_payment": "pay_x"} },
		"bracket":        func(s *payments.Submission) { s.Payment.Metadata = map[string]string{"a][b": "x"} },
		"no last check":  func(s *payments.Submission) { s.MayLeave = nil },
		"key of a space": func(s *payments.Submission) { s.StripeKey = strings.Repeat(" ", 64) },
	}
	for name, spoil := range cases {
		sub := submission(testPayment())
		spoil(&sub)
		o := g.Submit(t.Context(), sub)
		if o.Kind != payments.ObservedHeldBack || !strings.HasPrefix(o.Detail, "bug: ") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

func TestBodyOfOtherRequests(t *testing.T) {
	t.Parallel()
	for _, kind := range []payments.Kind{payments.KindCapture, payments.KindCancel, payments.KindRefund, payments.KindBatch, ""} {
		i := testPayment().Intent
		i.Kind = kind
		if body, err := Body(1, testNamespace, i); err == nil || body != "" {
			t.Errorf("kind %q makes %q", kind, body)
		}
	}
	for _, version := range []int{-1, 0, 2, 1000} {
		if body, err := Body(version, testNamespace, testPayment().Intent); err == nil || body != "" {
			t.Errorf("version %d makes %q", version, body)
		}
	}
}

func TestCleanDoesNotSearchWhatIsTooLong(t *testing.T) {
	t.Parallel()
	if got := clean(strings.Repeat("4242 ", cleanMax), messageMax); got != "[too long]" {
		t.Errorf("kept %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, " 3 ": 3 * time.Second, "-5": 0, "3600": time.Hour, "3601": time.Hour, "9223372036854775807": time.Hour,
		"99999999999999999999": 0, "1.5": 0, "soon": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(48 * time.Hour).Format(http.TimeFormat):   time.Hour,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("Retry-After %q is %s, want %s", value, got, want)
		}
	}
}

func TestSecretsInAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	p := testPayment()
	message := fmt.Sprintf(`Invalid API Key provided: %s rk_live_Abc pi_1_secret_Xyz 4242-4242-4242-4242 %s`, testSecret, strings.Repeat("ü", 900))
	for status, typ := range map[int]string{400: "invalid_request_error", 401: "invalid_request_error", 402: "card_error", 409: "x", 429: "x", 500: "api_error"} {
		body := fmt.Sprintf(`{"error":{"type":%q,"code":"sk_test_abc","decline_code":"4242424242424242","message":%q}}`, typ, message)
		s := newRawServer(t, raw(reply(status, body, "Request-Id: req_4242424242424242")))
		o := submit(t, gatewayTo(t, options(s.url)), p)
		if o.RequestID != "" || o.Failure != nil && (o.Failure.Code != "" || o.Failure.DeclineCode != "" || len(o.Failure.Message) > messageMax) {
			t.Errorf("kept %+v %+v", o, o.Failure)
		}
	}
}
