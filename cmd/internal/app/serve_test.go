package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until polls a real service until it does what it should.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// world is everything that a serving process needs, of one test.
type world struct {
	t      *testing.T
	values map[string]string
	log    syncBuffer
	dsn    string
}

func simulator(t *testing.T, o stripesim.Options) (url string, sim *stripesim.Server) {
	t.Helper()
	sim, err := stripesim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		_ = sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, sim
}

func newWorld(t *testing.T, sim string) *world {
	dsn := devstacktest.Database(t, migrations.Up)
	return &world{t: t, dsn: dsn, values: map[string]string{
		"ONCEPAY_DATABASE_URL": dsn, "ONCEPAY_NATS_URL": devstacktest.NATS(t).URL(), "ONCEPAY_SUBJECT_PREFIX": devstacktest.Prefix(t),
		"ONCEPAY_STREAM_MAX_BYTES": "16777216", "ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_STRIPE_URL": sim, "ONCEPAY_HTTP_ADDR": "127.0.0.1:0",
		"ONCEPAY_ADMIN_ADDR": "127.0.0.1:0", "ONCEPAY_CONCURRENCY": "16",
		"ONCEPAY_STRIPE_TIMEOUT": "60s", "ONCEPAY_LEASE": "90s", "ONCEPAY_DRAIN": "2m", // no call ends for want of time
	}}
}

func (w *world) settings() Settings {
	w.t.Helper()
	s, err := Load(given(w.values))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// process is a serving process under test.
type process struct {
	stop        context.CancelFunc
	served      chan error
	ready       chan struct{}
	http, admin string // once ready is closed
}

func (w *world) start() *process {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{stop: stop, served: make(chan error, 1), ready: make(chan struct{})}
	s := w.settings()
	go func() {
		p.served <- Serve(ctx, s, NewLog(&w.log, "info"), ServeOptions{Ready: func(http, admin string) {
			p.http, p.admin = http, admin
			close(p.ready)
		}})
	}()
	w.t.Cleanup(stop)
	return p
}

func (p *process) waitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.ready:
	case err := <-p.served:
		t.Fatalf("ended while it started: %v", err)
	case <-time.After(patience):
		t.Fatal("does not get ready")
	}
}

func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.served:
		return err
	case <-time.After(patience):
		t.Fatal("does not end")
		return nil
	}
}

// get reads a path; status 0 says that nobody answers.
func get(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	response, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(data)
}

