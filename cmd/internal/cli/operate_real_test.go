package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// buryMessages leaves dead letters of messages of a tenant, as a worker does that cannot make payments of them.
func (b *bench) buryMessages(tenant string, n int, reason payments.Reason, payload func(i int) (key, body string)) {
	b.t.Helper()
	store, err := postgres.Open(b.t.Context(), b.set["ONCEPAY_DATABASE_URL"], postgres.Options{PoolSize: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close(context.WithoutCancel(b.t.Context()))
	created := time.Now().Add(-time.Hour)
	for i := range n {
		key, body := payload(i)
		err := store.BuryMessage(b.t.Context(), payments.DeadLetter{
			ID: fmt.Sprintf("dl_%d", b.sequence+i+1), TenantID: tenant, IdempotencyKey: key, Reason: reason, Message: "m", Payload: []byte(body),
			Origin: payments.MessageOrigin{Stream: b.streamName(), StreamCreated: created, Sequence: uint64(b.sequence + i + 1), Subject: b.set["ONCEPAY_SUBJECT_PREFIX"] + ".intent." + tenant},
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.sequence += n
}

func goodIntent(i int) (key, body string) {
	key = fmt.Sprintf("order-%d", i)
	return key, `{"idempotency_key":"` + key + `","amount":9900,"currency":"usd","payment_method":"pm_card_visa"}`
}

// TestReplayForReal: a thousand messages came before their tenant was made. It is made; a dry run changes nothing; a replay, watched to its end,
// charges each of them once; another one finds nothing to do.
func TestReplayForReal(t *testing.T) {
	t.Parallel()
	const letters = 1000
	b := newBench(t, migrate)
	b.buryMessages("acme", letters, payments.ReasonTenantUnknown, goodIntent)
	b.buryMessages("acme", 1, payments.ReasonInvalid, func(int) (string, string) { return "bad", `{"idempotency_key":"bad","amount":0,"currency":"usd"}` })
	b.buryMessages("acme", 1, payments.ReasonInvalid, func(int) (string, string) {
		return "slip", `{"idempotency_key":"slip","amount":500,"currency":"usdd","payment_method":"pm_card_visa"}`
	})
	b.buryMessages("acme", 1, payments.ReasonCardNumber, func(int) (string, string) { return "", card })
	b.set["ONCEPAY_STRIPE_RATE"] = "0"
	sim := b.serve()
	open := func() int {
		t.Helper()
		return len(list(t, b.json("dlq", "list", "--tenant", "acme", "--reason", "tenant_unknown", "--limit", "1000")))
	}

	d := b.json("dlq", "replay", "--tenant", "acme", "--reason", "tenant_unknown", "--dry-run")
	if d["count"] != float64(letters) || d["amount"].(map[string]any)["usd"] != float64(letters*9900) || d["settled"] != 0.0 || d["dry_run"] != true {
		t.Errorf("dry run: %v", d)
	}
	if d := b.json("dlq", "replay", "--tenant", "acme", "--limit", "10", "--dry-run"); d["count"] != 10.0 {
		t.Errorf("dry run of ten: %v", d)
	}
	if r := b.run("dlq", "replay", "--tenant", "acme"); r.code != exitUsage || !strings.Contains(r.err, "--yes: is required") || !strings.Contains(r.err, "1,003 dead letters of 1,002 payments to replay: at most 99,000.00 USD is charged") {
		t.Errorf("nobody was asked: %+v", r)
	}
	b.fails(b.run("dlq", "replay", "--yes"), exitUsage, "dlq replay: say which")
	if open() != letters || len(list(t, b.json("replays", "list"))) != 0 || len(list(t, b.json("audit"))) != 0 || len(sim.Ledger().Charges) > 0 {
		t.Errorf("something was done: %d open, %d charges", open(), len(sim.Ledger().Charges))
	}

	b.json("tenants", "create", "acme")
	r := b.run("dlq", "replay", "--tenant", "acme", "--reason", "tenant_unknown", "--yes", "--note", "tenant was made", "--actor", "ann")
	r.says(t, exitOK, "succeeded  1,000", "1,000 dead letters of 1,000 payments to replay: at most 99,000.00 USD is charged")
	if n, double := len(sim.Ledger().Charges), sim.Summary().DoubleCharges; n != letters || double != 0 {
		t.Errorf("%d charges, %d double", n, double)
	}
	if n := open(); n != 0 {
		t.Errorf("%d are open still", n)
	}
	jobs := list(t, b.json("replays", "list"))
	if len(jobs) != 1 {
		t.Fatalf("replays: %v", jobs)
	}
	id := jobs[0].(map[string]any)["id"].(string)
	if d := b.json("replays", "show", id); d["state"] != "completed" || d["actor"] != "ann" || d["note"] != "tenant was made" || d["finished"] != float64(letters) {
		t.Errorf("show: %v", d)
	}
	if items := list(t, b.json("replays", "show", id, "--items", "--result", "succeeded", "--limit", "1000")); len(items) != letters || items[0].(map[string]any)["status"] != "succeeded" {
		t.Errorf("%d items", len(items))
	}
	if r := b.run("replays", "show", id, "--follow"); r.code != exitOK || !strings.Contains(r.out, "succeeded  1,000") {
		t.Errorf("follow: %+v", r)
	}
	b.fails(b.run("replays", "cancel", id), exitFailed, "the replay is completed")
	b.fails(b.run("replays", "show", "rpl_nosuch"), exitFailed, "no such replay")

	if r := b.run("dlq", "replay", "--tenant", "acme", "--reason", "tenant_unknown"); r.code != exitOK || !strings.Contains(r.err, "no open dead letter that can be replayed matches") {
		t.Errorf("again: %+v", r)
	}
	r = b.run("dlq", "replay", "--key", "slip", "--set", "currency=usd", "--yes")
	r.says(t, exitOK, "succeeded  1", "")
	r = b.run("dlq", "replay", "--tenant", "acme", "--yes") // poison, and a card number
	r.says(t, exitOK, "failed_again  1", "--items --result failed_again")
	r.says(t, exitOK, "skipped       1", "")
	if d := b.json("dlq", "show", "dl_1001"); d["state"] != "open" || d["replays"] != 1.0 {
		t.Errorf("poison: %v", d)
	}
	b.run("dlq", "discard", "dl_1001", "--note", "test traffic").says(t, exitOK, "1 dead letter discarded\n", "")
	b.fails(b.run("dlq", "discard", "dl_1001"), exitFailed, "the dead letter is discarded")
	if n := len(sim.Ledger().Charges); n != letters+1 {
		t.Errorf("%d charges", n)
	}
	lines := list(t, b.json("audit", "--action", "dlq replay"))
	if first := lines[len(lines)-1].(map[string]any); first["actor"] != "ann" || first["target"] != id || first["reason"] != "tenant was made" || first["filter"].(map[string]any)["reason"] != "tenant_unknown" {
		t.Errorf("audit: %v", first)
	}
}

// TestPauseForReal: what is paused is accepted, says so, and goes on when it is resumed; what is settled cannot be resolved otherwise.
func TestPauseForReal(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	sim := b.serve()
	b.run("pause", "--tenant", "demo", "--reason", "fraud?", "--actor", "ann").says(t, exitOK, "paused tenant demo, until it is resumed\n", "`oncepay resume --tenant demo --reason R`")
	b.run(intentFlags("order-1", "--wait", "--within", "2s")...).says(t, exitFailed, "", "no outcome within 2s")
	var r result
	b.within("a worker has seen it", func(context.Context) error {
		if r = b.run("payments", "show", "--tenant", "demo", "--key", "order-1"); r.code != exitOK {
			return errors.New(r.err)
		}
		return nil
	})
	r.says(t, exitOK, "paused          tenant demo, until it is resumed, by ann: fraud?\n", "")
	r.says(t, exitOK, "reason          paused\n", "")
	if d := b.json("payments", "show", "--tenant", "demo", "--key", "order-1"); d["status"] != "received" || d["reason"] != "paused" || len(sim.Ledger().Charges) != 0 {
		t.Errorf("paused: %v", d)
	}
	b.run("resume", "--reason", "all of them").says(t, exitFailed, "", "oncepay: ")
	b.run("resume", "--tenant", "demo", "--reason", "it was a test").says(t, exitOK, "resumed tenant demo, paused since ", "")
	if r := b.run(intentFlags("order-1", "--wait")...); r.code != exitOK || len(sim.Ledger().Charges) != 1 {
		t.Errorf("resumed: %+v, %d charges", r, len(sim.Ledger().Charges))
	}
	id := payments.NewID("demo", "order-1").String()
	b.fails(b.run("payments", "resolve", id, "--as", "failed", "--reason", "R"), exitFailed, "it has its outcome")
	if got := list(t, b.json("audit", "--tenant", "demo")); len(got) != 3 || got[1].(map[string]any)["action"] != "pause" || got[1].(map[string]any)["actor"] != "ann" {
		t.Errorf("audit: %v", got)
	}
}
