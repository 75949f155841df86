package cli

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fails(b.run("payments", "list"), exitFailed, "run `oncepay migrate up`")
	steps := list(t, b.json("migrate", "status"))
	if len(steps) == 0 || steps[0].(map[string]any)["applied"] != false || steps[0].(map[string]any)["applied_at"] != nil {
		t.Errorf("before: %v", steps)
	}
	if r := b.run("migrate", "status"); r.code != exitOK || !strings.Contains(r.out, "missing: run `oncepay migrate up`") {
		t.Errorf("status: %+v", r)
	}
	if r := b.run("migrate", "up"); r.code != exitOK || !strings.HasPrefix(r.out, "the database is at version ") {
		t.Errorf("up: %+v", r)
	}
	if d := b.json("migrate", "up"); d["version"] != float64(len(steps)) {
		t.Errorf("again: %v", d)
	}
	for _, s := range list(t, b.json("migrate", "status")) {
		step := s.(map[string]any)
		if at, err := time.Parse(time.RFC3339Nano, step["applied_at"].(string)); step["applied"] != true || err != nil || time.Since(at) > time.Hour {
			t.Errorf("after: %v", step)
		}
	}
	if got := list(t, b.json("payments", "list")); len(got) != 0 {
		t.Errorf("payments: %v", got)
	}
}

