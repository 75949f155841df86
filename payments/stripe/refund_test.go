package stripe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

func background() context.Context { return context.Background() }

func decodedField(pair string) field {
	name, value, _ := strings.Cut(pair, "=")
	name, _ = url.QueryUnescape(name) // it was encoded by us
	value, _ = url.QueryUnescape(value)
	return field{name, value}
}

// refundJSON is Stripe's object of the follow-up.
func refundJSON(p payments.Payment, status string) string {
	return fmt.Sprintf(`{"id":"re_3Test","object":"refund","amount":%d,"balance_transaction":"txn_1","charge":"ch_3Test","created":1700000000,"currency":%q,`+
		`"destination_details":{"type":"card"},"metadata":{"oncepay_payment":%q,"oncepay_namespace":%q,"order":"7"},"payment_intent":%q,"reason":null,"status":%q}`,
		p.Amount, p.Currency, p.ID.Format(p.Kind), testNamespace, p.StripePaymentIntent, status)
}

func TestRefundTable(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	ok := refundJSON(p, "succeeded")
	swap := func(old, new string) string { return strings.Replace(ok, old, new, 1) }
	const inv = "invalid_request_error"
	about := func(code, pi string) string { return errorJSON(inv, code, `,"payment_intent":`+pi) }
	cases := map[string]struct {
		status int
		body   string
		kind   payments.ObservationKind
		is     payments.StripeRefundStatus // "" : none
	}{
		"succeeded":             {200, ok, payments.ObservedRefund, payments.RefundSucceeded},
		"pending":               {200, refundJSON(p, "pending"), payments.ObservedRefund, payments.RefundPending},
		"requires action":       {200, refundJSON(p, "requires_action"), payments.ObservedRefund, payments.RefundRequiresAction},
		"failed":                {200, refundJSON(p, "failed"), payments.ObservedRefund, payments.RefundFailed},
		"canceled":              {200, refundJSON(p, "canceled"), payments.ObservedRefund, payments.RefundCanceled},
		"a word of later times": {200, refundJSON(p, "reversed"), payments.ObservedRefund, "reversed"},
		"expanded":              {200, swap(`"pi_3Test"`, `{"id":"pi_3Test","object":"payment_intent"}`), payments.ObservedRefund, payments.RefundSucceeded},
		"of a bank's":           {200, swap("re_3Test", "pyr_3Test"), payments.ObservedRefund, payments.RefundSucceeded},
		"another amount":        {200, swap("2500", "2501"), payments.ObservedRefund, payments.RefundSucceeded}, // Decide compares
		"without metadata":      {200, swap(`"oncepay_payment":"`+refundName(p)+`",`, ""), payments.ObservedRefund, payments.RefundSucceeded},
		"another's":             {200, swap(refundName(p), "ref_0"), payments.ObservedUnclear, ""},
		"of another charge":     {200, swap("pi_3Test", "pi_3Other"), payments.ObservedUnclear, ""},
		"of no charge":          {200, swap(`"pi_3Test"`, "null"), payments.ObservedUnclear, ""},
		"without a status":      {200, swap(`"status":"succeeded"`, `"status":null`), payments.ObservedUnclear, ""},
		"without an amount":     {200, swap(`"amount":2500`, `"amount":null`), payments.ObservedUnclear, ""},
		"without a currency":    {200, swap(`"currency":"usd",`, ""), payments.ObservedUnclear, ""},
		"odd amount":            {200, swap("2500", "25.5"), payments.ObservedUnclear, ""},
		"odd id":                {200, swap("re_3Test", "re_3/Test"), payments.ObservedUnclear, ""},
		"odd metadata":          {200, swap(`"order":"7"`, `"order":7`), payments.ObservedUnclear, ""},
		"a PaymentIntent":       {200, chargeJSON("succeeded", 1), payments.ObservedUnclear, ""},
		"a list":                {200, listJSON(false, ok), payments.ObservedUnclear, ""},
		"empty":                 {200, "", payments.ObservedUnclear, ""},
		"garbage":               {200, "{\"object\":\"refund\"<<", payments.ObservedUnclear, ""},
		"202":                   {202, ok, payments.ObservedRefund, payments.RefundSucceeded},
		"refunded already":      {400, errorJSON(inv, "charge_already_refunded", ""), payments.ObservedInvalid, ""},
		"too much":              {400, errorJSON(inv, "", `,"param":"amount"`), payments.ObservedInvalid, ""},
		"not captured":          {400, about("payment_intent_unexpected_state", chargeJSON("requires_capture", 0)), payments.ObservedInvalid, ""},
		"about another":         {400, about("payment_intent_unexpected_state", withID(chargeJSON("requires_capture", 0), "pi_3Other")), payments.ObservedUnclear, ""},
		"unknown there":         {404, errorJSON(inv, "resource_missing", ""), payments.ObservedInvalid, ""},
		"declined":              {402, errorJSON("card_error", "card_declined", ""), payments.ObservedDecline, ""},
		"executed, no decline":  {402, errorJSON(inv, "", ""), payments.ObservedUnclear, ""},
		"other parameters":      {400, errorJSON("idempotency_error", "", ""), payments.ObservedKeyConflict, ""},
		"in use":                {409, errorJSON(inv, "idempotency_key_in_use", ""), payments.ObservedInUse, ""},
		"lock":                  {429, errorJSON(inv, "lock_timeout", ""), payments.ObservedLocked, ""},
		"rate":                  {429, errorJSON(inv, "rate_limit", ""), payments.ObservedRateLimited, ""},
		"key":                   {401, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"permission":            {403, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"400 of no form":        {400, "<html>", payments.ObservedUnclear, ""},
		"400 of Stripe's own":   {400, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
		"500":                   {500, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
		"a refund with 500":     {500, ok, payments.ObservedUnclear, ""},
		"502":                   {502, "<html>", payments.ObservedUnclear, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, raw(reply(c.status, c.body, "Request-Id: req_1", "Idempotent-Replayed: true")))
			o := gatewayTo(t, options(s.url)).Refund(t.Context(), submission(p))
			noSecrets(t, o)
			want(t, o, c.kind)
			if s.posts.Load() != 1 || o.HTTPStatus != c.status || o.RequestID != "req_1" || o.Detail == "" || !o.Replayed || o.Object != nil {
				t.Errorf("after %d requests: %+v", s.posts.Load(), o)
			}
			if (o.Refund != nil) != (c.is != "") || o.Refund != nil && o.Refund.Status != c.is {
				t.Errorf("the refund is %+v, want it %q", o.Refund, c.is)
			}
		})
	}
	for name, answer := range map[string]string{
		"cut off": reply(200, ok)[:400], "closed": "", "half a header": "HTTP/1.1 200 OK\r\nContent-",
		"another key": reply(200, ok, "Idempotency-Key: "+submission(testPayment()).StripeKey),
	} {
		s := newRawServer(t, raw(answer))
		o := gatewayTo(t, options(s.url)).Refund(t.Context(), submission(p))
		if o.Kind != payments.ObservedUnclear || o.Refund != nil || s.posts.Load() != 1 {
			t.Errorf("%s: observed %+v after %d POSTs", name, o, s.posts.Load())
		}
	}
}

func TestRefundIsReadWhole(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	r, err := decodeRefund([]byte(strings.Replace(refundJSON(p, "failed"), `"reason":null`, `"failure_reason":"lost_or_stolen_card"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != "re_3Test" || r.Status != payments.RefundFailed || r.Amount != 2500 || r.Currency != "usd" || r.PaymentIntent != "pi_3Test" ||
		r.Created.Unix() != 1_700_000_000 || r.Metadata["order"] != "7" || r.FailureReason != "lost_or_stolen_card" {
		t.Errorf("%+v", r)
	}
	if r, err := decodeRefund([]byte(strings.Replace(refundJSON(p, "failed"), `"reason":null`, `"failure_reason":"sk_test_0123456789abcdef"`, 1))); err != nil || r.FailureReason != "" {
		t.Errorf("what is no word is kept: %+v, %v", r, err)
	}
}

func TestRetrieveRefund(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	ok, missing := refundJSON(p, "pending"), errorJSON("invalid_request_error", "resource_missing", "")
	for name, c := range map[string]struct {
		answer string
		kind   payments.ObservationKind
		there  bool
	}{
		"there":             {reply(200, ok), payments.ObservedRefund, true},
		"gone":              {reply(404, missing), payments.ObservedRefund, false},
		"404 of another":    {reply(404, errorJSON("invalid_request_error", "", "")), payments.ObservedNoRecords, false},
		"404 in HTML":       {reply(404, "<html>"), payments.ObservedNoRecords, false},
		"400 missing":       {reply(400, missing), payments.ObservedNoRecords, false},
		"another":           {reply(200, strings.Replace(ok, "re_3Test", "re_4", 1)), payments.ObservedNoRecords, false},
		"no refund":         {reply(200, "{}"), payments.ObservedNoRecords, false},
		"403":               {reply(403, errorJSON("invalid_request_error", "", "")), payments.ObservedNoRecords, false},
		"500":               {reply(500, errorJSON("api_error", "", "")), payments.ObservedNoRecords, false},
		"closed":            {"", payments.ObservedNoRecords, false},
		"an error with 200": {reply(200, missing), payments.ObservedNoRecords, false},
	} {
		s := newRawServer(t, raw(c.answer))
		o := gatewayTo(t, options(s.url)).RetrieveRefund(t.Context(), p, "re_3Test")
		noSecrets(t, o)
		if o.Kind != c.kind || (o.Refund != nil) != c.there {
			t.Errorf("%s: observed %s (%s), %+v", name, o.Kind, o.Detail, o.Refund)
		}
		if r := <-s.arrived; r.Method != "GET" || r.URL.Path != "/v1/refunds/re_3Test" || r.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s: %s %v", name, r.URL, r.Header)
		}
	}
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	for _, id := range []string{"", "re_", "re_1/cancel", "re_1?a=b", "../x", "pi_1"} {
		want(t, g.RetrieveRefund(t.Context(), p, id), payments.ObservedNoRecords)
	}
	for _, change := range []func(*payments.Payment){
		func(p *payments.Payment) { p.StripeAccount = "" }, func(p *payments.Payment) { p.StripeAccount = "acct_2" }, func(p *payments.Payment) { p.Livemode = true },
	} {
		want(t, g.RetrieveRefund(t.Context(), followUp(payments.KindRefund, change), "re_3Test"), payments.ObservedNoRecords)
	}
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

// strangeRefund is a refund of nobody's, of which only id and metadata can be read.
func strangeRefund(id string) string {
	return fmt.Sprintf(`{"id":%q,"object":"refund","metadata":{},"amount":[]}`, id)
}

func TestLookRefundsReadsEveryPage(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	ours := refundJSON(p, "succeeded")
	with := func(id string) string { return strings.Replace(ours, "re_3Test", id, 1) }
	s := newRawServer(t, inOrder(
		reply(200, listJSON(true, strangeRefund("re_9"), strangeRefund("re_8"))),
		reply(200, listJSON(true, with("re_7"), strangeRefund("re_6"))),
		reply(200, listJSON(false, with("re_7"), with("re_5"), strings.Replace(with("re_4"), `"oncepay_namespace":"oncepay"`, `"oncepay_namespace":"other"`, 1),
			strings.Replace(with("re_3"), refundName(p), "ref_0", 1))),
	))
	asked := 0
	o := gatewayTo(t, options(s.url)).LookRefunds(t.Context(), p, func() error { asked++; return nil })
	noSecrets(t, o)
	want(t, o, payments.ObservedRecords)
	var ids []string
	for _, r := range o.Refunds {
		ids = append(ids, r.ID)
	}
	if !slices.Equal(ids, []string{"re_7", "re_5"}) || asked != 3 || len(o.Found) != 0 || s.posts.Load() != 0 {
		t.Errorf("found %v; progress was asked %d times, %+v", ids, asked, o)
	}
	for _, query := range []string{"limit=100&payment_intent=pi_3Test", "limit=100&payment_intent=pi_3Test&starting_after=re_8", "limit=100&payment_intent=pi_3Test&starting_after=re_6"} {
		if r := <-s.arrived; r.URL.Path != "/v1/refunds" || r.URL.RawQuery != query {
			t.Errorf("asked for %s, want %s", r.URL, query)
		}
	}
}

// Whatever keeps the list from being read to its end proves nothing.
func TestLookRefundsProvesNothingByHalves(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	ours := refundJSON(p, "succeeded")
	page := func(items ...string) string { return reply(200, listJSON(true, items...)) }
	for name, answers := range map[string][]string{
		"500 on the second":    {page(ours), reply(500, errorJSON("api_error", "", ""))},
		"cut off":              {page(ours), reply(200, listJSON(false))[:120]},
		"no list":              {reply(200, "{}")},
		"no has_more":          {reply(200, `{"object":"list","data":[]}`)},
		"in circles":           {page(ours), page(ours)},
		"more after nothing":   {page()},
		"no refund in it":      {reply(200, listJSON(false, intentJSON(testPayment(), "succeeded")))},
		"hidden metadata":      {reply(200, listJSON(false, `{"id":"re_1","object":"refund"}`))},
		"ours, unreadable":     {reply(200, listJSON(false, strings.Replace(ours, `"amount":2500`, `"amount":"x"`, 1)))},
		"403":                  {reply(403, errorJSON("invalid_request_error", "", ""))},
		"404 in HTML":          {reply(404, "<html>")},
		"404 of another kind":  {reply(404, errorJSON("invalid_request_error", "", ""))},
		"a page's refund gone": {page(ours), reply(400, errorJSON("invalid_request_error", "resource_missing", `,"param":"starting_after"`))},
		"429":                  {reply(429, errorJSON("invalid_request_error", "rate_limit", ""))},
		"nothing":              {""},
		"an error with a 200":  {reply(200, errorJSON("api_error", "", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, inOrder(answers...))
			o := gatewayTo(t, options(s.url)).LookRefunds(t.Context(), p, nil)
			noSecrets(t, o)
			want(t, o, payments.ObservedNoRecords)
			if len(o.Refunds) != 0 || o.Detail == "" {
				t.Errorf("%+v", o)
			}
		})
	}
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	want(t, g.LookRefunds(t.Context(), p, func() error { return errors.New("lost") }), payments.ObservedNoRecords)
	want(t, g.LookRefunds(t.Context(), followUp(payments.KindRefund, func(p *payments.Payment) { p.StripePaymentIntent = "" }), nil), payments.ObservedNoRecords)
	want(t, g.LookRefunds(t.Context(), followUp(payments.KindRefund, func(p *payments.Payment) { p.StripeAccount = "" }), nil), payments.ObservedNoRecords)
	want(t, g.LookRefunds(t.Context(), followUp(payments.KindRefund, func(p *payments.Payment) { p.StripeAccount = "acct_2" }), nil), payments.ObservedForeignAccount)
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

// That Stripe knows no such PaymentIntent is told apart from an empty list, which would say that nothing was given back.
func TestLookRefundsOfAPaymentIntentThatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		reply(404, errorJSON("invalid_request_error", "resource_missing", "")),
		reply(400, errorJSON("invalid_request_error", "resource_missing", `,"param":"payment_intent"`)),
	} {
		s := newRawServer(t, raw(answer))
		o := gatewayTo(t, options(s.url)).LookRefunds(t.Context(), followUp(payments.KindRefund), nil)
		noSecrets(t, o)
		want(t, o, payments.ObservedObject)
		if o.Object != nil || o.Refunds != nil || o.Account != testAccount || !strings.Contains(o.Detail, "no such PaymentIntent") || o.Health() != payments.HealthGood {
			t.Errorf("%+v", o)
		}
	}
}

// A key that may not have to do with refunds charges all the same: that is told once, and is no word on the account.
func TestKeyThatLacksTheRightOfRefunds(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindRefund)
	log := &lockedLog{}
	right := reply(403, errorJSON("invalid_request_error", "", ""))
	calls := map[string]func(*Gateway) payments.Observation{
		"list":   func(g *Gateway) payments.Observation { return g.LookRefunds(t.Context(), p, nil) },
		"read":   func(g *Gateway) payments.Observation { return g.RetrieveRefund(t.Context(), p, "re_3Test") },
		"refund": func(g *Gateway) payments.Observation { return g.Refund(t.Context(), submission(p)) },
	}
	for name, call := range calls {
		o := options(newRawServer(t, raw(right)).url)
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		g := gatewayTo(t, o)
		for range 2 {
			seen := call(g)
			noSecrets(t, seen)
			if !seen.LacksRight || seen.HTTPStatus != 403 || seen.Health() != payments.HealthNothing || !strings.Contains(seen.Detail, `give it "Charges and Refunds: Write"`) {
				t.Errorf("%s: health %q: %+v", name, seen.Health(), seen)
			}
		}
		for other, answer := range map[string]string{
			"401": reply(401, errorJSON("invalid_request_error", "", "")), "an account that is not reached": reply(403, errorJSON("invalid_request_error", "account_invalid", "")),
		} {
			if seen := call(gatewayTo(t, options(newRawServer(t, raw(answer)).url))); seen.LacksRight || seen.Health() != payments.HealthRefused {
				t.Errorf("%s, %s: health %q: %+v", name, other, seen.Health(), seen)
			}
		}
	}
	if n := strings.Count(log.String(), "refunds wait"); n != len(calls) || strings.Contains(log.String(), testSecret) {
		t.Errorf("%d gateways told it %d times: %s", len(calls), n, log)
	}
}