func (w *world) store() *postgres.Store {
	w.t.Helper()
	store, err := postgres.Open(w.t.Context(), w.dsn, postgres.Options{PoolSize: 2})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

// publish sends the smallest message that anybody can send.
func (w *world) publish(key string) {
	w.t.Helper()
	nc, err := nats.Connect(w.values["ONCEPAY_NATS_URL"], nats.Timeout(patience))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	body := `{"idempotency_key":"` + key + `","amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`
	if _, err := js.Publish(w.t.Context(), w.values["ONCEPAY_SUBJECT_PREFIX"]+".intent.demo", []byte(body)); err != nil {
		w.t.Fatal(err)
	}
}

func status(t *testing.T, store *postgres.Store, key string) payments.Status {
	t.Helper()
	p, err := store.FindByKey(t.Context(), "demo", key)
	if payments.ErrorCode(err) == payments.CodeNotFound {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// TestServe goes the whole way: probes, a payment, and a drain that first says so and records the charge that Stripe is still answering.
func TestServe(t *testing.T) {
	t.Parallel()
	slow, charged := make(chan struct{}), make(chan struct{})
	var sim *stripesim.Server
	url, sim := simulator(t, stripesim.Options{OnCommit: func(c stripesim.Commit) {
		if c.Charged && len(sim.Ledger().Charges) == 2 {
			close(charged)
			<-slow
		}
	}})
	w := newWorld(t, url)
	store := w.store()
	if _, err := store.CreateTenant(t.Context(), postgres.Tenant{ID: "demo"}); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	p.waitReady(t)
	for _, addr := range []string{p.http, p.admin} {
		if code, body := get(t, addr, "/healthz"); code != 200 || !strings.Contains(body, `"status":"ok"`) {
			t.Errorf("/healthz: %d %s", code, body)
		}
		until(t, "it is ready, and says of what", func() bool {
			code, body := get(t, addr, "/readyz")
			var report map[string]string
			return json.Unmarshal([]byte(body), &report) == nil && code == 200 && report["postgres"] == "ok" && report["nats"] == "ok" && report["status"] == "ok"
		})
	}
	w.publish("order-1")
	until(t, "order-1 succeeded", func() bool { return status(t, store, "order-1") == payments.StatusSucceeded })
	until(t, "the metrics tell", func() bool {
		_, body := get(t, p.http, "/metrics")
		return strings.Contains(body, `oncepay_settlements_total{lane="interactive",status="succeeded"} 1`) && strings.Contains(body, "oncepay_outbox_depth 0") &&
			strings.Contains(body, "oncepay_outbox_sent_total 1") && strings.Contains(body, "\noncepay_stripe_rate 20\n")
	})
	if got := w.workers(); !slices.Equal(got, []float64{20}) {
		t.Errorf("connected are workers of the rates %v", got)
	}

	w.publish("order-2")
	<-charged
	p.stop()
	until(t, "the drain can be seen", func() bool {
		code, body := get(t, p.admin, "/readyz")
		return code == 503 && strings.Contains(body, `"stopping"`)
	})
	if code, _ := get(t, p.admin, "/healthz"); code != 200 {
		t.Errorf("/healthz while draining: %d", code)
	}
	until(t, "the front door closes", func() bool { code, _ := get(t, p.http, "/healthz"); return code == 0 })
	select {
	case err := <-p.served:
		t.Fatalf("ended before the charge was recorded: %v", err)
	default:
	}
	close(slow)
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := status(t, store, "order-2"); got != payments.StatusSucceeded {
		t.Errorf("order-2 is %s after the drain", got)
	}
	if code, _ := get(t, p.admin, "/healthz"); code != 0 {
		t.Errorf("the operators' door is still open: %d", code)
	}
	if n := len(sim.Ledger().Charges); n != 2 {
		t.Errorf("%d charges", n)
	}
}

// TestServeOtherNamespace: a process that was given another namespace, or forgot it, would look for payments in doubt in vain and charge them
// again. It does not start, and names the setting.
func TestServeOtherNamespace(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{})
	w := newWorld(t, sim)
	w.values["ONCEPAY_NAMESPACE"] = "prod"
	p := w.start()
	p.waitReady(t)
	delete(w.values, "ONCEPAY_NAMESPACE")
	err := w.start().wait(t)
	var usage *UsageError
	if !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, "ONCEPAY_NAMESPACE: ") || !strings.Contains(usage.Text, `"prod"`) {
		t.Errorf("%v", err)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	w.values["ONCEPAY_NAMESPACE"] = "prod"
	w.start().waitReady(t)
}

// TestServeTakenPort: one line that names the setting, and nothing was started or asked.
func TestServeTakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, name := range []string{"ONCEPAY_HTTP_ADDR", "ONCEPAY_ADMIN_ADDR"} {
		w := &world{t: t, values: map[string]string{
			"ONCEPAY_DATABASE_URL": "postgres://127.0.0.1:1/none", "ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_HTTP_ADDR": "127.0.0.1:0", name: taken.Addr().String(),
		}}
		err := w.start().wait(t)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, name+": ") || !strings.Contains(usage.Text, "address already in use") || w.log.String() != "" {
			t.Errorf("%s: %v; log %q", name, err, w.log.String())
		}
	}
}

