package stripesim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// paid makes a payment that has succeeded, and returns the PaymentIntent and its charge.
func (r *rig) paid(key string, kv ...string) (id, charge string) {
	r.t.Helper()
	m := r.pay(key, kv...).want(r.t, 200, map[string]any{"status": succeeded})
	return at(m, "id").(string), at(m, "latest_charge").(string)
}

func (r *rig) refund(key string, kv ...string) result {
	return r.do(call{path: refundsPath, key: key, form: form(kv...)})
}

// balance is what the account has in US dollars.
func (r *rig) balance() any {
	r.t.Helper()
	return at(r.get("/v1/balance").object(r.t)["available"].([]any)[0], "amount")
}

func TestRefundInPartsAndNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id, charge := r.paid("k")
	first := r.refund("a", "payment_intent", id, "amount", "500", "reason", "requested_by_customer", "metadata[oncepay_payment]", "ref_1", "metadata[order]", "7")
	m := first.want(t, 200, map[string]any{
		"object": "refund", "status": "succeeded", "amount": 500.0, "currency": "usd", "payment_intent": id, "charge": charge, "created": 1_700_000_000.0,
		"reason": "requested_by_customer", "metadata.oncepay_payment": "ref_1", "metadata.order": "7",
	})
	if !strings.HasPrefix(m["id"].(string), "re_") {
		t.Errorf("the refund is %v", m)
	}
	again := r.refund("a", "payment_intent", id, "amount", "500", "reason", "requested_by_customer", "metadata[oncepay_payment]", "ref_1", "metadata[order]", "7")
	if again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" || r.last().PaymentIntent != id {
		t.Errorf("a repeat: %+v", again)
	}
	r.refund("a", "payment_intent", id, "amount", "501").want(t, 400, map[string]any{"error.type": "idempotency_error"})
	r.refund("b", "payment_intent", id, "amount", "1501").want(t, 400, map[string]any{
		"error.param": "amount", "error.code": nil, "error.message": "Refund amount ($15.01) is greater than unrefunded amount on charge ($15.00)"})
	r.get(chargesPath+"/"+charge).want(t, 200, map[string]any{"amount": 2000.0, "amount_captured": 2000.0, "amount_refunded": 500.0, "refunded": false, "payment_intent": id})
	r.refund("c", "charge", charge).want(t, 200, map[string]any{"amount": 1500.0, "reason": nil, "charge": charge, "payment_intent": id})
	r.get(chargesPath+"/"+charge).want(t, 200, map[string]any{"amount_refunded": 2000.0, "refunded": true})
	for _, kv := range [][]string{{"payment_intent", id}, {"charge", charge, "amount", "1"}} {
		r.refund("", kv...).want(t, 400, map[string]any{"error.code": "charge_already_refunded", "error.message": "Charge " + charge + " has already been refunded."})
	}
	r.get(intentsPath+"/"+id).want(t, 200, map[string]any{"status": succeeded, "amount_received": 2000.0, "latest_charge": charge})
	if r.balance() != 0.0 {
		t.Errorf("balance %v", r.balance())
	}
	l := r.control("GET", "/_sim/ledger", "").want(t, 200, nil)
	for path, want := range map[string]any{
		"id": m["id"], "payment_intent": id, "charge": charge, "account": DefaultAccount, "amount": 500.0, "currency": "usd", "status": "succeeded",
		"idempotency_key": "a", "metadata.order": "7", "reason": "requested_by_customer", "at": "2023-11-14T22:13:20Z",
	} {
		if got := at(l["refunds"].([]any)[0], path); got != want {
			t.Errorf("refunds[0].%s = %v, want %v", path, got, want)
		}
	}
	if c := r.sim.Ledger().Charges; len(c) != 1 || c[0].AmountCaptured != 2000 || c[0].AmountRefunded != 2000 {
		t.Errorf("charges %+v", c)
	}
	if sum := r.sim.Summary(); sum.Refunds != 2 || sum.DoubleRefunds != 0 || sum.StrayRefunds != 1 || sum.Charges != 1 || sum.DoubleCharges != 0 {
		t.Errorf("summary %+v", sum)
	}
}

