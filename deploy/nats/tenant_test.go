package nats_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A moment is how long a test waits for what must not come.
const moment = 300 * time.Millisecond

// TestTenantPublishes: with a plain client, and with the library's batches, a tenant gets its PubAck from the workers' account.
func TestTenantPublishes(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for _, tenant := range []string{"demo", "globex-2"} {
		k := c.as(t, tenant)
		for subject, stream := range map[string]string{"intent": "PAYMENTS_INTENTS", "bulk": "PAYMENTS_BULK", "batch": "PAYMENTS_BULK"} {
			ack, err := k.Request("payments."+subject+"."+tenant, []byte(`{"idempotency_key":"plain"}`), patience)
			if err != nil || !strings.Contains(string(ack.Data), `"stream":"`+stream+`"`) || strings.Contains(string(ack.Data), "error") {
				t.Fatalf("%s of %s: %v, %v", subject, tenant, ack, err)
			}
		}
		publishMany(t, k.Conn, tenant, "tenant")
		k.quiet()
	}
}

// TestTenantIsConfined: nothing but its own subjects and its own inbox is there for a tenant.
func TestTenantIsConfined(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	k := c.as(t, "demo")
	for _, subject := range []string{
		"payments.intent.acme", "payments.bulk.acme", "payments.batch.acme", "payments.intent.globex-2", "payments.intent", "payments.intent.demo.x",
		"payments.event.demo.payment-succeeded", "payments.event.acme.payment-succeeded", "payments.dead.demo", "payments.dead.acme",
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.PAYMENTS_INTENTS", "$JS.API.STREAM.MSG.GET.PAYMENTS_INTENTS",
		"$JS.API.DIRECT.GET.PAYMENTS_EVENTS", "$JS.API.CONSUMER.CREATE.PAYMENTS_INTENTS.mine", "$JS.API.CONSUMER.MSG.NEXT.PAYMENTS_INTENTS.worker-intent",
		"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.PURGE.PAYMENTS_INTENTS", "$JS.API.STREAM.DELETE.PAYMENTS_INTENTS",
		"$JS.API.STREAM.MSG.DELETE.PAYMENTS_INTENTS", "$JS.ACK.PAYMENTS_INTENTS.worker-intent.1.1.1.1.0", "$KV.any.key", "$SYS.REQ.SERVER.PING", "_INBOX.x", "anything",
	} {
		if err := k.PublishRequest(subject, nats.NewInbox(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		k.refused(subject)
	}
	for _, subject := range []string{
		">", "*.>", "payments.>", "payments.intent.demo", "payments.intent.*", "payments.event.>", "payments.event.acme.>", "payments.event.*.payment-succeeded",
		"payments.dead.demo", "$JS.>", "$JS.EVENT.ADVISORY.>", "$SYS.>",
	} {
		if _, err := k.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		k.refused(subject)
	}
}

// TestTenantHearsItsOwn: outcome events reach the tenant that they are of. What goes to inboxes of the workers' account, such as messages that
// are pulled, is not in a tenant's.
func TestTenantHearsItsOwn(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	worker, demo, acme := c.as(t, "ONCEPAY"), c.as(t, "demo"), c.as(t, "acme")
	hear := func(k *client, subject string) *nats.Subscription {
		s, err := k.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		k.quiet()
		return s
	}
	own, others, inboxes := hear(demo, "payments.event.demo.>"), hear(acme, "payments.event.acme.>"), hear(acme, "_INBOX.>")
	js := worker.jetstream()
	// An interest on another node takes a moment to get around.
	err := eventually(func() error {
		if _, err := js.Publish(t.Context(), "payments.event.demo.payment-succeeded", []byte(`{"id":"1"}`)); err != nil {
			return err
		}
		m, err := own.NextMsg(time.Second)
		if err == nil && m.Subject != "payments.event.demo.payment-succeeded" {
			t.Errorf("heard on %s", m.Subject)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*nats.Subscription{"another tenant's event": others, "what was for another inbox": inboxes} {
		if m, err := s.NextMsg(moment); err == nil {
			t.Errorf("acme hears %s: %s", name, m.Subject)
		}
	}
}

// TestReplyReachesNobody: JetStream answers a publish to whatever subject the publisher names. A tenant that could name one outside its account
// would write into another tenant's stream and events, or ask JetStream's API with the server's own rights.
func TestReplyReachesNobody(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, "acme")
	worker, demo, acme := c.as(t, "ONCEPAY"), c.as(t, "demo"), c.as(t, "acme")
	js := worker.jetstream()
	heard := make(chan string, 64)
	for k, subjects := range map[*client][]string{worker: {"_INBOX.>", "payments.event.>", "payments.dead.>"}, acme: {"_INBOX.>", "payments.event.acme.>"}} {
		for _, subject := range subjects {
			if _, err := k.Subscribe(subject, func(m *nats.Msg) { heard <- m.Subject + " " + string(m.Data) }); err != nil {
				t.Fatal(err)
			}
		}
		k.quiet()
	}
	replies := []string{
		"payments.intent.acme", "payments.bulk.acme", "payments.event.acme.payment-succeeded", "payments.dead.acme", "_INBOX.somebody.1",
		"$JS.API.STREAM.PURGE.PAYMENTS_INTENTS", "$JS.API.STREAM.DELETE.PAYMENTS_BULK", "$JS.ACK.PAYMENTS_INTENTS.worker-intent.1.1.1.1.0",
	}
	for _, reply := range replies {
		if err := demo.PublishRequest("payments.intent.demo", reply, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		trace := nats.NewMsg("payments.intent.demo")
		trace.Header.Set("Nats-Trace-Dest", reply)
		if err := demo.PublishMsg(trace); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := demo.Request("payments.intent.demo", []byte("the last"), patience); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-heard:
		t.Errorf("an answer was heard outside the tenant's account: %s", m)
	case <-time.After(moment):
	}
	for stream, want := range map[string]func(n uint64) bool{
		"PAYMENTS_INTENTS": func(n uint64) bool { return n > 0 }, // its own are there, and not purged
		"PAYMENTS_BULK":    func(n uint64) bool { return n == 0 },
		"PAYMENTS_EVENTS":  func(n uint64) bool { return n == 0 },
		"PAYMENTS_DEAD":    func(n uint64) bool { return n == 0 },
	} {
		if n := stored(t, js, stream); !want(n) {
			t.Errorf("%s took %d messages", stream, n)
		}
	}
	s, err := js.Stream(t.Context(), "PAYMENTS_INTENTS")
	if err != nil {
		t.Fatal(err)
	}
	for sequence := uint64(1); sequence <= s.CachedInfo().State.LastSeq; sequence++ {
		if m, err := s.GetMsg(t.Context(), sequence); err != nil || m.Subject != "payments.intent.demo" {
			t.Errorf("message %d of the intents: %v, %v", sequence, m, err)
		}
	}
}

// TestNobody: without a name, with a wrong password or with a tenant's name alone nobody gets in.
func TestNobody(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for name, option := range map[string]nats.Option{
		"no user": func(*nats.Options) error { return nil }, "no password": nats.UserInfo("demo", ""), "a wrong password": nats.UserInfo("demo", "demo"),
		"a token": nats.Token("demo"), "the user of the routes": nats.UserInfo("ROUTE", ""),
	} {
		nc, err := nats.Connect("nats://"+c.client[0], option)
		if err == nil {
			nc.Close()
			t.Errorf("%s gets in", name)
		}
	}
}

// TestAddTenant: a block is copied, the script makes its password, the servers load it, and nobody who is connected notices.
func TestAddTenant(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	worker, demo := c.as(t, "ONCEPAY"), c.as(t, "demo")
	if err := c.addTenant("initech_3"); err != nil {
		t.Fatal(err)
	}
	out, err := c.prepare()
	if err != nil || !strings.Contains(out, "NATS password of initech_3") || strings.Contains(out, "demo") {
		t.Fatalf("prepare says %q, %v", out, err)
	}
	// Twice: by the first, this version of the server makes the account, and only by the second the subscriptions of its imports.
	if err := errors.Join(c.reload(), c.reload()); err != nil {
		t.Fatal(err)
	}
	added := c.as(t, "initech_3")
	publishMany(t, added.Conn, "initech_3", "added")
	added.quiet()
	publishMany(t, demo.Conn, "demo", "beside")
	publishMany(t, worker.Conn, "demo", "beside-too")
	worker.undisturbed("the worker")
	demo.undisturbed("the tenant demo")
}

// TestRemoveTenant: a tenant whose block is deleted is out, and nobody else notices.
func TestRemoveTenant(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, "acme")
	worker, demo, acme := c.as(t, "ONCEPAY"), c.as(t, "demo"), c.as(t, "acme")
	shipped, err := os.ReadFile("conf/tenants.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "conf", "tenants.conf"), shipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.reload(), c.reload()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-acme.dropped:
	case <-time.After(patience):
		t.Error("a tenant without a block stays connected")
	}
	publishMany(t, demo.Conn, "demo", "beside")
	worker.undisturbed("the worker")
	demo.undisturbed("the tenant demo")
}

// TestForgottenName: a copied block that still names the other tenant somewhere is refused, all of it.
func TestForgottenName(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile("conf/tenants.conf")
	if err != nil {
		t.Fatal(err)
	}
	copied := strings.ReplaceAll(string(block.Find(shipped)), "demo", "acme")
	if load(t, string(shipped)+copied) != nil {
		t.Fatalf("the right copy is refused: %v", load(t, string(shipped)+copied))
	}
	for _, right := range []string{`subject: "payments.intent.acme"`, `subject: "payments.bulk.acme"`, `subject: "payments.batch.acme"`, `subject: "payments.event.acme.>"`, "acme {", "user: acme"} {
		if strings.Count(copied, right) != 1 {
			t.Fatalf("the block has %s %d times", right, strings.Count(copied, right))
		}
		wrong := strings.Replace(copied, right, strings.Replace(right, "acme", "demo", 1), 1)
		if err := load(t, string(shipped)+wrong); err == nil {
			t.Errorf("a block that forgets %s is loaded", right)
		}
	}
}

// load says what a server says of tenants.conf.
func load(t *testing.T, tenants string) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("conf")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ROUTE", "SYSTEM", "ONCEPAY", "demo", "acme"} {
		if err := os.WriteFile(filepath.Join(dir, "passwords", name+".conf"), []byte("password: secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"tenants.conf": tenants, "one.conf": fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q }\ninclude \"accounts.conf\"\n", t.TempDir())}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := server.ProcessConfigFile(filepath.Join(dir, "one.conf"))
	if err != nil {
		return err
	}
	options.NoSigs, options.NoLog = true, true
	_, err = server.NewServer(options)
	return err
}

// TestRotate: a new password counts once it is loaded; whoever has the old one is out, and all others stay.
func TestRotate(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, "acme")
	demo, acme := c.as(t, "demo"), c.as(t, "acme")
	old, err := c.prepare("show", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.prepare("rotate", "demo"); err != nil {
		t.Fatal(err)
	}
	if err := c.reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-demo.dropped:
	case <-time.After(patience):
		t.Error("a connection under the old password lives on")
	}
	if nc, err := connect(c.client[:1], nats.UserInfo("demo", old), nats.MaxReconnects(0)); err == nil {
		nc.Close()
		t.Error("the old password still counts")
	}
	publishMany(t, c.as(t, "demo").Conn, "demo", "rotated")
	select {
	case <-acme.dropped:
		t.Error("another tenant was disconnected")
	default:
		publishMany(t, acme.Conn, "acme", "beside")
	}
}

// TestOneNodeDown: with one node of three gone, intents are stored as before.
func TestOneNodeDown(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	demo := c.as(t, "demo")
	publishMany(t, demo.Conn, "demo", "three")
	if err := c.stop(0); err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes { // each elects its leader
		var ack *nats.Msg
		err := eventually(func() (err error) {
			ack, err = demo.Request(l.subject, []byte("{}"), 2*time.Second)
			return err
		})
		if err != nil || strings.Contains(string(ack.Data), "error") {
			t.Fatalf("%s: %v, %v", l.stream, ack, err)
		}
	}
	publishMany(t, demo.Conn, "demo", "two")
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	if err := c.healthy(0); err != nil {
		t.Errorf("the node does not catch up: %v", err)
	}
}