// TestDatabaseTrouble: a database that is away is exit code 1, one that refuses us a matter of settings; no command shows the password.
func TestDatabaseTrouble(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(devstacktest.Postgres(t).DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/nosuchdatabase"
	unknown := withSettings(t, map[string]string{"ONCEPAY_DATABASE_URL": u.String()})
	u.User = url.UserPassword(u.User.Username(), "hunter2")
	wrong := withSettings(t, map[string]string{"ONCEPAY_DATABASE_URL": u.String()})
	u.Host = "127.0.0.1:1"
	away := withSettings(t, map[string]string{"ONCEPAY_DATABASE_URL": u.String()})
	for _, args := range []string{"payments list", "payments show pay_00000000000000000000000000000000", "dlq list", "tenants list", "tenants create a", "keys list", "migrate up", "migrate status"} {
		for _, r := range []struct {
			b    *bench
			code int
			want string
		}{{unknown, exitUsage, `PostgreSQL refuses: database "nosuchdatabase" does not exist`}, {wrong, exitUsage, "PostgreSQL refuses: password authentication failed"}, {away, exitFailed, "PostgreSQL cannot be reached"}} {
			got := r.b.run(append(strings.Fields(args), "--json")...)
			r.b.fails(got, r.code, "ONCEPAY_DATABASE_URL: ", r.want)
			if strings.Contains(got.err, "hunter2") {
				t.Errorf("%s: %q", args, got.err)
			}
		}
	}
}

func TestTenantsAndKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	if got := list(t, b.json("tenants", "list")); len(got) != 0 {
		t.Errorf("tenants: %v", got)
	}
	if r := b.run("tenants", "list"); r.code != exitOK || r.out != "" || r.err != "none found\n" {
		t.Errorf("tenants: %+v", r)
	}
	d := b.json("tenants", "create", "acme")
	if d["id"] != "acme" || d["stripe_account"] != nil || d["created_at"] == nil {
		t.Errorf("created: %v", d)
	}
	b.fails(b.run("tenants", "create", "acme"), exitFailed, "exists")
	for _, bad := range []string{"", "Acme", "a b", "-a", "a.b", "a*", strings.Repeat("a", 64), "ä", "a\x00"} {
		b.fails(b.run("tenants", "create", "--", bad), exitUsage)
	}
	if r := b.run("tenants", "create", "beta"); r.code != exitOK || r.out != "tenant beta created\n" {
		t.Errorf("created: %+v", r)
	}
	if got := list(t, b.json("tenants", "list")); len(got) != 2 {
		t.Errorf("tenants: %v", got)
	}

	if got := list(t, b.json("keys", "list")); len(got) != 0 {
		t.Errorf("keys: %v", got)
	}
	b.fails(b.run("keys", "create", "--tenant", "nobody"), exitFailed, "--tenant: there is no such tenant: `oncepay tenants create nobody` makes it")
	made := b.json("keys", "create", "--tenant", "acme", "--ttl", "1h", "--scopes", "payments:read,payments:write")
	secret, id := made["key"].(string), made["id"].(string)
	if len(secret) < 32 || !strings.HasPrefix(secret, made["prefix"].(string)) || made["expires_at"] == nil || made["revoked_at"] != nil || len(made["scopes"].([]any)) != 2 {
		t.Errorf("key: %v", made)
	}
	plain := b.run("keys", "create", "--tenant", "beta")
	if plain.code != exitOK || strings.Count(plain.out, "\n") != 1 || !strings.Contains(plain.err, "not shown again") || !strings.Contains(plain.err, "`oncepay keys revoke key_") || strings.Contains(plain.err, strings.TrimSpace(plain.out)) {
		t.Errorf("key: %+v", plain)
	}
	for _, args := range [][]string{{"keys", "list"}, {"keys", "list", "--json"}, {"keys", "list", "--tenant", "acme"}} {
		if r := b.run(args...); r.code != exitOK || strings.Contains(r.out, secret) || strings.Contains(r.out, strings.TrimSpace(plain.out)) || !strings.Contains(r.out, id) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, of := range []string{"keys", "payments"} {
		b.fails(b.run(of, "list", "--tenant", "acmee"), exitFailed, "there is no such tenant")
	}
	if got := list(t, b.json("keys", "list", "--tenant", "acme")); len(got) != 1 || got[0].(map[string]any)["key"] != nil {
		t.Errorf("acme's keys: %v", got)
	}
	if d := b.json("keys", "revoke", id); d["id"] != id || d["revoked"] != true {
		t.Errorf("revoked: %v", d)
	}
	if got := list(t, b.json("keys", "list", "--tenant", "acme")); got[0].(map[string]any)["revoked_at"] == nil {
		t.Errorf("after revoking: %v", got)
	}
	b.fails(b.run("keys", "revoke", "key_nosuch"), exitFailed)
	b.audited(made, secret)
	// Whoever gives the key itself for its id does not find it in the terminal's history of errors.
	r := b.run("keys", "revoke", secret)
	b.fails(r, exitFailed)
	if strings.Contains(r.err, secret) {
		t.Errorf("the key is repeated: %q", r.err)
	}
}

// intentFlags are a payment that succeeds.
func intentFlags(key string, more ...string) []string {
	return append([]string{"publish", "--tenant", "demo", "--key", key, "--amount", "9900", "--currency", "usd", "--customer", "cus_1", "--payment-method", "pm_card_visa"}, more...)
}

// TestPublishAndSee goes the way of a service and of an operator who asks what became of it.
func TestPublishAndSee(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	b.json("tenants", "create", "other")
	sim := b.serve()

	id := payments.NewID("demo", "order-1").Format(payments.KindCharge)
	d := b.json(intentFlags("order-1", "--wait")...)
	if d["id"] != id || d["status"] != "succeeded" || d["amount"] != 9900.0 || d["idempotency_key"] != "order-1" {
		t.Errorf("--wait: %v", d)
	}
	d = b.json(intentFlags("order-1")...)
	if d["id"] != id || d["stream"] == "" || d["stream_seq"] == nil || d["tenant_id"] != "demo" {
		t.Errorf("repeated: %v", d)
	}
	if r := b.run(intentFlags("order-1", "--bulk", "--wait")...); r.code != exitOK || !strings.Contains(r.out, "succeeded") || !strings.Contains(r.out, id) {
		t.Errorf("on the other lane: %+v", r)
	}
	if n := len(sim.Ledger().Charges); n != 1 {
		t.Errorf("%d charges for one key", n)
	}

	declined := append(intentFlags("order-2", "--wait"), "--payment-method", "pm_card_visa_chargeDeclined", "--json")
	r := b.run(declined...)
	if d := oneDocument(t, r.out); r.code != exitFailed || d["status"] != "failed" || d["failure"].(map[string]any)["code"] != "card_declined" {
		t.Errorf("declined: %+v", r)
	}
	b.fails(b.run(append(intentFlags("order-1", "--wait"), "--amount", "1")...), exitFailed, "already names another request", "amount")
	b.fails(b.run(append(intentFlags("order-3", "--wait"), "--tenant", "nobody")...), exitFailed, "dead letter dl_")
	// The tenant exists now, and the old dead letter says nothing about the new message.
	b.json("tenants", "create", "nobody")
	if r := b.run(append(intentFlags("order-3", "--wait"), "--tenant", "nobody")...); r.code != exitOK {
		t.Errorf("after the tenant was made: %+v", r)
	}
	manual := b.run(intentFlags("order-4", "--wait", "--capture-method", "manual", "--json")...)
	if manual.code != exitFailed || oneDocument(t, manual.out)["status"] != "requires_capture" {
		t.Errorf("manual: %+v", manual)
	}
	in := `{"idempotency_key":"order-5","amount":5,"currency":"JPY","payment_method":"pm_card_visa","metadata":{"a":"b"},"description":"from standard input","expires_at":"2099-01-01T00:00:00Z"}`
	if r := b.with(in, "publish", "-", "--tenant", "demo", "--wait", "--json"); r.code == exitUsage {
		t.Errorf("standard input: %+v", r)
	} else if d := oneDocument(t, r.out); d["currency"] != "jpy" || d["description"] != "from standard input" || d["expires_at"] == nil || d["metadata"].(map[string]any)["a"] != "b" {
		t.Errorf("standard input: %+v", r)
	}
	all := b.json(append(intentFlags("order-6", "--wait"), "--description", "d", "--statement-descriptor-suffix", "SHOP", "--receipt-email", "a@example.com", "--metadata", "a=b=c",
		"--metadata", "d=", "--expires-at", "2099-01-01T00:00:00Z", "--capture-method", "automatic")...)
	if all["status"] != "succeeded" || all["metadata"].(map[string]any)["a"] != "b=c" || all["description"] != "d" {
		t.Errorf("every flag: %v", all)
	}
	b.see(id)
}

// see reads payments back in every way.
func (b *bench) see(id string) {
	b.t.Helper()
	for _, args := range [][]string{{id}, {id, "--tenant", "demo"}, {"--tenant", "demo", "--key", "order-1"}} {
		d := b.json(append([]string{"payments", "show"}, args...)...)
		events, ok := d["events"].([]any)
		if d["id"] != id || !ok || len(events) == 0 || d["status"] != "succeeded" || events[len(events)-1].(map[string]any)["status"] != "succeeded" {
			b.t.Errorf("show %q: %v", args, d)
		}
		if r := b.run(append([]string{"payments", "show"}, args...)...); r.code != exitOK || !strings.Contains(r.out, "99.00 USD") || !strings.Contains(r.out, "succeeded") {
			b.t.Errorf("show %q: %+v", args, r)
		}
	}
	for _, args := range [][]string{{id, "--tenant", "other"}, {"--tenant", "other", "--key", "order-1"}, {"--tenant", "demo", "--key", "nosuch"}, {"pay_" + strings.Repeat("0", 32)}} {
		b.fails(b.run(append([]string{"payments", "show", "--json"}, args...)...), exitFailed)
	}
	b.fails(b.run("payments", "show", "order-1"), exitUsage)
	b.fails(b.run("payments", "show", card), exitUsage)

	if got := list(b.t, b.json("payments", "list", "--tenant", "demo", "--status", "failed")); len(got) != 1 || got[0].(map[string]any)["idempotency_key"] != "order-2" {
		b.t.Errorf("failed: %v", got)
	}
	if got := list(b.t, b.json("payments", "list", "--tenant", "other")); len(got) != 0 {
		b.t.Errorf("other's: %v", got)
	}
	if got := list(b.t, b.json("payments", "list", "--customer", "cus_nosuch")); len(got) != 0 {
		b.t.Errorf("nobody's: %v", got)
	}
	if got := list(b.t, b.json("payments", "list", "--key", "order-1", "--tenant", "demo")); len(got) != 1 {
		b.t.Errorf("by key: %v", got)
	}
	seen, pages, cursor := map[string]bool{}, 0, ""
	for {
		d := b.json("payments", "list", "--tenant", "demo", "--limit", "2", "--cursor", cursor)
		for _, p := range list(b.t, d) {
			seen[p.(map[string]any)["idempotency_key"].(string)] = true
		}
		pages++
		next, more := d["next_cursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	if len(seen) != 5 || pages != 3 {
		b.t.Errorf("%d payments on %d pages", len(seen), pages)
	}
	if r := b.run("payments", "list", "--limit", "1"); r.code != exitOK || !strings.HasPrefix(r.err, "more: --cursor ") || !strings.Contains(r.out, "STATUS") {
		b.t.Errorf("list: %+v", r)
	}
	b.fails(b.run("payments", "list", "--cursor", "nonsense"), exitUsage, "cursor")
}

// TestPublishWithoutServices: NATS that is away is exit code 1, and said to have got nothing; without a worker --wait ends in time and says that a
// repeat is safe; without a database nothing is published.
func TestPublishWithoutServices(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	away := withSettings(t, map[string]string{"ONCEPAY_NATS_URL": "nats://u:hunter2@127.0.0.1:1", "ONCEPAY_DATABASE_URL": b.set["ONCEPAY_DATABASE_URL"]})
	for _, more := range [][]string{nil, {"--wait"}} {
		r := away.run(intentFlags("order-1", more...)...)
		away.fails(r, exitFailed, "nothing was published", "ONCEPAY_NATS_URL: NATS cannot be reached")
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("%q", r.err)
		}
	}
	// No stream takes it: nothing was stored, and that is said.
	b.fails(b.run(intentFlags("order-1")...), exitFailed, "not stored")
	b.json("tenants", "create", "demo")
	nc, js := b.connect()
	defer nc.Close()
	b.streams(js)
	b.fails(b.run(intentFlags("order-1", "--wait", "--within", "300ms")...), exitFailed, "no outcome within 300ms", "publishing again is safe")
	before := b.messages(js)
	noDatabase := withSettings(t, map[string]string{"ONCEPAY_NATS_URL": b.set["ONCEPAY_NATS_URL"], "ONCEPAY_SUBJECT_PREFIX": b.set["ONCEPAY_SUBJECT_PREFIX"], "ONCEPAY_DATABASE_URL": "postgres://127.0.0.1:1/d"})
	noDatabase.fails(noDatabase.run(intentFlags("order-1", "--wait")...), exitFailed, "PostgreSQL cannot be reached")
	if after := b.messages(js); before != 1 || after != before {
		t.Errorf("%d messages, then %d", before, after)
	}
}

func (b *bench) connect() (*nats.Conn, jetstream.JetStream) {
	b.t.Helper()
	nc, err := nats.Connect(b.set["ONCEPAY_NATS_URL"], nats.Timeout(patience))
	if err != nil {
		b.t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	return nc, js
}

func (b *bench) streamName() string {
	return strings.ToUpper(b.set["ONCEPAY_SUBJECT_PREFIX"]) + "_INTENTS"
}

// streams makes the stream that takes intents, with nobody behind it.
func (b *bench) streams(js jetstream.JetStream) {
	b.t.Helper()
	_, err := js.CreateStream(b.t.Context(), jetstream.StreamConfig{Name: b.streamName(), Subjects: []string{b.set["ONCEPAY_SUBJECT_PREFIX"] + ".intent.*"}})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) messages(js jetstream.JetStream) uint64 {
	b.t.Helper()
	s, err := js.Stream(b.t.Context(), b.streamName())
	if err != nil {
		b.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// TestPlainMessage: what anybody can send with NATS's own command line is read back.
func TestPlainMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	b.serve()
	nc, _ := b.connect()
	defer nc.Close()
	body := `{"idempotency_key":"order-1","amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`
	if err := nc.Publish(b.set["ONCEPAY_SUBJECT_PREFIX"]+".intent.demo", []byte(body)); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		r := b.run("payments", "show", "--tenant", "demo", "--key", "order-1", "--json")
		if r.code == exitOK && oneDocument(t, r.out)["status"] == "succeeded" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", r)
		}
	}
}

// TestDeadLetters: operators find a dead letter by whatever they know, and see what was sent without their terminal obeying it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	store, err := postgres.Open(t.Context(), b.set["ONCEPAY_DATABASE_URL"], postgres.Options{PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	bury := func(d payments.DeadLetter) {
		t.Helper()
		d.Origin.Stream, d.Origin.StreamCreated, d.Origin.Subject = "PAYMENTS_INTENTS", time.Now().Add(-time.Hour), "payments.intent."+d.TenantID
		if err := store.BuryMessage(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	attack := "\x1b]0;owned\x07\x1b[2J\u202Eevil\r\n"
	binary := []byte{0xff, 0x00, 0x1b, '[', '2', 'J', 0xc3}
	id := payments.NewID("acme", "k2")
	bury(payments.DeadLetter{ID: "dl_text", TenantID: "acme", IdempotencyKey: attack, Reason: payments.ReasonInvalid, Message: "amount " + attack, Payload: []byte(`{"a":"` + attack + `"}`),
		Headers: []byte("NATS/1.0\r\nX-Evil: \x1b[31mred\r\n\r\n"), Tries: 1, Origin: payments.MessageOrigin{Sequence: 1}})
	bury(payments.DeadLetter{ID: "dl_binary", TenantID: "acme", IdempotencyKey: "k2", PaymentID: &id, Reason: payments.ReasonUndecodable, Message: "not JSON", Payload: binary, Origin: payments.MessageOrigin{Sequence: 2}})
	bury(payments.DeadLetter{ID: "dl_card", TenantID: "beta", Reason: payments.ReasonCardNumber, Message: "a card number", Payload: []byte(card), Origin: payments.MessageOrigin{Sequence: 3}})
	if err := store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string]int{
		"": 3, "--tenant acme": 2, "--tenant nobody": 0, "--reason undecodable": 1, "--key k2": 1, "--id dl_card": 1, "--id " + id.String(): 1, "--id " + id.Format(payments.KindCharge): 1,
		"--text JSON": 1, "--text evil": 1, "--text nothing": 0, "--since 1h": 3, "--until 1h": 0, "--since 2099-01-01T00:00:00Z": 0, "--state replayed": 0, "--state all": 3, "--limit 2": 2,
		"--tenant acme --text JSON --reason undecodable --since 1h": 1,
	} {
		args := append([]string{"dlq", "list"}, strings.Fields(filter)...)
		if got := list(t, b.json(args...)); len(got) != want {
			t.Errorf("%s: %d dead letters, want %d", filter, len(got), want)
		}
	}
	for _, args := range [][]string{{"dlq", "list"}, {"dlq", "show", "dl_text"}, {"dlq", "show", "dl_binary"}, {"dlq", "show", "dl_card"}} {
		r := b.run(args...)
		if r.code != exitOK || strings.ContainsAny(r.out, "\x1b\x07\r\u202e") || strings.Contains(r.out, card) || !strings.Contains(r.out, "dl_") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := b.run("dlq", "show", "dl_text"); !strings.Contains(r.out, `\u001b[2J\u202eevil`) || !strings.Contains(r.out, `X-Evil: \u001b[31mred`) {
		t.Errorf("what was sent cannot be seen: %s", r.out)
	}
	if r := b.run("dlq", "show", "dl_card"); !strings.Contains(r.out, "payload of 16 bytes not kept: SHA-256 ") {
		t.Errorf("card: %s", r.out)
	}
	d := b.json("dlq", "show", "dl_binary")
	if d["payload_base64"] != base64.StdEncoding.EncodeToString(binary) || d["reason"] != "undecodable" || d["state"] != "open" || d["stream_seq"] != 2.0 {
		t.Errorf("binary: %v", d)
	}
	if d := b.json("dlq", "show", "dl_card"); d["payload_base64"] != nil && d["payload_base64"] != "" {
		t.Errorf("card: %v", d)
	}
	b.fails(b.run("dlq", "show", "dl_nosuch", "--json"), exitFailed, "no such dead letter")
}
