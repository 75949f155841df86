package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// harmless are the only subjects that an examination may publish to; inboxes are for answers, and the advisory is the server's own note of a question.
var harmless = regexp.MustCompile(`^(_INBOX\..*|\$JS\.API\.INFO|\$JS\.API\.STREAM\.INFO\.[^.]+|\$JS\.API\.STREAM\.MSG\.GET\.KV_[^.]+|\$JS\.API\.CONSUMER\.INFO\.[^.]+\.[^.]+|\$SYS\.REQ\.USER\.INFO|\$JS\.EVENT\.ADVISORY\.API)$`)

// testChangesNothing listens to everything that is said while an installation is examined that has work in hand.
func testChangesNothing(t *testing.T, s *services) {
	w := s.bare(t)
	w.use(natsServer(t, server.Options{JetStream: true, SyncAlways: true, HTTPHost: "127.0.0.1", HTTPPort: -1}), "", "")
	w.provision()
	sim := w.simulate(stripesim.Options{})
	w.sql(payment("due", "received", "-1 second"), `DELETE FROM installation`)
	nc, js := w.jetstream()
	if _, err := js.Publish(t.Context(), w.values["ONCEPAY_SUBJECT_PREFIX"]+".intent.acme", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	before := w.state(js)
	var mu sync.Mutex
	var said []string
	wire, err := nc.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, m.Subject)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	w.expect(nil)
	if err := nc.Flush(); err != nil { // whatever the server had taken before is delivered
		t.Fatal(err)
	}
	if err := wire.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, subject := range said {
		if !harmless.MatchString(subject) {
			t.Errorf("published to %s", subject)
		}
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "$JS.API.STREAM.INFO.") }) {
		t.Errorf("the wire was not heard: %q", said)
	}
	if after := w.state(js); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
	for _, r := range sim.Ledger().Requests {
		if r.Method != http.MethodGet {
			t.Errorf("Stripe was sent %s %s", r.Method, r.Path)
		}
	}
}

