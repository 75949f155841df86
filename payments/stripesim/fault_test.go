package stripesim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFaults holds every fault against the table of the package comment.
func TestFaults(t *testing.T) {
	t.Parallel()
	const cut = -1 // the connection broke before a full answer
	for _, tc := range []struct {
		fault    string
		status   int // that the client sees
		noted    int // in the ledger
		executed bool
		again    int  // status of a repeat without the fault
		replayed bool // whether that repeat is a replay
		charges  int  // after the repeat
	}{
		{"reset_before", cut, 0, false, 200, false, 1},
		{"unauthorized_401", 401, 401, false, 200, false, 1},
		{"rate_limit_429", 429, 429, false, 200, false, 1},
		{"in_use_409", 409, 409, false, 200, false, 1},
		{"lock_timeout_429", 429, 429, false, 200, false, 1},
		{"commit_then_reset", cut, 0, true, 200, true, 1},
		{"commit_then_500", 500, 500, true, 500, true, 1},
		{"commit_then_503", 503, 503, true, 200, false, 2},
		{"truncate_body", cut, 200, true, 200, true, 1},
		{"html_502", 502, 502, true, 200, true, 1},
		{"garbage_200", 200, 200, true, 200, true, 1},
		{"slow:1", 200, 200, true, 200, true, 1},
		{"should_retry_true", 200, 200, true, 200, true, 1},
		{"should_retry_false", 200, 200, true, 200, true, 1},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			res := r.do(call{path: intentsPath, key: "k", fault: tc.fault, form: pay()})
			switch {
			case tc.status == cut && res.err == nil:
				t.Fatalf("an answer came: %d %s", res.status, res.body)
			case tc.status != cut && (res.err != nil || res.status != tc.status):
				t.Fatalf("status %d, error %v, want %d", res.status, res.err, tc.status)
			}
			checkFaultAnswer(t, tc.fault, res)
			entry := r.last()
			if entry.Status != tc.noted || entry.Executed != tc.executed || entry.Fault != tc.fault {
				t.Errorf("ledger has %+v", entry)
			}
			if want := map[bool]int{true: 1}[tc.executed]; len(r.listed()) != want || len(r.sim.Ledger().Charges) != want {
				t.Errorf("listed %v, charges %v, want %d of each at once", r.listed(), r.sim.Ledger().Charges, want)
			}
			again := r.pay("k")
			if again.status != tc.again || (again.header.Get("Idempotent-Replayed") == "true") != tc.replayed {
				t.Errorf("repeat: status %d, replayed %q: %s", again.status, again.header.Get("Idempotent-Replayed"), again.body)
			}
			sum := r.sim.Summary()
			if sum.Charges != tc.charges || sum.DoubleCharges != tc.charges-1 || sum.Repeats != 1 || sum.FaultsInjected != 1 || sum.Faults[faultKind(tc.fault)] != 1 {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

func checkFaultAnswer(t *testing.T, name string, res result) {
	t.Helper()
	switch name {
	case "reset_before", "commit_then_reset":
		if !isReset(res.err) {
			t.Errorf("the connection did not end by RST: %v", res.err)
		}
	case "truncate_body":
		if !errors.Is(res.err, io.ErrUnexpectedEOF) || res.status != 200 || !strings.HasPrefix(res.body, `{"id":"pi_`) {
			t.Errorf("status %d, error %v, body %q", res.status, res.err, res.body)
		}
	case "html_502":
		if res.header.Get("Content-Type") != "text/html" || !strings.HasPrefix(res.body, "<html>") || res.header.Get("Request-Id") != "" {
			t.Errorf("header %v, body %q", res.header, res.body)
		}
	case "garbage_200":
		if res.header.Get("Content-Type") != "application/json" || !strings.Contains(res.body, "garbage") {
			t.Errorf("header %v, body %q", res.header, res.body)
		}
	case "should_retry_true", "should_retry_false":
		if want := strings.TrimPrefix(name, "should_retry_"); res.header.Get("Stripe-Should-Retry") != want {
			t.Errorf("Stripe-Should-Retry is %q", res.header.Get("Stripe-Should-Retry"))
		}
	case "rate_limit_429":
		res.want(t, 429, map[string]any{"error.code": "rate_limit"})
		if res.header.Get("Stripe-Rate-Limited-Reason") != "global-rate" {
			t.Error("a limiter's 429 has no reason")
		}
	case "lock_timeout_429":
		res.want(t, 429, map[string]any{"error.code": "lock_timeout", "error.type": "invalid_request_error"})
		if _, ok := res.header["Stripe-Rate-Limited-Reason"]; ok {
			t.Error("a lock timeout has a limiter's reason")
		}
	case "in_use_409":
		res.want(t, 409, map[string]any{"error.code": "idempotency_key_in_use"})
	case "unauthorized_401":
		res.want(t, 401, map[string]any{"error.type": "invalid_request_error", "error.code": nil})
	case "commit_then_500", "commit_then_503":
		res.want(t, res.status, map[string]any{"error.type": "api_error", "error.payment_intent": nil})
	}
}

func TestHangIsExecutedAndFreedByDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	mustNil(t, r.sim.AddFault(Rule{Fault: FaultCommitThenHang}))
	answers := make(chan result, 1)
	go func() { answers <- r.pay("k") }()
	mustNil(t, r.sim.WaitHung(deadline(t), 1))
	if ids := r.listed(); len(ids) != 1 {
		t.Fatalf("listed %v while the call hangs", ids)
	}
	select {
	case res := <-answers:
		t.Fatalf("an answer came: %+v", res)
	default:
	}
	r.control("DELETE", "/_sim/faults", "").want(t, 200, map[string]any{"ok": true})
	(<-answers).want(t, 200, map[string]any{"status": "succeeded"})
	if res := r.pay("k"); res.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the rule survived DELETE, or the answer was not stored")
	}
}

func TestHangEndsWithItsClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan result, 1)
	go func() {
		done <- r.do(call{path: intentsPath, key: "k", form: pay(), fault: FaultCommitThenHang, ctx: ctx})
	}()
	mustNil(t, r.sim.WaitHung(deadline(t), 1))
	cancel()
	if res := <-done; !errors.Is(res.err, context.Canceled) {
		t.Fatalf("got %+v", res)
	}
	r.pay("k").want(t, 200, map[string]any{"status": "succeeded"})
	if sum := r.sim.Summary(); sum.Charges != 1 {
		t.Errorf("summary %+v", sum)
	}
}

func TestSlowHoldsTheAnswerBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan result, 1)
	go func() {
		done <- r.do(call{path: intentsPath, key: "k", form: pay(), fault: "slow:60000", ctx: ctx})
	}()
	mustNil(t, r.sim.WaitExecuted(deadline(t), 1))
	select {
	case res := <-done:
		t.Errorf("an answer came: %+v", res)
	case <-time.After(50 * time.Millisecond): // a wrong answer would be here by now
	}
	cancel()
	if res := <-done; !errors.Is(res.err, context.Canceled) {
		t.Fatalf("got %+v", res)
	}
	begin := time.Now()
	r.do(call{path: intentsPath, key: "k", form: pay(), fault: "slow:30"}).want(t, 200, map[string]any{"status": "succeeded"})
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("slow:30 took %v", took)
	}
	if sum := r.sim.Summary(); sum.Charges != 1 || sum.Faults["slow"] != 2 {
		t.Errorf("summary %+v", sum)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, body := range []string{
		`{"match":{"path":"/v1/payment_intents","metadata":{"oncepay_payment":"pay_x"}},"fault":"html_502","times":1}`,
		`{"match":{"nth":2},"fault":"commit_then_503","times":2}`,
		`{"match":{"method":"GET","path":"/v1/balance"},"fault":"garbage_200"}`,
	} {
		r.control("POST", "/_sim/faults", body).want(t, 200, nil)
	}
	for i, want := range []int{200, 503, 503, 200} {
		if res := r.pay(""); res.status != want {
			t.Errorf("POST %d: status %d, want %d", i+1, res.status, want)
		}
	}
	for i, want := range []int{502, 200} {
		if res := r.pay("", "metadata[oncepay_payment]", "pay_x"); res.status != want {
			t.Errorf("pay_x %d: status %d, want %d", i+1, res.status, want)
		}
	}
	if res := r.get("/v1/balance"); !strings.Contains(res.body, "garbage") {
		t.Errorf("balance: %s", res.body)
	}
	r.get("/v1/account").want(t, 200, map[string]any{"object": "account"})
	r.sim.ClearFaults()
	r.get("/v1/balance").want(t, 200, map[string]any{"object": "balance", "livemode": false})
}

func TestRateIsSeeded(t *testing.T) {
	t.Parallel()
	hits := func(seed uint64) string {
		q := newFaultQueue(seed)
		mustNil(t, q.add(Rule{Fault: FaultHTML502, Rate: 0.3, Times: 40}))
		var b strings.Builder
		for range 100 {
			b.WriteString(q.choose("POST", intentsPath, nil).kind + ",")
		}
		return b.String()
	}
	first := hits(7)
	if first != hits(7) || first == hits(8) {
		t.Error("a rate does not follow its seed")
	}
	if n := strings.Count(first, FaultHTML502); n < 15 || n > 40 {
		t.Errorf("rate 0.3 hit %d of 100", n)
	}
}

func TestRulesAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, body := range []string{
		`{"fault":"nope"}`, `{}`, `{"fault":"slow"}`, `{"fault":"slow:-1"}`, `{"fault":"slow:x"}`, `{"fault":"html_502","times":0}`,
		`{"fault":"html_502","rate":0}`, `{"fault":"html_502","rate":1.5}`, `{"fault":"html_502","times":-1}`,
		`{"fault":"html_502","match":{"nth":0}}`, `{"fault":"html_502","match":{"nth":-1}}`, `{"fault":"html_502","match":{"path":"payment_intents"}}`,
		`{"fault":"html_502","extra":1}`, `{"fault":"html_502"}{}`, `not json`, ``,
	} {
		if res := r.control("POST", "/_sim/faults", body); res.status != 400 || !strings.Contains(res.body, "simulator_error") {
			t.Errorf("%s: %d %s", body, res.status, res.body)
		}
	}
	res := r.do(call{path: intentsPath, form: pay(), fault: "nope"})
	res.want(t, 400, map[string]any{"error.param": "Oncepay-Sim-Fault"})
	if r.sim.Summary().Charges != 0 {
		t.Error("a request with an unknown fault was executed")
	}
}

func TestFaultThatIsNotMetIsNotCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	res := r.do(call{path: intentsPath, form: pay("amount", "1"), fault: FaultCommitThen500})
	res.want(t, 400, map[string]any{"error.code": "amount_too_small"})
	if e := r.last(); e.Fault != "" || e.Executed || e.Status != 400 {
		t.Errorf("ledger has %+v", e)
	}
	r.pay("k").want(t, 200, nil)
	replay := r.do(call{path: intentsPath, key: "k", form: pay(), fault: FaultCommitThen500})
	replay.want(t, 200, map[string]any{"status": "succeeded"})
	replay = r.do(call{path: intentsPath, key: "k", form: pay(), fault: FaultCommitThen503})
	replay.want(t, 503, map[string]any{"error.type": "api_error"})
	if sum := r.sim.Summary(); sum.FaultsInjected != 1 || sum.Charges != 1 {
		t.Errorf("summary %+v", sum)
	}
}

// recorderOnly is a ResponseWriter that cannot be hijacked, as over HTTP/2.
type recorderOnly struct{ http.ResponseWriter }

func TestResetWithoutConnectionEndsTheStream(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
	}()
	reset(recorderOnly{})
}

// On a GET the faults change the answer alone.
func TestFaultsOnReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id := at(r.pay("k").object(t), "id").(string)
	for name, want := range map[string]int{
		FaultCommitThen500: 500, FaultCommitThen503: 503, FaultHTML502: 502, FaultGarbage200: 200, FaultInUse409: 409, FaultLockTimeout429: 429,
		FaultRateLimit429: 429, FaultUnauthorized401: 401, FaultShouldRetryTrue: 200, "slow:1": 200,
		FaultResetBefore: 0, FaultCommitThenReset: 0, FaultTruncateBody: 200,
	} {
		res := r.do(call{method: "GET", path: intentsPath + "/" + id, fault: name})
		if res.status != want || (res.err != nil) != (want == 0 || name == FaultTruncateBody) {
			t.Errorf("%s: status %d, error %v", name, res.status, res.err)
		}
		if e := r.last(); e.Fault != name || e.Executed || e.Status != want {
			t.Errorf("%s: ledger has %+v", name, e)
		}
	}
	r.get(intentsPath+"/"+id).want(t, 200, map[string]any{"status": "succeeded"})
}

// A call that has met its rule but does not hang yet is freed like the others.
func TestDeleteFreesACallThatIsAboutToHang(t *testing.T) {
	t.Parallel()
	inside, hold := make(chan Commit, 1), make(chan struct{})
	r := newRig(t, Options{OnCommit: func(c Commit) { inside <- c; <-hold }})
	mustNil(t, r.sim.AddFault(Rule{Fault: FaultCommitThenHang}))
	answers := make(chan result, 1)
	go func() { answers <- r.pay("k") }()
	<-inside
	r.sim.ClearFaults()
	close(hold)
	(<-answers).want(t, 200, map[string]any{"status": "succeeded"})
	if e := r.last(); e.Fault != FaultCommitThenHang || e.Status != 0 {
		t.Errorf("ledger has %+v", e)
	}
}
