package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// services are what all worlds share: a PostgreSQL that syncs, with a database that is migrated and bound.
type services struct {
	postgres *devstack.Postgres
	template string
}

// startServices starts them for a test and its subtests, and ends them with it.
func startServices(t *testing.T) *services {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pg, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Settings: map[string]string{"shared_buffers": "32MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &services{postgres: pg, template: "template_" + devstacktest.Prefix(t)}
	if err := pg.CreateDatabase(ctx, s.template); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, pg.DSN(s.template)); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(ctx, pg.DSN(s.template), postgres.Options{PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PinNamespace(ctx); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// world is one installation in good health; a test spoils it.
type world struct {
	t        *testing.T
	values   map[string]string
	clock    clock
	timeout  time.Duration
	services *services
}

// clock is this machine's, wrong by so much.
type clock time.Duration

func (c clock) Now() time.Time { return time.Now().Add(time.Duration(c)) }

// world makes an installation on the shared servers, with a database, streams and a simulator of its own.
func (s *services) world(t *testing.T) *world {
	t.Helper()
	w := s.bare(t)
	w.provision()
	return w
}

// bare is a world without streams.
func (s *services) bare(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, timeout: patience, services: s, values: map[string]string{
		"ONCEPAY_DATABASE_URL": s.database(t, s.template), "ONCEPAY_NATS_URL": devstacktest.NATS(t).URL(), "ONCEPAY_NATS_MONITOR_URL": devstacktest.NATS(t).MonitorURL(),
		"ONCEPAY_SUBJECT_PREFIX": devstacktest.Prefix(t), "ONCEPAY_STREAM_MAX_BYTES": "16777216", "ONCEPAY_STRIPE_KEY": "sk_test_simulated",
	}}
	w.simulate(stripesim.Options{})
	return w
}

// database makes one for the test, a copy of template.
func (s *services) database(t *testing.T, template string) string {
	t.Helper()
	name := devstacktest.Prefix(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.postgres.CopyDatabase(ctx, name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.postgres.DropDatabase(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return s.postgres.DSN(name)
}

// simulate starts a Stripe of the world's own.
func (w *world) simulate(o stripesim.Options) *stripesim.Server {
	w.t.Helper()
	sim, err := stripesim.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	stripe := httptest.NewServer(sim)
	w.t.Cleanup(func() {
		_ = sim.Close()
		stripe.CloseClientConnections()
		stripe.Close()
	})
	w.values["ONCEPAY_STRIPE_URL"] = stripe.URL
	return sim
}

func (w *world) settings() app.Settings {
	w.t.Helper()
	s, err := app.Load(func(name string) (string, bool) { v, ok := w.values[name]; return v, ok })
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// provision makes the streams as the settings of the moment want them.
func (w *world) provision() {
	w.t.Helper()
	_, js := w.jetstream()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := app.EnsureStreams(ctx, js, w.settings(), slog.New(slog.DiscardHandler)); err != nil {
		w.t.Fatal(err)
	}
}

// jetstream connects as the settings say.
func (w *world) jetstream() (*nats.Conn, jetstream.JetStream) {
	w.t.Helper()
	nc, js, err := app.ConnectNATSOnce(w.settings(), "test")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc, js
}

// sql runs statements in the world's database.
func (w *world) sql(statements ...string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.values["ONCEPAY_DATABASE_URL"])
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.t.Context()))
	for _, s := range statements {
		if _, err := conn.Exec(w.t.Context(), s); err != nil {
			w.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (w *world) examine() Report {
	w.t.Helper()
	return Run(w.t.Context(), Options{Settings: w.settings(), Timeout: w.timeout, Clock: w.clock})
}

// expectation is how a check should end, with texts that stand in what was found or in the remedy.
type expectation struct {
	result Result
	says   []string
}

func is(r Result, says ...string) expectation { return expectation{r, says} }

// expect examines the world. Checks that are not in want must be ok.
func (w *world) expect(want map[string]expectation) Report {
	w.t.Helper()
	r := w.examine()
	w.judge(r, want)
	return r
}

func (w *world) judge(r Report, want map[string]expectation) {
	w.t.Helper()
	if len(r.Checks) != len(table) {
		w.t.Fatalf("%d checks, want %d", len(r.Checks), len(table))
	}
	wantOK := true
	for i, c := range r.Checks {
		e, listed := want[c.Name]
		if !listed {
			e = is(OK)
		}
		wantOK = wantOK && e.result != Failed
		if c.Name != table[i].name || c.Result != e.result {
			w.t.Errorf("%s is %s, want %s: %s -> %s", c.Name, c.Result, e.result, c.Found, c.Remedy)
		}
		for _, text := range e.says {
			if !strings.Contains(c.Found+" -> "+c.Remedy, text) {
				w.t.Errorf("%s does not say %q: %s -> %s", c.Name, text, c.Found, c.Remedy)
			}
		}
		if c.Found == "" || (c.Remedy == "") != (c.Result == OK) || strings.ContainsAny(c.Found+c.Remedy, "\n\r\t") {
			w.t.Errorf("%s is not one line found and, unless ok, one line of remedy: %+v", c.Name, c)
		}
	}
	if r.OK != wantOK {
		w.t.Errorf("the report's ok is %t, want %t", r.OK, wantOK)
	}
	for name := range want {
		if !slices.ContainsFunc(table, func(c check) bool { return c.name == name }) {
			w.t.Fatalf("no such check: %s", name)
		}
	}
}

// unchecked adds checks that are left out since cause failed.
func unchecked(want map[string]expectation, cause string, names ...string) map[string]expectation {
	want = maps.Clone(want)
	for _, name := range names {
		want[name] = is(NotChecked, "because "+cause+" failed", "mend "+cause+" first")
	}
	return want
}

// What needs a service, in one way or another.
var (
	ofSchema    = []string{"postgres_permissions", "namespace", "tickets", "due", "outbox", "unpublished", "attention", "review", "pauses", "replays", "mark", "stripe_tenants"}
	ofPostgres  = append([]string{"postgres_encoding", "postgres_durability", "postgres_standby", "postgres_connections", "stripe_rate", "postgres_vacuum", "schema", "clock_postgres"}, ofSchema...)
	ofStreams   = []string{"replicas", "stream_space"}
	ofJetStream = append([]string{"mark", "streams", "consumers", "consumer_lag"}, ofStreams...)
	ofNATS      = append([]string{"nats_versions", "nats_sync", "nats_permissions", "jetstream", "clock_nats"}, ofJetStream...)
)

// closedPort is an address where nobody listens: not one that was free a moment ago, which another process may have by now.
const closedPort = "127.0.0.1:1"

// silentPort is an address where everybody is let in and nobody is answered.
func silentPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// natsServer starts a server for one test, with users, policies and clusters that the shared one does not have.
func natsServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.DisableJetStreamBanner = "127.0.0.1", server.RANDOM_PORT, true, true, true
	if o.JetStream {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

// use lets the world use the server, as a user unless that is "".
func (w *world) use(s *server.Server, user, password string) {
	w.t.Helper()
	u, err := url.Parse(s.ClientURL())
	if err != nil {
		w.t.Fatal(err)
	}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	w.values["ONCEPAY_NATS_URL"] = u.String()
	w.values["ONCEPAY_NATS_MONITOR_URL"] = ""
	if at := s.MonitorAddr(); at != nil {
		w.values["ONCEPAY_NATS_MONITOR_URL"] = fmt.Sprintf("http://%s", at)
	}
}