// TestServeWaits: what is away is waited for, with a line in the log for each, while the probes say that the process lives and is not ready.
func TestServeWaits(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{})
	w := newWorld(t, sim)
	database, broker, gateway := devstacktest.NewProxy(t, w.dsn), devstacktest.NewProxy(t, w.values["ONCEPAY_NATS_URL"]), devstacktest.NewProxy(t, sim)
	w.values["ONCEPAY_DATABASE_URL"] = devstacktest.Via(t, w.dsn, database.Addr())
	w.values["ONCEPAY_NATS_URL"], w.values["ONCEPAY_STRIPE_URL"] = "nats://"+broker.Addr(), "http://"+gateway.Addr()
	front := freeAddr(t)
	w.values["ONCEPAY_HTTP_ADDR"], w.values["ONCEPAY_ROLES"] = front, "worker,relay"
	for _, p := range []*devstacktest.Proxy{database, broker, gateway} {
		p.Cut()
	}
	p := w.start()
	for _, step := range []struct {
		what string
		back *devstacktest.Proxy
	}{{"PostgreSQL", database}, {"NATS", broker}, {"Stripe", gateway}} {
		until(t, step.what+" is missed", func() bool { return strings.Contains(w.log.String(), step.what+" is not reachable yet") })
		if code, body := get(t, front, "/readyz"); code != 503 || !strings.Contains(body, `"starting"`) {
			t.Errorf("/readyz without %s: %d %s", step.what, code, body)
		}
		if code, _ := get(t, front, "/healthz"); code != 200 {
			t.Errorf("/healthz without %s: %d", step.what, code)
		}
		step.back.Heal()
	}
	p.waitReady(t)
	until(t, "it is ready", func() bool { code, _ := get(t, front, "/readyz"); return code == 200 })
	broker.Cut()
	until(t, "a broker that is away is seen", func() bool {
		code, body := get(t, front, "/readyz")
		return code == 503 && strings.Contains(body, `"nats":"unavailable"`)
	})
	database.Cut()
	until(t, "a database that is away is seen", func() bool {
		code, body := get(t, front, "/readyz")
		return code == 503 && strings.Contains(body, `"postgres":"unavailable"`)
	})
	if code, _ := get(t, front, "/healthz"); code != 200 {
		t.Errorf("/healthz while all is away: %d", code)
	}
	broker.Heal()
	database.Heal()
	until(t, "all is back", func() bool { code, _ := get(t, front, "/readyz"); return code == 200 })
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeStopsWhileItWaits: a process that is told to stop before it could start ends at once and without complaint.
func TestServeStopsWhileItWaits(t *testing.T) {
	t.Parallel()
	w := &world{t: t, values: map[string]string{"ONCEPAY_DATABASE_URL": "postgres://127.0.0.1:1/none", "ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_HTTP_ADDR": "off"}}
	p := w.start()
	until(t, "it waits", func() bool { return strings.Contains(w.log.String(), "PostgreSQL is not reachable yet") })
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

// answering is a server that reads something and says one thing to everybody.
func answering(t *testing.T, speak func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			open.Go(func() { defer c.Close(); speak(c) })
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return l.Addr().String()
}

// refusingPostgres answers every start-up message with an error.
func refusingPostgres(t *testing.T, code, message string) (dsn string) {
	addr := answering(t, func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1024)); err != nil {
			return
		}
		fields := "SFATAL\x00VFATAL\x00C" + code + "\x00M" + message + "\x00\x00"
		_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(fields) + 4)}, fields...))
	})
	return "postgres://oncepay:hunter2@" + addr + "/oncepay?sslmode=disable"
}

// refusingNATS refuses every client.
func refusingNATS(t *testing.T) (url string) {
	return "nats://user:hunter2@" + answering(t, func(c net.Conn) {
		_, _ = io.WriteString(c, `INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"auth_required":true,"max_payload":1048576}`+"\r\n")
		if _, err := c.Read(make([]byte, 1024)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "-ERR 'Authorization Violation'\r\n")
	})
}

// plainNATS is a server without JetStream.
func plainNATS(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	return s.ClientURL()
}

