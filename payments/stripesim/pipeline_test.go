package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Keys: []Key{
		{Secret: "sk_test_own"},
		{Secret: "sk_test_other", Account: "acct_other"},
		{Secret: "rk_test_old", Expired: true},
		{Secret: "rk_test_narrow", Deny: []string{"GET /v1/account", "POST /v1/payment_intents/{id}/cancel"}},
	}})
	account := func(secret, connected string) result {
		return r.do(call{method: "GET", path: "/v1/account", secret: secret, account: connected})
	}
	account("sk_test_own", "").want(t, 200, map[string]any{"id": DefaultAccount})
	account("sk_test_other", "").want(t, 200, map[string]any{"id": "acct_other"})
	account("sk_test_own", "acct_third").want(t, 200, map[string]any{"id": "acct_third"})
	account("none", "").want(t, 401, map[string]any{"error.type": "invalid_request_error", "error.code": nil})
	account("sk_test_nobody", "").want(t, 401, map[string]any{"error.message": "Invalid API Key provided: sk_test_***"})
	account("sk_live_x", "").want(t, 401, map[string]any{"error.message": "Invalid API Key provided: sk_live_***"})
	account("pk_test_x", "").want(t, 401, map[string]any{"error.code": "secret_key_required"})
	account("rk_test_old", "").want(t, 401, map[string]any{"error.code": "api_key_expired", "error.message": "Expired API Key provided: rk_test_***"})
	account("rk_test_narrow", "").want(t, 403, map[string]any{"error.type": "invalid_request_error"})
	account("sk_test_own", "no such").want(t, 403, map[string]any{"error.code": "account_invalid"})
	r.do(call{method: "GET", path: intentsPath, secret: "rk_test_narrow"}).want(t, 200, nil)
	r.do(call{path: intentsPath + "/pi_x/cancel", secret: "rk_test_narrow"}).want(t, 403, nil)
	// A refused request is in the ledger, and frees its key.
	r.do(call{path: intentsPath, key: "k", secret: "sk_test_nobody", form: pay()}).want(t, 401, nil)
	if e := r.last(); e.Status != 401 || e.IdempotencyKey != "k" || e.Executed {
		t.Errorf("ledger has %+v", e)
	}
	if res := r.do(call{path: intentsPath, key: "k", secret: "sk_test_own", form: pay()}); res.status != 200 || res.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("after a 401: %+v", res)
	}
}

func TestAnyTestKeyByDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for secret, want := range map[string]int{"sk_test_a": 200, "rk_test_b": 200, "sk_test_": 401, "sk_live_a": 401, "whatever": 401, "none": 401} {
		if res := r.do(call{method: "GET", path: "/v1/balance", secret: secret}); res.status != want {
			t.Errorf("%s: status %d, want %d", secret, res.status, want)
		}
	}
}

