package cli

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// followUpFlags ask for something of the payment of the key.
func followUpFlags(kind, key, of string, more ...string) []string {
	return append([]string{"publish", "--tenant", "demo", "--key", key, "--kind", kind, "--payment-id", payments.NewID("demo", of).String()}, more...)
}

// held makes a payment that is only authorised.
func (b *bench) held(key string) {
	b.t.Helper()
	r := b.run(intentFlags(key, "--wait", "--json", "--capture-method", "manual")...)
	if r.code != exitFailed || oneDocument(b.t, r.out)["status"] != "requires_capture" {
		b.t.Fatalf("%s: %+v", key, r)
	}
}

// TestRefundAndSee goes the way of a service that gives back what it has taken, captures and cancels, and of an operator who asks what became of it.
func TestRefundAndSee(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	sim := b.serve()
	b.json(intentFlags("order-1", "--wait")...)
	id := payments.NewID("demo", "refund-1").Format(payments.KindRefund)
	part := followUpFlags("refund", "refund-1", "order-1", "--amount", "2500", "--reason", "requested_by_customer", "--metadata", "rma=7", "--wait")
	d := b.json(part...)
	if d["id"] != id || d["kind"] != "refund" || d["status"] != "succeeded" || d["amount"] != 2500.0 || d["reason"] != "requested_by_customer" || d["stripe_refund"] == nil {
		t.Errorf("--wait: %v", d)
	}
	if r := b.run(part...); r.code != exitOK || !strings.Contains(r.err, "a repeat: this key has named this refund since") || !strings.Contains(r.out, id) {
		t.Errorf("repeated: %+v", r)
	}
	b.fails(b.run(followUpFlags("refund", "refund-1", "order-1", "--wait")...), exitFailed, "already names another request", "amount")
	b.fails(b.run(followUpFlags("refund", "refund-2", "order-1", "--amount", "7401", "--wait")...), exitFailed, "dead letter dl_", "more than is left")
	in := `{"idempotency_key":"refund-3","kind":"refund","payment_id":"` + payments.NewID("demo", "order-1").String() + `"}`
	if r := b.with(in, "publish", "-", "--tenant", "demo", "--wait", "--json"); r.code != exitOK || oneDocument(t, r.out)["amount"] != 7400.0 {
		t.Errorf("all that is left, from standard input: %+v", r)
	}
	b.held("order-2")
	if d := b.json(followUpFlags("capture", "capture-1", "order-2", "--amount", "6000", "--wait")...); d["kind"] != "capture" || d["status"] != "succeeded" {
		t.Errorf("capture: %v", d)
	}
	b.held("order-3")
	if d := b.json(followUpFlags("cancel", "cancel-1", "order-3", "--reason", "abandoned", "--wait")...); d["kind"] != "cancel" || d["status"] != "succeeded" {
		t.Errorf("cancel: %v", d)
	}
	for key, want := range map[string][3]any{"order-1": {"succeeded", 9900.0, 9900.0}, "order-2": {"succeeded", 6000.0, 0.0}, "order-3": {"canceled", 0.0, 0.0}} {
		d := b.json("payments", "show", "--tenant", "demo", "--key", key)
		if got := [3]any{d["status"], d["amount_captured"], d["amount_refunded"]}; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	ledger := sim.Ledger()
	if len(ledger.Charges) != 3 || len(ledger.Refunds) != 2 {
		t.Errorf("%d charges, %d refunds", len(ledger.Charges), len(ledger.Refunds))
	}
	b.seeRefunds(id)
}

// seeRefunds reads operations back in every way.
func (b *bench) seeRefunds(id string) {
	b.t.Helper()
	for _, args := range [][]string{{id}, {id, "--tenant", "demo"}, {"--tenant", "demo", "--key", "refund-1"}} {
		d := b.json(append([]string{"payments", "show"}, args...)...)
		events, ok := d["events"].([]any)
		if d["id"] != id || !ok || len(events) < 2 || events[len(events)-1].(map[string]any)["type"] != "oncepay.refund.succeeded" || d["metadata"].(map[string]any)["rma"] != "7" {
			b.t.Errorf("show %q: %v", args, d)
		}
		if r := b.run(append([]string{"payments", "show"}, args...)...); r.code != exitOK || !strings.Contains(r.out, "25.00 USD") || !strings.Contains(r.out, "requested_by_customer") {
			b.t.Errorf("show %q: %+v", args, r)
		}
	}
	r := b.run("payments", "show", "--tenant", "demo", "--key", "order-1")
	for _, want := range []string{"99.00 USD, refunded 99.00 USD", id + ", 25.00 USD, succeeded", "74.00 USD, all that was left, succeeded"} {
		if !strings.Contains(r.out, want) {
			b.t.Errorf("%q is missing: %+v", want, r)
		}
	}
	for kind, want := range map[string]int{"charge": 3, "refund": 2, "capture": 1, "cancel": 1, "": 7} {
		args := []string{"payments", "list", "--tenant", "demo"}
		if kind != "" {
			args = append(args, "--kind", kind)
		}
		if got := list(b.t, b.json(args...)); len(got) != want {
			b.t.Errorf("%q: %d listed, want %d: %v", args, len(got), want, got)
		}
	}
	if got := list(b.t, b.json("payments", "list", "--tenant", "demo", "--key", "refund-1")); len(got) != 1 || got[0].(map[string]any)["stripe_refund"] == nil {
		b.t.Errorf("by its key: %v", got)
	}
	b.fails(b.run("payments", "list", "--tenant", "demo", "--key", "refund-1", "--kind", "charge"), exitFailed, "--key: names a refund: `oncepay payments show "+id+"`")
	b.fails(b.run("payments", "list", "--key", "refund-1", "--kind", "charge"), exitFailed, "--key: names a refund: `oncepay payments show "+id+"`")
	none := strings.Repeat("0", 32)
	for typed, want := range map[string]string{"pay_" + none: " no payment pay_", "ref_" + none: " no refund ref_", "op_" + none: " no capture or cancel op_", "bat_" + none: " no batch bat_"} {
		for _, args := range [][]string{{"show", typed}, {"show", typed, "--tenant", "demo"}, {"resolve", typed, "--as", "failed", "--reason", "test", "--yes"},
			{"resolve", typed, "--tenant", "demo", "--as", "failed", "--reason", "test", "--yes"}} {
			b.fails(b.run(append([]string{"payments"}, args...)...), exitFailed, want+none)
		}
	}
	b.fails(b.run("payments", "resolve", id, "--as", "failed", "--reason", "test", "--yes"), exitFailed, "it has its outcome")
}