// TestServeRefused: what is refused by name will not mend itself; it is a mistake in the settings, in one line without the secret.
func TestServeRefused(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_theright"}}})
	unknown := func(w *world) string {
		u, err := url.Parse(w.dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/nosuchdatabase"
		return u.String()
	}
	for _, c := range []struct {
		what, want string
		change     func(*world)
	}{
		{"a wrong password", "ONCEPAY_DATABASE_URL: PostgreSQL refuses: password authentication failed", func(w *world) {
			w.values["ONCEPAY_DATABASE_URL"] = refusingPostgres(t, "28P01", `password authentication failed for user "oncepay"`)
		}},
		{"an unknown database", `ONCEPAY_DATABASE_URL: PostgreSQL refuses: database "nosuchdatabase" does not exist`, func(w *world) { w.values["ONCEPAY_DATABASE_URL"] = unknown(w) }},
		{"NATS credentials", "ONCEPAY_NATS_URL: NATS cannot be used: nats: Authorization Violation", func(w *world) { w.values["ONCEPAY_NATS_URL"] = refusingNATS(t) }},
		{"a NATS credentials file", "ONCEPAY_NATS_CREDS: the file cannot be read: no such file", func(w *world) { w.values["ONCEPAY_NATS_CREDS"] = "/nowhere/nats.creds" }},
		{"a wrong Stripe key", "ONCEPAY_STRIPE_KEY: was refused by Stripe (401)", func(w *world) { w.values["ONCEPAY_STRIPE_KEY"] = "sk_test_hunter2" }},
		{"another account", "ONCEPAY_STRIPE_ACCOUNT: is acct_other", func(w *world) {
			w.values["ONCEPAY_STRIPE_KEY"], w.values["ONCEPAY_STRIPE_ACCOUNT"] = "sk_test_theright", "acct_other"
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sim)
			c.change(w)
			err := w.start().wait(t)
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, c.want) || strings.Contains(usage.Text, "\n") || strings.Contains(usage.Text+w.log.String(), "hunter2") {
				t.Errorf("%v, want %q; log %s", err, c.want, w.log.String())
			}
		})
	}
}

// TestServeStartingDatabase: PostgreSQL that says it is starting up is waited for, like one that is away.
func TestServeStartingDatabase(t *testing.T) {
	t.Parallel()
	w := &world{t: t, values: map[string]string{
		"ONCEPAY_DATABASE_URL": refusingPostgres(t, "57P03", "the database system is starting up"), "ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_HTTP_ADDR": "off",
	}}
	p := w.start()
	until(t, "it waits", func() bool { return strings.Count(w.log.String(), "PostgreSQL is not reachable yet") >= 2 })
	if strings.Contains(w.log.String(), "hunter2") {
		t.Errorf("log: %s", w.log.String())
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeRelayOnly: a process that charges nobody needs no Stripe.
func TestServeRelayOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "http://127.0.0.1:1")
	w.values["ONCEPAY_ROLES"], w.values["ONCEPAY_STRIPE_KEY"], w.values["ONCEPAY_ADMIN_ADDR"] = "relay", "", "off"
	p := w.start()
	p.waitReady(t)
	if p.admin != "" {
		t.Errorf("admin %q", p.admin)
	}
	until(t, "it is ready", func() bool { code, _ := get(t, p.http, "/readyz"); return code == 200 })
	if got := w.workers(); len(got) != 0 {
		t.Errorf("a relay is taken for a worker: %v", got)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeWithoutJetStream: a server without JetStream looks like one that is still starting it; the log says at once what is missing.
func TestServeWithoutJetStream(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{})
	w := newWorld(t, sim)
	w.values["ONCEPAY_NATS_URL"] = plainNATS(t)
	p := w.start()
	until(t, "it says what is missing", func() bool {
		return strings.Contains(w.log.String(), "JetStream is not reachable yet") && strings.Contains(w.log.String(), "is it enabled on the servers of ONCEPAY_NATS_URL")
	})
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