func TestUnrecognisedURLs(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, c := range []call{
		{method: "POST", path: "/v1/disputes"}, {method: "DELETE", path: refundsPath}, {method: "GET", path: chargesPath}, {method: "POST", path: refundsPath + "/re_1/cancel"}, {method: "GET", path: "/v1/events/evt_1"}, {method: "GET", path: methodsPath}, {method: "POST", path: methodsPath + "/pm_1"}, {method: "GET", path: intentsPath + "/search"},
		{method: "POST", path: intentsPath + "/pi_1/apply_customer_balance"}, {method: "DELETE", path: intentsPath}, {method: "GET", path: "/"},
		{method: "GET", path: intentsPath + "/"}, {method: "GET", path: intentsPath + "/pi_1/confirm"}, {method: "GET", path: "/v1/accounts"},
	} {
		m := r.do(c).want(t, 404, map[string]any{"error.type": "invalid_request_error", "error.code": nil})
		if msg := at(m, "error.message").(string); !strings.HasPrefix(msg, "Unrecognized request URL ("+c.method+": "+c.path+")") {
			t.Errorf("%s %s: %s", c.method, c.path, msg)
		}
	}
	r.do(call{path: "/v1/disputes", secret: "none"}).want(t, 401, nil)
	if res := r.control("GET", "/_sim/nothing", ""); res.status != 404 {
		t.Errorf("unknown control: %d", res.status)
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	long := strings.Repeat("x", 501)
	for _, tc := range []struct{ name, field, value, code, param string }{
		{"unknown", "surprise", "1", "parameter_unknown", "surprise"},
		{"unknown sub", "automatic_payment_methods[surprise]", "1", "parameter_unknown", "automatic_payment_methods[surprise]"},
		{"expand", "expand[]", "latest_charge", "parameter_unknown", "expand[]"},
		{"open bracket", "amount[", "1", "parameter_unknown", "amount["},
		{"nested scalar", "amount[x]", "1", "parameter_invalid_string", "amount"},
		{"no amount", "amount", "-", "parameter_missing", "amount"},
		{"empty amount", "amount", "", "parameter_invalid_empty", "amount"},
		{"no integer", "amount", "10.0", "parameter_invalid_integer", "amount"},
		{"plus", "amount", "+100", "parameter_invalid_integer", "amount"},
		{"huge", "amount", "99999999999999999999", "parameter_invalid_integer", "amount"},
		{"zero", "amount", "0", "parameter_invalid_integer", "amount"},
		{"negative", "amount", "-5", "parameter_invalid_integer", "amount"},
		{"small", "amount", "49", "amount_too_small", "amount"},
		{"large", "amount", "100000000", "amount_too_large", "amount"},
		{"no currency", "currency", "-", "parameter_missing", "currency"},
		{"bad currency", "currency", "xxx", "", "currency"},
		{"bad bool", "confirm", "yes", "", "confirm"},
		{"bad off_session", "off_session", "maybe", "", "off_session"},
		{"bad capture", "capture_method", "never", "", "capture_method"},
		{"bad url", "return_url", "nowhere", "url_invalid", "return_url"},
		{"bad email", "receipt_email", "nobody", "email_invalid", "receipt_email"},
		{"long suffix", "statement_descriptor_suffix", strings.Repeat("a", 23), "", "statement_descriptor_suffix"},
		{"suffix without letter", "statement_descriptor_suffix", "123", "", "statement_descriptor_suffix"},
		{"suffix characters", "statement_descriptor_suffix", "a*b", "", "statement_descriptor_suffix"},
		{"no customer", "customer", "someone", "resource_missing", "customer"},
		{"metadata value", "metadata[k]", long, "", "metadata[k]"},
		{"metadata key", "metadata[" + strings.Repeat("k", 41) + "]", "v", "", "metadata"},
		{"metadata nested", "metadata[a][b]", "v", "", "metadata"},
		{"metadata scalar", "metadata", "v", "", "metadata"},
		{"auto without enabled", "automatic_payment_methods[allow_redirects]", "never", "parameter_missing", "automatic_payment_methods[enabled]"},
		{"bad enabled", "automatic_payment_methods[enabled]", "1", "", "automatic_payment_methods[enabled]"},
		{"auto scalar", "automatic_payment_methods", "true", "", "automatic_payment_methods"},
		{"bad type", "payment_method_types[]", "sofort", "", "payment_method_types"},
		{"types scalar", "payment_method_types", "card", "", "payment_method_types"},
		{"no method", "payment_method", "-", "parameter_missing", "payment_method"},
	} {
		f := pay()
		if f.Set(tc.field, tc.value); tc.value == "-" {
			f.Del(tc.field)
		}
		res := r.do(call{path: intentsPath, key: "same", form: f})
		members := map[string]any{"error.type": "invalid_request_error", "error.param": tc.param}
		if tc.code != "" {
			members["error.code"] = tc.code
		}
		t.Run(tc.name, func(t *testing.T) { res.want(t, 400, members) })
	}
	many := pay()
	for i := range 51 {
		many.Set(fmt.Sprintf("metadata[k%d]", i), "v")
	}
	r.do(call{path: intentsPath, key: "same", form: many}).want(t, 400, map[string]any{"error.param": "metadata"})
	both := pay("automatic_payment_methods[enabled]", "true", "payment_method_types[]", "card")
	r.do(call{path: intentsPath, key: "same", form: both}).want(t, 400, map[string]any{"error.param": "automatic_payment_methods"})
	for _, body := range []string{"amount=%zz", "amount=%ff", strings.Repeat("a=b&", maxPairs)} {
		r.do(call{path: intentsPath, key: "same", body: body}).want(t, 400, map[string]any{"error.type": "invalid_request_error"})
	}
	r.do(call{path: intentsPath, key: "same", body: "{}", contentType: "application/json"}).want(t, 400, nil)
	r.do(call{path: intentsPath, key: "same", body: "description=" + strings.Repeat("x", maxBody)}).want(t, 413, nil)
	unconfirmed := pay("confirm", "", "off_session", "true")
	r.do(call{path: intentsPath, key: "same", form: unconfirmed}).want(t, 400, map[string]any{"error.param": "off_session"})
	// None of these was stored under the key, and none made anything.
	if res := r.pay("same"); res.status != 200 || res.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("after refusals: %+v", res)
	}
	if sum := r.sim.Summary(); sum.PaymentIntents != 1 || sum.Executed != 1 {
		t.Errorf("summary %+v", sum)
	}
}

func TestCurrencyRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		amount   int64
		currency string
		ok       bool
	}{
		{50, "usd", true}, {49, "usd", false}, {50, "jpy", true}, {49, "jpy", false}, {99_999_999, "usd", true}, {100_000_000, "usd", false},
		{999_999_999_999, "idr", true}, {1_000_000_000_000, "idr", false}, {5120, "kwd", true}, {5124, "kwd", false},
		{500, "isk", true}, {501, "isk", false}, {550, "ugx", false}, {600, "ugx", true}, {17500, "huf", true}, {17499, "huf", false}, {100, "zzz", false}, {100, "USD", false},
	} {
		if e := checkMoney(tc.amount, tc.currency); (e == nil) != tc.ok {
			t.Errorf("%d %s: %+v", tc.amount, tc.currency, e)
		}
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	first := r.pay("k")
	first.want(t, 200, map[string]any{"status": "succeeded"})
	if id := first.header.Get("Request-Id"); id == "" || first.header.Get("Original-Request") != id || first.header.Get("Idempotency-Key") != "k" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("first: %v", first.header)
	}
	again := r.pay("k")
	if again.body != first.body || again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" ||
		again.header.Get("Original-Request") != first.header.Get("Request-Id") || again.header.Get("Request-Id") == first.header.Get("Request-Id") {
		t.Errorf("replay: %+v", again)
	}
	reordered := r.do(call{path: intentsPath, key: "k", body: "payment_method=pm_card_visa&" + strings.ReplaceAll(pay("payment_method", "").Encode(), "+", "%20")})
	if reordered.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("another order of parameters: %+v", reordered)
	}
	other := r.pay("k", "amount", "999")
	m := other.want(t, 400, map[string]any{"error.type": "idempotency_error", "error.code": nil})
	if !strings.Contains(at(m, "error.message").(string), "same parameters they were first used with") {
		t.Errorf("mismatch: %s", other.body)
	}
	id := at(first.object(t), "id").(string)
	r.do(call{path: intentsPath + "/" + id + "/cancel", key: "k"}).want(t, 400, map[string]any{"error.type": "idempotency_error"})
	// Another account has keys of its own.
	elsewhere := r.do(call{path: intentsPath, key: "k", account: "acct_b", form: pay()})
	if elsewhere.header.Get("Idempotent-Replayed") != "" || at(elsewhere.object(t), "id") == id {
		t.Errorf("another account: %+v", elsewhere)
	}
	r.do(call{method: "GET", path: intentsPath + "/" + id, account: "acct_b"}).want(t, 404, map[string]any{"error.code": "resource_missing"})
	// Without a key every POST is executed.
	r.pay("").want(t, 200, nil)
	r.pay("").want(t, 200, nil)
	if sum := r.sim.Summary(); sum.Charges != 4 || sum.Repeats != 4 || sum.Replayed != 2 || sum.Posts != 8 || sum.DoubleCharges != 1 {
		t.Errorf("summary %+v", sum)
	}
	r.do(call{path: intentsPath, key: strings.Repeat("k", 256), form: pay()}).want(t, 400, nil)
	r.do(call{path: intentsPath, key: strings.Repeat("k", 255), form: pay()}).want(t, 200, nil)
}

func TestBlankKeyIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	req := newRequest(t, r, pay())
	req.Header["Idempotency-Key"] = []string{""}
	res, err := r.client.Do(req)
	mustNil(t, err)
	defer res.Body.Close()
	if res.StatusCode != 400 || r.sim.Summary().Charges != 0 {
		t.Errorf("status %d, summary %+v", res.StatusCode, r.sim.Summary())
	}
}

// The ledger file could not tell such keys apart.
func TestKeyThatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.pay("k\xff").want(t, 400, map[string]any{"error.param": "Idempotency-Key"})
	r.pay("schlüssel").want(t, 200, nil)
}

func TestConcurrentRepeatsExecuteOnce(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	r := newRig(t, Options{OnCommit: func(Commit) { <-hold }})
	results := make(chan result, 20)
	var wg sync.WaitGroup
	for range cap(results) {
		wg.Go(func() { results <- r.pay("k") })
	}
	mustNil(t, r.sim.WaitRequests(deadline(t), cap(results)))
	close(hold)
	wg.Wait()
	close(results)
	counts := map[int]int{}
	for res := range results {
		if res.err != nil {
			t.Fatal(res.err)
		}
		counts[res.status]++
		if res.status == 409 {
			res.want(t, 409, map[string]any{"error.code": "idempotency_key_in_use", "error.type": "invalid_request_error"})
		}
	}
	if counts[200] == 0 || counts[200]+counts[409] != cap(results) {
		t.Errorf("statuses %v", counts)
	}
	if sum := r.sim.Summary(); sum.Executed != 1 || sum.Charges != 1 || sum.Repeats != 19 {
		t.Errorf("summary %+v", sum)
	}
}

func TestInFlightKeyIs409AndMismatchIs400(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	keys := &r.sim.book.lookupAccount(DefaultAccount).keys
	pairs, err := parseForm(pay().Encode())
	mustNil(t, err)
	entry, claimed, refusal := keys.begin("k", fingerprint("POST", intentsPath, pairs), 99, r.clock.now())
	if !claimed || refusal != nil {
		t.Fatal("a fresh key was not claimed")
	}
	m := r.pay("k").want(t, 409, map[string]any{"error.code": "idempotency_key_in_use", "error.type": "invalid_request_error"})
	if !strings.Contains(at(m, "error.message").(string), "another in-progress request using this Idempotent Key") {
		t.Errorf("message %v", m)
	}
	r.pay("k", "amount", "100").want(t, 400, map[string]any{"error.type": "idempotency_error"})
	keys.forget("k", entry)
	if res := r.pay("k"); res.status != 200 || res.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a freed key: %+v", res)
	}
	keys.forget("k", entry) // a late call frees nothing of the new owner's
	if res := r.pay("k"); res.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the new owner's answer is gone: %+v", res)
	}
}

func TestOnCommitSeesTheCommitBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	inside, hold := make(chan Commit, 1), make(chan struct{})
	r := newRig(t, Options{OnCommit: func(c Commit) { inside <- c; <-hold }})
	first := make(chan result, 1)
	go func() { first <- r.pay("k") }()
	c := <-inside
	if ids := r.listed(); len(ids) != 1 || ids[0] != c.PaymentIntent {
		t.Errorf("listed %v, commit %+v", ids, c)
	}
	close(hold)
	(<-first).want(t, 200, map[string]any{"id": c.PaymentIntent})
	if !c.Charged || c.Status != 200 || c.IdempotencyKey != "k" || c.Path != intentsPath || c.Seq != 1 {
		t.Errorf("commit %+v", c)
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.pay("k")
	mustNil(t, r.sim.AdvanceClock(24*time.Hour-time.Second))
	if res := r.pay("k"); res.header.Get("Idempotent-Replayed") != "true" {
		t.Error("forgotten before 24 h")
	}
	r.control("POST", "/_sim/clock", `{"advance_s":1}`).want(t, 200, nil)
	res := r.pay("k", "amount", "777")
	res.want(t, 200, map[string]any{"amount": 777.0})
	if res.header.Get("Idempotent-Replayed") != "" || r.sim.Summary().DoubleCharges != 1 {
		t.Errorf("an expired key was not executed anew: %+v", r.sim.Summary())
	}
	if sum := r.sim.Summary(); sum.Repeats != 2 || len(sum.DoubleCharged) != 1 || sum.DoubleCharged[0] != "pay_1" {
		t.Errorf("summary %+v", sum)
	}
}

func TestKeyStoreSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.control("POST", "/_sim/idempotency", `{"enabled":false}`).want(t, 200, nil)
	r.pay("k")
	r.pay("k")
	if sum := r.sim.Summary(); sum.Charges != 2 || sum.DoubleCharges != 1 || sum.Repeats != 1 {
		t.Errorf("off: %+v", sum)
	}
	r.sim.SetIdempotency(true)
	r.pay("k")
	if res := r.pay("k"); res.header.Get("Idempotent-Replayed") != "true" {
		t.Error("on again, and no replay")
	}
	for _, body := range []string{`{}`, `{"enabled":null}`, `{"enabled":"no"}`} {
		r.control("POST", "/_sim/idempotency", body).want(t, 400, nil)
	}
}

func TestDeclineIsStoredAndReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	first := r.pay("k", "payment_method", "pm_card_visa_chargeDeclined")
	again := r.pay("k", "payment_method", "pm_card_visa_chargeDeclined")
	if first.status != 402 || again.status != 402 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %+v, again %+v", first, again)
	}
	unknown := r.pay("u", "payment_method", "pm_nobody")
	unknown.want(t, 400, map[string]any{"error.code": "resource_missing", "error.param": "payment_method", "error.message": "No such PaymentMethod: 'pm_nobody'"})
	if res := r.pay("u", "payment_method", "pm_nobody"); res.header.Get("Idempotent-Replayed") != "true" || res.body != unknown.body {
		t.Errorf("a 400 raised while executing was not stored: %+v", res)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.control("POST", "/_sim/limits", `{"rps":10,"burst":3}`).want(t, 200, nil)
	statuses := func(n int) (s string) {
		for range n {
			s += fmt.Sprint(r.get("/v1/balance").status, " ")
		}
		return s
	}
	if got := statuses(4); got != "200 200 200 429 " {
		t.Errorf("burst of 3: %s", got)
	}
	res := r.pay("k")
	res.want(t, 429, map[string]any{"error.code": "rate_limit"})
	if res.header.Get("Stripe-Rate-Limited-Reason") != "global-rate" {
		t.Errorf("headers %v", res.header)
	}
	r.do(call{method: "GET", path: "/v1/balance", account: "acct_b"}).want(t, 200, nil) // a bucket of its own
	r.clock.add(200 * time.Millisecond)
	if got := statuses(3); got != "200 200 429 " {
		t.Errorf("after 200 ms at 10/s: %s", got)
	}
	mustNil(t, r.sim.SetLimits(Limits{}))
	if res := r.pay("k"); res.status != 200 || res.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a 429 was stored: %+v", res)
	}
	for _, body := range []string{`{"rps":-1}`, `{"burst":-1}`, `{"latency_ms":-1}`, `{"latency_ms":900000}`, `{"max_in_flight":-1}`, `{"speed":1}`} {
		r.control("POST", "/_sim/limits", body).want(t, 400, nil)
	}
}

func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	mustNil(t, r.sim.SetLimits(Limits{MaxInFlight: 1}))
	mustNil(t, r.sim.AddFault(Rule{Fault: FaultCommitThenHang, Times: 1}))
	first := make(chan result, 1)
	go func() { first <- r.pay("k") }()
	mustNil(t, r.sim.WaitHung(deadline(t), 1))
	res := r.pay("k2")
	res.want(t, 429, nil)
	if res.header.Get("Stripe-Rate-Limited-Reason") != "global-concurrency" {
		t.Errorf("headers %v", res.header)
	}
	r.sim.ClearFaults()
	(<-first).want(t, 200, nil)
}

func TestObjectLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id := at(r.pay("a", "payment_method", "pm_card_visa_chargeDeclined").object(t), "error.payment_intent.id").(string)
	a := r.sim.book.lookupAccount(DefaultAccount)
	held, free := r.sim.book.lock(a, id)
	if !free {
		t.Fatal("the object is locked by nobody")
	}
	confirm := call{path: intentsPath + "/" + id + "/confirm", key: "c", form: form("payment_method", "pm_card_visa", "off_session", "true")}
	res := r.do(confirm)
	res.want(t, 429, map[string]any{"error.code": "lock_timeout"})
	if _, ok := res.header["Stripe-Rate-Limited-Reason"]; ok {
		t.Error("a lock timeout has a limiter's reason")
	}
	r.sim.book.unlock(held)
	res = r.do(confirm)
	res.want(t, 200, map[string]any{"status": "succeeded", "id": id})
	if res.header.Get("Idempotent-Replayed") != "" {
		t.Error("a lock timeout was stored")
	}
}

func TestClientThatLeavesIsExecutedAllTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Latency: time.Second})
	ctx, cancel := newContext()
	done := make(chan result, 1)
	go func() { done <- r.do(call{path: intentsPath, key: "k", form: pay(), ctx: ctx}) }()
	mustNil(t, r.sim.WaitRequests(deadline(t), 1))
	cancel()
	if res := <-done; res.err == nil {
		t.Fatalf("got %+v", res)
	}
	mustNil(t, r.sim.WaitExecuted(deadline(t), 1))
	if sum := r.sim.Summary(); sum.Charges != 1 {
		t.Errorf("summary %+v", sum)
	}
}

func TestLedgerShape(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	body := pay("customer", "cus_1").Encode()
	r.do(call{path: intentsPath, key: "k", body: body}).want(t, 200, nil)
	r.pay("d", "payment_method", "pm_card_visa_chargeDeclined")
	r.pay("", "metadata[oncepay_payment]", "", "metadata[oncepay_namespace]", "")
	m := r.control("GET", "/_sim/ledger", "").want(t, 200, nil)
	requests, charges, refunds := m["requests"].([]any), m["charges"].([]any), m["refunds"].([]any)
	if len(requests) != 3 || len(charges) != 2 || len(refunds) != 0 {
		t.Fatalf("ledger %v", m)
	}
	sum := sha256.Sum256([]byte(body))
	for path, want := range map[string]any{"method": "POST", "path": intentsPath, "idempotency_key": "k", "body_sha256": hex.EncodeToString(sum[:]), "fault": "", "status": 200.0, "at": "2023-11-14T22:13:20Z"} {
		if got := at(requests[0], path); got != want {
			t.Errorf("requests[0].%s = %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]any{"amount": 2000.0, "currency": "usd", "customer": "cus_1", "captured": true, "metadata.oncepay_payment": "pay_1", "idempotency_key": "k", "payment_intent": at(requests[0], "payment_intent"), "at": "2023-11-14T22:13:20Z"} {
		if got := at(charges[0], path); got != want {
			t.Errorf("charges[0].%s = %v, want %v", path, got, want)
		}
	}
	r.control("GET", "/_sim/summary", "").want(t, 200, map[string]any{"requests": 3.0, "posts": 3.0, "charges": 2.0, "double_charges": 0.0, "unattributed": 1.0, "payment_intents": 3.0, "faults_injected": 0.0})
	if strings.Contains(r.control("GET", "/_sim/ledger", "").body, "pm_card") {
		t.Error("the ledger repeats a request's body")
	}
}

func TestBasicAuthentication(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	req := newRequest(t, r, pay())
	req.SetBasicAuth("sk_test_123", "")
	res, err := r.client.Do(req)
	mustNil(t, err)
	defer res.Body.Close()
	if res.StatusCode != 200 || r.sim.Summary().Charges != 1 {
		t.Errorf("status %d, summary %+v", res.StatusCode, r.sim.Summary())
	}
}