// One request for a refund that made two is seen, and those of other installations are others.
func TestDoubleRefundsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id, _ := r.paid("k")
	for i, namespace := range []string{"one", "two", "one", "one"} {
		r.refund(fmt.Sprint(i), "payment_intent", id, "amount", "10", "metadata[oncepay_payment]", "ref_1", "metadata[oncepay_namespace]", namespace).want(t, 200, nil)
	}
	r.control("GET", "/_sim/summary", "").want(t, 200, map[string]any{"refunds": 4.0, "double_refunds": 1.0, "unattributed_refunds": 0.0})
	if sum := r.sim.Summary(); !slices.Equal(sum.DoubleRefunded, []string{"ref_1"}) {
		t.Errorf("summary %+v", sum)
	}
}

func TestRefundValidation(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id, charge := r.paid("k")
	held := at(r.pay("held", "capture_method", "manual").want(t, 200, nil), "id").(string)
	declined := at(r.pay("declined", "payment_method", "pm_card_visa_chargeDeclined").object(t), "error.payment_intent.id").(string)
	for name, tc := range map[string]struct {
		kv     []string
		status int
		code   any
		param  any
	}{
		"nothing":        {nil, 400, "parameter_missing", nil},
		"both":           {[]string{"payment_intent", id, "charge", charge}, 400, nil, "charge"},
		"currency":       {[]string{"payment_intent", id, "currency", "usd"}, 400, "parameter_unknown", "currency"},
		"amount 0":       {[]string{"payment_intent", id, "amount", "0"}, 400, "parameter_invalid_integer", "amount"},
		"amount below 0": {[]string{"payment_intent", id, "amount", "-1"}, 400, "parameter_invalid_integer", "amount"},
		"amount empty":   {[]string{"payment_intent", id, "amount", ""}, 400, "parameter_invalid_empty", "amount"},
		"amount decimal": {[]string{"payment_intent", id, "amount", "1.0"}, 400, "parameter_invalid_integer", "amount"},
		"reason":         {[]string{"payment_intent", id, "reason", "abandoned"}, 400, nil, "reason"},
		"metadata":       {[]string{"payment_intent", id, "metadata", "x"}, 400, nil, "metadata"},
		"metadata value": {[]string{"payment_intent", id, "metadata[a]", strings.Repeat("x", 501)}, 400, nil, "metadata[a]"},
		"unknown PI":     {[]string{"payment_intent", "pi_none"}, 404, "resource_missing", "payment_intent"},
		"no PI":          {[]string{"payment_intent", charge}, 404, "resource_missing", "payment_intent"},
		"unknown charge": {[]string{"charge", "ch_none"}, 404, "resource_missing", "charge"},
		"no charge":      {[]string{"charge", id}, 404, "resource_missing", "charge"},
		"held":           {[]string{"payment_intent", held}, 400, "payment_intent_unexpected_state", nil},
		"declined":       {[]string{"payment_intent", declined}, 400, "payment_intent_unexpected_state", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r.refund("", tc.kv...).want(t, tc.status, map[string]any{"error.type": "invalid_request_error", "error.code": tc.code, "error.param": tc.param})
		})
	}
	r.do(call{path: refundsPath, key: "x", account: "acct_b", form: form("payment_intent", id)}).want(t, 404, nil)
	r.do(call{method: "GET", path: refundsPath + "/re_none"}).want(t, 404, map[string]any{"error.code": "resource_missing"})
	r.do(call{method: "GET", path: chargesPath + "/ch_none"}).want(t, 404, map[string]any{"error.code": "resource_missing"})
	r.do(call{path: refundsPath + "/re_none"}).want(t, 404, map[string]any{"error.message": "No such refund: 're_none'"})
	if sum := r.sim.Summary(); sum.Refunds != 0 {
		t.Errorf("summary %+v", sum)
	}
	// What was captured in part is all that can be given back.
	r.do(call{path: intentsPath + "/" + held + "/capture", form: form("amount_to_capture", "700")}).want(t, 200, nil)
	r.refund("", "payment_intent", held, "amount", "701").want(t, 400, map[string]any{"error.param": "amount"})
	r.refund("", "payment_intent", held).want(t, 200, map[string]any{"amount": 700.0})
}