// state is everything that an examination could change, as text: all rows of all tables, and streams and consumers.
func (w *world) state(js jetstream.JetStream) string {
	w.t.Helper()
	var b strings.Builder
	conn, err := pgx.Connect(w.t.Context(), w.values["ONCEPAY_DATABASE_URL"])
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.t.Context()))
	rows, err := conn.Query(w.t.Context(), `SELECT relname FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace ORDER BY 1`)
	if err != nil {
		w.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		var text string
		if err := conn.QueryRow(w.t.Context(), `SELECT coalesce(string_agg(to_json(x)::text, ';' ORDER BY to_json(x)::text), '') FROM (SELECT * FROM `+name+`) x`).Scan(&text); err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintln(&b, name, text)
	}
	streams := js.ListStreams(w.t.Context())
	for s := range streams.Info() {
		config, err := json.Marshal(s.Config)
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %d %d\n", config, s.State.Msgs, s.State.LastSeq, s.State.Consumers)
		stream, err := js.Stream(w.t.Context(), s.Config.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		consumers := stream.ListConsumers(w.t.Context())
		for c := range consumers.Info() {
			fmt.Fprintln(&b, c.Name, c.Config.AckWait, c.Delivered.Consumer, c.NumAckPending, c.NumPending, c.NumWaiting)
		}
		if err := consumers.Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := streams.Err(); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// testExactRights runs a worker and a relay with the rights that an examination asks for and no others: were one missing from its lists, they
// would not get through a payment, a dead letter and a message that is erased.
func testExactRights(t *testing.T, s *services) {
	w := s.bare(t)
	sim := w.simulate(stripesim.Options{})
	role := devstacktest.Prefix(t)
	w.sql(`INSERT INTO tenants (id, created_at) VALUES ('acme', now())`, `CREATE ROLE `+role+` LOGIN PASSWORD 'exactly1'`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	for table, rights := range privileges {
		w.sql(`GRANT ` + rights + ` ON ` + table + ` TO ` + role)
	}
	needs := rightsOf(w.settings())
	w.useLimited(&server.Permissions{
		Publish: &server.SubjectPermission{Allow: slices.Concat(needs.read, needs.write, needs.ack, []string{subjectInfo, subjectUserInfo,
			"$JS.API.CONSUMER.DELETE." + w.streamName() + ".*"})}, // a rewind's readers end by themselves without it
		Subscribe: &server.SubjectPermission{Allow: []string{inbox}},
	})
	admin := &world{t: t, values: map[string]string{"ONCEPAY_NATS_URL": strings.Replace(w.values["ONCEPAY_NATS_URL"], "worker", "admin", 1)}}
	nc, js := admin.jetstream()
	prefix := w.values["ONCEPAY_SUBJECT_PREFIX"]
	events, err := nc.SubscribeSync(prefix + ".*.acme.>")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := nc.SubscribeSync(prefix + ".dead.*")
	if err != nil {
		t.Fatal(err)
	}
	w.values["ONCEPAY_DATABASE_URL"] = as(t, w.values["ONCEPAY_DATABASE_URL"], role, "exactly1")
	w.expect(nil)

	w.values["ONCEPAY_STRIPE_TIMEOUT"], w.values["ONCEPAY_LEASE"] = "8s", "10s" // a rewind begins by waiting longer than a lease
	log := w.serve()
	const card = "4242424242424242"
	for _, body := range []string{
		`{"idempotency_key":"order-1","amount":9900,"currency":"usd","payment_method":"pm_card_visa"}`, `not JSON`,
		`{"idempotency_key":"order-2","amount":9900,"currency":"usd","payment_method":"` + card + `"}`,
	} {
		if _, err := js.Publish(t.Context(), prefix+".intent.acme", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := events.NextMsg(patience); err != nil || !strings.HasSuffix(m.Subject, ".payment-succeeded") {
		t.Fatalf("no outcome: %v, %v\n%s", m, err, log)
	}
	for range 2 {
		if _, err := dead.NextMsg(patience); err != nil {
			t.Fatalf("no dead letter: %v\n%s", err, log)
		}
	}
	w.awaitAcked(js, 3)
	w.replayAndRewind(js)
	if text := log.String(); strings.Contains(strings.ToLower(text), "violation") || strings.Contains(text, "permission denied") || strings.Contains(text, card) {
		t.Errorf("a right is missing:\n%s", text)
	}
	if n := len(sim.Ledger().Charges); n != 2 {
		t.Errorf("%d charges", n)
	}
	w.expect(map[string]expectation{"attention": is(OK, "dead letters: 2 open")})
}

// log is what a process wrote.
type log struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve runs every role until the test ends.
func (w *world) serve() *log {
	w.t.Helper()
	w.values["ONCEPAY_HTTP_ADDR"] = "off"
	w.values["ONCEPAY_CONCURRENCY"] = "16"
	settings := w.settings()
	l := &log{}
	ctx, stop := context.WithCancel(context.Background())
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- app.Serve(ctx, settings, app.NewLog(l, "info"), app.ServeOptions{Ready: func(string, string) { close(ready) }})
	}()
	w.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			w.t.Errorf("Serve: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-served:
		served <- err
		w.t.Fatalf("Serve: %v", err)
	case <-time.After(patience):
		w.t.Fatalf("the process does not get ready:\n%s", l)
	}
	return l
}

// awaitAcked polls the interactive lane's durable until its ack floor is at the sequence, which has no signal of its own.
func (w *world) awaitAcked(js jetstream.JetStream, floor uint64) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		c, err := js.Consumer(w.t.Context(), w.streamName(), schema.ConsumerIntent)
		if err != nil {
			w.t.Fatal(err)
		}
		if c.CachedInfo().AckFloor.Stream >= floor {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not acked: %+v", c.CachedInfo().AckFloor)
		}
	}
}