// Refunds of some cards are pending first, and of some come back: the money is the account's again, and can be given back anew.
func TestRefundsThatSettleLater(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	opts := Options{Path: path, DebitSettle: time.Hour}
	r := newRig(t, opts)
	slow, slowCharge := r.paid("slow", "payment_method", "pm_card_pendingRefund")
	fails, failsCharge := r.paid("fails", "payment_method", "pm_card_refundFail")
	pending := at(r.refund("a", "payment_intent", slow).want(t, 200, map[string]any{"status": "pending"}), "id").(string)
	failing := at(r.refund("b", "payment_intent", fails).want(t, 200, map[string]any{"status": "succeeded", "failure_reason": nil}), "id").(string)
	r.get(chargesPath+"/"+slowCharge).want(t, 200, map[string]any{"refunded": true})
	r.do(call{path: refundsPath + "/" + pending, form: form("metadata[note]", "x")}).want(t, 200, map[string]any{"metadata.note": "x", "status": "pending"})
	r.do(call{path: refundsPath + "/" + pending, form: form("metadata[note]", "", "metadata[other]", "y")}).want(t, 200, map[string]any{"metadata.note": nil, "metadata.other": "y"})
	r.do(call{path: refundsPath + "/" + pending, form: form("amount", "1")}).want(t, 400, map[string]any{"error.code": "parameter_unknown"})
	r = r.reopen(opts)
	mustNil(t, r.sim.AdvanceClock(time.Hour))
	r.get(refundsPath+"/"+pending).want(t, 200, map[string]any{"status": "succeeded", "metadata.other": "y"})
	r.get(refundsPath+"/"+failing).want(t, 200, map[string]any{"status": "failed", "failure_reason": "expired_or_canceled_card"})
	r.get(chargesPath+"/"+failsCharge).want(t, 200, map[string]any{"refunded": false, "amount_refunded": 0.0})
	if r.balance() != 2000.0 {
		t.Errorf("balance %v", r.balance())
	}
	r.refund("c", "payment_intent", slow).want(t, 400, map[string]any{"error.code": "charge_already_refunded"})
	r.refund("d", "payment_intent", fails).want(t, 200, map[string]any{"amount": 2000.0})
	l := r.sim.Ledger().Refunds
	if len(l) != 3 || l[0].Status != "succeeded" || l[1].Status != "failed" || l[0].Metadata["other"] != "y" {
		t.Errorf("refunds %+v", l)
	}
	kinds, _ := r.events("limit", "100", "type", "refund.*")
	if slices.Reverse(kinds); !slices.Equal(kinds, []string{eventRefundCreated, eventRefundCreated, eventRefundUpdated, eventRefundUpdated, eventRefundUpdated, eventRefundUpdated, eventRefundCreated}) {
		t.Errorf("events %v", kinds)
	}
	m := r.get(eventsPath, "type", eventChargeRefunded).want(t, 200, nil)
	for path, want := range map[string]any{"data.object.object": "charge", "data.object.id": failsCharge, "data.object.amount_refunded": 2000.0, "data.object.refunded": true, "request.idempotency_key": "d"} {
		if got := at(m["data"].([]any)[0], path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	m = r.get(eventsPath, "type", eventChargeRefundUpdated).want(t, 200, nil)
	all := m["data"].([]any)
	for _, e := range all {
		if at(e, "data.object.object") != "refund" {
			t.Errorf("event %v", e)
		}
	}
	if at(all[len(all)-1], "data.object.status") != "pending" || at(all[0], "request.idempotency_key") != nil {
		t.Errorf("events %v", all)
	}
}

func TestRefundLists(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	one, charge := r.paid("one")
	two, _ := r.paid("two")
	var ids []string
	for i := range 7 {
		of := one
		if i%2 == 1 {
			of = two
		}
		ids = append(ids, at(r.refund(fmt.Sprint(i), "payment_intent", of, "amount", "10").want(t, 200, nil), "id").(string))
		r.clock.add(time.Second)
	}
	list := func(more bool, kv ...string) []string {
		t.Helper()
		m := r.get(refundsPath, kv...).want(t, 200, map[string]any{"object": "list", "url": refundsPath, "has_more": more})
		got := []string{}
		for _, x := range m["data"].([]any) {
			got = append(got, at(x, "id").(string))
		}
		return got
	}
	is := func(got []string, places ...int) {
		t.Helper()
		want := []string{}
		for _, p := range places {
			want = append(want, ids[p])
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	}
	is(list(false), 6, 5, 4, 3, 2, 1, 0)
	is(list(false, "payment_intent", one), 6, 4, 2, 0)
	is(list(false, "charge", charge), 6, 4, 2, 0)
	is(list(true, "payment_intent", one, "limit", "2"), 6, 4)
	is(list(false, "payment_intent", one, "limit", "2", "starting_after", ids[4]), 2, 0)
	is(list(true, "payment_intent", one, "limit", "2", "ending_before", ids[0]), 4, 2)
	is(list(false, "payment_intent", one, "starting_after", ids[5]), 4, 2, 0)
	is(list(false, "payment_intent", "pi_none"))
	is(list(false, "created[gte]", "1700000002", "created[lt]", "1700000005"), 4, 3, 2)
	for _, kv := range [][]string{{"limit", "0"}, {"limit", "101"}, {"starting_after", "re_none"}, {"payment_intent", one, "charge", charge}, {"payment_intent", "x"}, {"charge", "x"}, {"status", "x"}, {"starting_after", ids[0], "ending_before", ids[1]}} {
		r.get(refundsPath, kv...).want(t, 400, nil)
	}
	if res := r.do(call{method: "GET", path: refundsPath, account: "acct_b"}); len(res.object(t)["data"].([]any)) != 0 {
		t.Errorf("another account lists %s", res.body)
	}
}

// Every fault does to a refund what it does to a charge.
func TestRefundFaults(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]struct {
		refunds int // after the fault
		again   int // status of the repeat, where it may be repeated
		total   int // refunds after it
	}{
		FaultResetBefore: {0, 200, 1}, FaultUnauthorized401: {0, 200, 1}, FaultRateLimit429: {0, 200, 1}, FaultInUse409: {0, 200, 1},
		FaultLockTimeout429: {0, 200, 1}, FaultCommitThenReset: {1, 200, 1}, FaultCommitThen500: {1, 500, 1}, FaultCommitThen503: {1, 200, 2},
		FaultTruncateBody: {1, 200, 1}, FaultHTML502: {1, 200, 1}, FaultGarbage200: {1, 200, 1}, FaultSlow + ":1": {1, 200, 1},
		FaultShouldRetryTrue: {1, 200, 1}, FaultShouldRetryFalse: {1, 200, 1},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger")
			r := newRig(t, Options{Path: path})
			id, _ := r.paid("k")
			c := call{path: refundsPath, key: "r", fault: fault, form: form("payment_intent", id, "amount", "10", "metadata[oncepay_payment]", "ref_1")}
			r.do(c)
			if n := r.sim.Summary().Refunds; n != want.refunds || len(r.sim.Ledger().Refunds) != n {
				t.Fatalf("%d refunds, want %d", n, want.refunds)
			}
			before := ledgerJSON(t, r.sim)
			r = r.reopen(Options{Path: path})
			if after := ledgerJSON(t, r.sim); after != before {
				t.Errorf("after opening again:\n%s\nbefore:\n%s", after, before)
			}
			c.fault = ""
			if res := r.do(c); res.status != want.again {
				t.Errorf("the repeat is answered %d: %s", res.status, res.body)
			}
			if sum := r.sim.Summary(); sum.Refunds != want.total || sum.DoubleRefunds != want.total-1 {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

// However many ask at once, no more is given back than was taken.
func TestRefundsAtOnceNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id, _ := r.paid("k")
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for {
				res := r.refund(fmt.Sprint(i), "payment_intent", id, "amount", "150")
				if res.status != 429 { // the object's lock
					return
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, f := range r.sim.Ledger().Refunds {
		total += f.Amount
	}
	if total != 13*150 || r.balance() != 50.0 {
		t.Errorf("%d were given back, the balance is %v", total, r.balance())
	}
}

func TestMoneyAsStripeShowsIt(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]struct {
		amount   int64
		currency string
	}{"$20.00": {2000, "usd"}, "0.05 eur": {5, "eur"}, "500 jpy": {500, "jpy"}, "1.250 kwd": {1250, "kwd"}, "6.00 ugx": {600, "ugx"}} {
		if got := shownMoney(in.amount, in.currency); got != want {
			t.Errorf("%d %s is shown as %s, want %s", in.amount, in.currency, got, want)
		}
	}
}
