package doctor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestFaults spoils one thing of an installation in good health; that check fails, says the remedy, and all others are as they were.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for name, test := range map[string]func(*testing.T, *services){
		"healthy": testHealthy, "not migrated": testNotMigrated, "newer schema": testNewerSchema, "other namespace": testOtherNamespace,
		"tickets": testTickets, "rates": testRates, "due": testDue, "outbox": testOutbox, "unpublished": testUnpublished, "attention": testAttention, "review": testReview, "pauses": testPauses, "replays": testReplays, "mark": testMark, "privileges": testPrivileges, "password": testPassword,
		"PostgreSQL away": testPostgresAway, "PostgreSQL silent": testPostgresSilent, "locked": testLocked, "no fsync": testNoFsync, "a standby": testReadOnly,
		"no JetStream": testNoJetStream, "streams missing": testStreamsMissing, "duplicate window": testDuplicateWindow, "durable": testDurable,
		"not synced": testNotSynced, "sync unseen": testSyncUnseen, "NATS away": testNATSAway, "NATS silent": testNATSSilent, "stream full": testStreamFull,
		"may not publish": testMayNotPublish, "may not read": testMayNotRead, "may not ask": testMayNotAsk, "may not hear": testMayNotHear,
		"cluster": testCluster,
		"key":     testKey, "account": testAccount, "no key": testNoKey, "tenants": testTenants, "rights": testRights, "Stripe away": testStripeAway, "Stripe silent": testStripeSilent, "clock": testClock, "settings": testSettings, "live key": testLiveKey,
		"changes nothing": testChangesNothing, "exact rights": testExactRights,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func testHealthy(t *testing.T, s *services) {
	r := s.world(t).expect(nil)
	if !r.OK || r.Count(OK) != len(table) {
		t.Errorf("%+v", r)
	}
}

func testNotMigrated(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_DATABASE_URL"] = s.database(t, "template1")
	w.expect(unchecked(map[string]expectation{"schema": is(Failed, "at version 0", "00001_payments.sql", "oncepay migrate up")}, "schema", ofSchema...))
}

func testNewerSchema(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	w.expect(map[string]expectation{"schema": is(Warning, "at version 9999", "newer program")})
}

func testOtherNamespace(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_NAMESPACE"] = "elsewhere"
	w.expect(map[string]expectation{"namespace": is(Failed, `"elsewhere"`, `set ONCEPAY_NAMESPACE to "oncepay"`)})
	w.sql(`DELETE FROM installation`)
	w.expect(nil)
}

// testRates connects workers of one rate and of another, as a process of theirs does, and processes that are none.
func testRates(t *testing.T, s *services) {
	w := s.world(t)
	connect := func(name string) {
		t.Helper()
		store, err := postgres.Open(t.Context(), w.values["ONCEPAY_DATABASE_URL"], postgres.Options{PoolSize: 1, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	connect("")
	w.expect(map[string]expectation{"stripe_rate": is(OK, "no worker is connected")})
	connect(app.WorkerName(20))
	connect(app.WorkerName(20))
	w.expect(map[string]expectation{"stripe_rate": is(OK, "all workers that are connected have one rate, 20/s")})
	connect(app.WorkerName(0))
	connect(app.WorkerName(12.5))
	w.expect(map[string]expectation{"stripe_rate": is(Warning, "3 rates", "unlimited", "12.5/s", "20/s", "the same ONCEPAY_STRIPE_RATE")})
}

// payment is an SQL statement that stores a payment, with or without its ticket.
func payment(key, status, ticketDue string) string {
	id := payments.NewID("acme", key)
	insert := `INSERT INTO payments (created_at, updated_at, amount, lane, request_version, fingerprint_version, off_session, id, fingerprint, tenant_id,
		idempotency_key, kind, status, currency, capture_method) VALUES (now(), now(), 100, 1, 1, 1, true, '\x` + hex(id) + `', sha256('a'), 'acme', '` + key + `', 'charge', '` + status + `', 'usd', 'automatic')`
	if ticketDue == "" {
		return insert
	}
	return insert + `; INSERT INTO queue (due_at, lane, payment_id, tenant_id) VALUES (now() + interval '` + ticketDue + `', 1, '\x` + hex(id) + `', 'acme')`
}

func hex(id payments.ID) string { return strings.TrimPrefix(id.Format(payments.KindCharge), "pay_") }

func testTickets(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(payment("lost", "received", ""), payment("fine", "received", "1 hour"), payment("settled", "requires_capture", "1 hour"))
	w.expect(map[string]expectation{"tickets": is(Failed, "2 payments", payments.NewID("acme", "lost").String()+" of acme (received, no ticket)",
		payments.NewID("acme", "settled").String()+" of acme (requires_capture, ticket)", "oncepay payments show")})
}

func testDue(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(payment("late", "received", "-1 hour"), payment("later", "waiting", "1 hour"))
	w.expect(map[string]expectation{"due": is(Warning, "1 payment due and not taken, the oldest for 1h0m", "is a worker running")})
}

func testOutbox(t *testing.T, s *services) {
	w := s.world(t)
	id := hex(payments.NewID("acme", "k"))
	w.sql(payment("k", "requires_capture", ""),
		`INSERT INTO payment_events (tenant_id, payment_id, sequence, at, type, status, body) VALUES ('acme', '\x`+id+`', 1, now() - interval '2 hours', 't', 'requires_capture', '{}')`,
		`INSERT INTO outbox (kind, tenant_id, payment_id, sequence) VALUES ('event', 'acme', '\x`+id+`', 1)`)
	w.expect(map[string]expectation{"outbox": is(Warning, "1 message not published yet, the oldest of 2h0m", "is a relay running")})
	w.sql(`UPDATE payment_events SET at = now()`)
	w.expect(map[string]expectation{"outbox": is(OK, "1 message on the way")})
}

func testUnpublished(t *testing.T, s *services) {
	w := s.world(t)
	id := hex(payments.NewID("acme", "k"))
	w.sql(payment("k", "requires_capture", ""), `UPDATE payments SET created_at = now() - interval '2 hours'`,
		`INSERT INTO outbox_intents (lane, tenant_id, payment_id) VALUES (2, 'acme', '\x`+id+`')`)
	w.expect(map[string]expectation{"unpublished": is(Warning, "1 payment accepted and not published, the oldest of 2h0m", "does a relay run")})
	w.sql(`UPDATE payments SET created_at = now()`)
	w.expect(map[string]expectation{"unpublished": is(OK, "1 payment on the way")})
	w.values["ONCEPAY_UNPUBLISHED_MAX"] = "1"
	w.expect(map[string]expectation{"unpublished": is(Failed, "ONCEPAY_UNPUBLISHED_MAX is reached", "answers 503")})
}

func testAttention(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(payment("a", "stalled", ""), payment("b", "needs_review", ""), payment("c", "unknown", "1 hour"),
		`INSERT INTO dead_letters (first_seen, last_seen, payload_length, id, state, reason, message, stream, stream_created, stream_seq, payload_sha256)
			VALUES (now(), now(), 0, 'dl_1', 'open', 'invalid', '', 'S', now(), 1, sha256('')), (now(), now(), 0, 'dl_2', 'discarded', 'invalid', '', 'S', now(), 2, sha256(''))`)
	w.expect(map[string]expectation{"attention": is(Warning, "1 needs_review, 1 stalled, 1 unknown", "dead letters: 1 open", "`oncepay dlq replay`"), "review": is(Warning, "payments that wait for a person: 1 ")})
	// A key that may be read here may still be refused where it is used.
	w.sql(payment("d", "waiting", "1 hour"), payment("e", "waiting", "1 hour"), payment("f", "waiting", "1 hour"),
		`UPDATE payments SET reason = CASE idempotency_key WHEN 'd' THEN 'authentication' WHEN 'e' THEN 'rate_limited' ELSE 'account_unknown' END WHERE status = 'waiting'`)
	w.expect(map[string]expectation{"attention": is(Warning, "1 account_unknown, 1 authentication", "may do at Stripe"), "review": is(Warning)})
	w.sql(payment("g", "pending", "1 hour"), `UPDATE payments SET reason = 'account_changed' WHERE status = 'pending'`)
	w.expect(map[string]expectation{"attention": is(Warning, "1 account_changed, 1 account_unknown, 1 authentication"), "review": is(Warning)})
}

// testPrivileges: a role that may read and nothing else is enough for every check but the one that says so; so none of them writes.
func testPrivileges(t *testing.T, s *services) {
	w := s.world(t)
	role := devstacktest.Prefix(t)
	w.sql(`CREATE ROLE `+role+` LOGIN PASSWORD 'readonly1'`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	w.values["ONCEPAY_DATABASE_URL"] = as(t, w.values["ONCEPAY_DATABASE_URL"], role, "readonly1")
	w.expect(map[string]expectation{"postgres_permissions": is(Failed, "role "+role+" lacks rights on", "api_keys (INSERT, UPDATE)", "more", `GRANT INSERT, UPDATE ON payments TO "`+role+`"`)})
}

// as is the URL for another user.
func as(t *testing.T, dsn, user, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func testPassword(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_DATABASE_URL"] = as(t, w.values["ONCEPAY_DATABASE_URL"], "oncepay", "hunter2-of-postgres")
	w.values["ONCEPAY_NATS_MONITOR_URL"] = "http://someone:hunter2-of-nats@" + closedPort + "," + w.values["ONCEPAY_NATS_MONITOR_URL"]
	w.values["ONCEPAY_STRIPE_KEY"] = "sk_test_hunter2"
	w.simulate(stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_other"}}})
	want := unchecked(map[string]expectation{
		"postgres": is(Failed, "PostgreSQL refuses: password authentication failed", "correct user and password"), "stripe_account": is(Failed),
		"nats_monitor": is(Warning, "1 of 2 endpoints are not seen; endpoint 1: ", "connection refused", "correct ONCEPAY_NATS_MONITOR_URL"),
	}, "postgres", ofPostgres...)
	want["stripe_tenants"] = is(NotChecked) // for two reasons
	want["stripe_rights"] = is(NotChecked, "because stripe_account failed")
	r := w.expect(want)
	for _, c := range r.Checks {
		if strings.Contains(c.Found+c.Remedy, "hunter2") {
			t.Errorf("a secret is shown: %+v", c)
		}
	}
}

func testPostgresAway(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_DATABASE_URL"] = devstacktest.Via(t, w.values["ONCEPAY_DATABASE_URL"], closedPort)
	w.expect(unchecked(map[string]expectation{"postgres": is(Failed, "PostgreSQL cannot be reached", "start PostgreSQL")}, "postgres", ofPostgres...))
}

func testPostgresSilent(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_DATABASE_URL"] = devstacktest.Via(t, w.values["ONCEPAY_DATABASE_URL"], silentPort(t))
	w.timeout = 30 * time.Second // the others have all of it, and this one a moment
	begun := time.Now()
	w.expect(unchecked(map[string]expectation{"postgres": is(Failed, "PostgreSQL does not answer", "start PostgreSQL")}, "postgres", ofPostgres...))
	if took := time.Since(begun); took > w.timeout+3*grace {
		t.Errorf("a server that does not answer held everything up for %s", took)
	}
}

func testLocked(t *testing.T, s *services) {
	w := s.world(t)
	conn, err := pgx.Connect(t.Context(), w.values["ONCEPAY_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE payments IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	// Of what reads all payments nothing is concluded; what reads others has its answer.
	w.expect(map[string]expectation{"tickets": is(Warning, "did not answer in time", "lock timeout", "--timeout"), "attention": is(Warning, "did not answer in time"),
		"unpublished": is(Warning, "did not answer in time"), "review": is(Warning, "did not answer in time"), "pauses": is(Warning, "did not answer in time")})
}

func testNoFsync(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_DATABASE_URL"] = devstacktest.Database(t, migrations.Up)
	w.expect(map[string]expectation{"postgres_durability": is(Failed, "fsync is off", "set fsync = on")})
}

func testReadOnly(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_read_only = on'; END $$`)
	w.expect(unchecked(map[string]expectation{"postgres": is(Failed, "read-only")}, "postgres", ofPostgres...))
}

func testNoJetStream(t *testing.T, s *services) {
	w := s.bare(t)
	w.use(natsServer(t, server.Options{}), "", "")
	w.expect(unchecked(map[string]expectation{"jetstream": is(Failed, "no JetStream answers", "enable JetStream"), "nats_sync": is(Warning)}, "jetstream", ofJetStream...))
}

func testStreamsMissing(t *testing.T, s *services) {
	w := s.bare(t)
	want := unchecked(map[string]expectation{"streams": is(Failed, "_INTENTS is missing", "and 1 more", "which makes them"), "consumers": is(Failed, "worker-intent is missing")}, "streams", ofStreams...)
	w.expect(unchecked(want, "consumers", "consumer_lag"))
}

// streamName is the name of the intents' stream.
func (w *world) streamName() string {
	return strings.ToUpper(w.values["ONCEPAY_SUBJECT_PREFIX"]) + "_INTENTS"
}

// change updates the intents' stream.
func (w *world) change(f func(*jetstream.StreamConfig)) {
	w.t.Helper()
	_, js := w.jetstream()
	stream, err := js.Stream(w.t.Context(), w.streamName())
	if err != nil {
		w.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	f(&config)
	if _, err := js.UpdateStream(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
}

func testDuplicateWindow(t *testing.T, s *services) {
	w := s.world(t)
	w.change(func(c *jetstream.StreamConfig) { c.Duplicates = 2 * time.Minute })
	w.expect(map[string]expectation{"streams": is(Failed, "duplicate_window is 2m0s, want 100ms", "start `oncepay serve`, which changes")})
	w.change(func(c *jetstream.StreamConfig) { c.Duplicates, c.MaxBytes = 100*time.Millisecond, 1<<30 })
	w.expect(map[string]expectation{"streams": is(Failed, "max_bytes", "set ONCEPAY_STREAM_MAX_BYTES to what is there")})
}

func testDurable(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_ACK_WAIT"] = "11s"
	w.expect(map[string]expectation{"consumers": is(Failed, "ack_wait is 30s, want 11s", "set ONCEPAY_ACK_WAIT to what is there")})
}

func testNotSynced(t *testing.T, s *services) {
	w := s.bare(t)
	w.use(natsServer(t, server.Options{JetStream: true, HTTPHost: "127.0.0.1", HTTPPort: -1}), "", "")
	w.provision()
	w.expect(map[string]expectation{"nats_sync": is(Failed, "before they are synced to disk", "sync_interval: always")})
}

func testSyncUnseen(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_NATS_MONITOR_URL"] = ""
	w.expect(map[string]expectation{"nats_sync": is(Warning, "not seen on any server", "ONCEPAY_NATS_MONITOR_URL")})
	w.values["ONCEPAY_NATS_SYNC_CONFIRMED"] = "true"
	w.expect(map[string]expectation{"nats_sync": is(OK, "confirmed by ONCEPAY_NATS_SYNC_CONFIRMED")})
}

func testNATSAway(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_NATS_URL"] = "nats://" + closedPort
	w.expect(unchecked(map[string]expectation{"nats": is(Failed, "NATS cannot be reached", "start NATS")}, "nats", ofNATS...))
}

func testNATSSilent(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_NATS_URL"] = "nats://" + silentPort(t)
	w.expect(unchecked(map[string]expectation{"nats": is(Failed, "NATS cannot be reached", "start NATS")}, "nats", ofNATS...))
}

func testStreamFull(t *testing.T, s *services) {
	w := s.bare(t)
	w.values["ONCEPAY_STREAM_MAX_BYTES"] = "1048576"
	w.provision()
	nc, js := w.jetstream()
	subject := w.values["ONCEPAY_SUBJECT_PREFIX"] + ".intent.acme"
	for range 8 {
		if _, err := js.Publish(t.Context(), subject, make([]byte, 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(map[string]expectation{"stream_space": is(Warning, "filling up", "78% of 1.0 MiB", "see that workers run"), "consumer_lag": is(OK, "worker-intent: 8 waiting")})
	// The workers are done with it, and somebody else's durable is not: more workers would change nothing.
	stream := w.streamName()
	if _, err := js.CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{Durable: "audit", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{Durable: "glance", AckPolicy: jetstream.AckNonePolicy}); err != nil {
		t.Fatal(err)
	}
	own, err := js.Consumer(t.Context(), stream, "worker-intent")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := own.Fetch(8)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	nc.Close()
	report := w.expect(map[string]expectation{"stream_space": is(Warning, "filling up", stream+"/audit (8 messages)", "nats consumer rm")})
	for _, c := range report.Checks {
		if strings.Contains(c.Found, "glance") {
			t.Errorf("a consumer that does not ack keeps nothing: %s", c.Found)
		}
	}
}

// limited starts a server on which the user "worker" has the permissions.
func limited(t *testing.T, p *server.Permissions) *server.Server {
	return natsServer(t, server.Options{JetStream: true, SyncAlways: true, HTTPHost: "127.0.0.1", HTTPPort: -1, Users: []*server.User{
		{Username: "admin", Password: "hunter2"}, {Username: "worker", Password: "hunter2", Permissions: p},
	}})
}

// useLimited provisions as admin, and goes on as a user with the permissions.
func (w *world) useLimited(p *server.Permissions) {
	w.t.Helper()
	s := limited(w.t, p)
	w.use(s, "admin", "hunter2")
	w.provision()
	w.use(s, "worker", "hunter2")
}

func testMayNotPublish(t *testing.T, s *services) {
	w := s.bare(t)
	w.useLimited(&server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"*.event.>", "$JS.API.CONSUMER.MSG.NEXT.>"}}})
	w.expect(map[string]expectation{"nats_permissions": is(Failed, "user worker may not publish to $JS.API.CONSUMER.MSG.NEXT.", ".event.*.*", "on the servers, let the user publish to")})
}

func testMayNotRead(t *testing.T, s *services) {
	w := s.bare(t)
	w.useLimited(&server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.INFO.>", "$JS.API.INFO"}}})
	want := map[string]expectation{"nats_permissions": is(Failed, "publish to $JS.API.STREAM.INFO."), "jetstream": is(Warning, "may not ask $JS.API.INFO")}
	want = unchecked(want, "nats_permissions", "streams", "mark")
	w.expect(unchecked(want, "streams", "replicas", "stream_space"))
}

func testMayNotAsk(t *testing.T, s *services) {
	w := s.bare(t)
	w.useLimited(&server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$SYS.>"}}})
	w.expect(map[string]expectation{"nats_permissions": is(Warning, "reading is permitted", "cannot be known", "let the user publish to $SYS.REQ.USER.INFO")})
	w.useLimited(&server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$SYS.>", "$JS.API.CONSUMER.INFO.>"}}})
	want := map[string]expectation{"nats_permissions": is(Failed, "publish to $JS.API.CONSUMER.INFO.", "worker-intent")}
	want = unchecked(want, "nats_permissions", "consumers")
	w.expect(unchecked(want, "consumers", "consumer_lag"))
}

func testMayNotHear(t *testing.T, s *services) {
	w := s.bare(t)
	w.useLimited(&server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"somewhere.>"}}})
	want := map[string]expectation{"nats_permissions": is(Failed, "may not subscribe to _INBOX.>"), "jetstream": is(Warning)}
	want = unchecked(want, "nats_permissions", "streams", "consumers", "mark")
	w.expect(unchecked(unchecked(want, "streams", ofStreams...), "consumers", "consumer_lag"))
}

func testKey(t *testing.T, s *services) {
	w := s.world(t)
	w.simulate(stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_other"}}})
	w.expect(unchecked(map[string]expectation{"stripe_account": is(Failed, "ONCEPAY_STRIPE_KEY: was refused by Stripe (401)", "not rolled or expired")}, "stripe_account", "stripe_tenants", "stripe_rights"))
}

func testAccount(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_STRIPE_ACCOUNT"] = "acct_other"
	w.expect(unchecked(map[string]expectation{"stripe_account": is(Failed, "ONCEPAY_STRIPE_ACCOUNT: is acct_other", "correct one of them")}, "stripe_account", "stripe_tenants", "stripe_rights"))
	w.simulate(stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_simulated", Deny: []string{"GET /v1/account"}}}})
	w.values["ONCEPAY_STRIPE_ACCOUNT"] = ""
	w.expect(unchecked(map[string]expectation{"stripe_account": is(Failed, "ONCEPAY_STRIPE_ACCOUNT")}, "stripe_account", "stripe_tenants", "stripe_rights"))
}

// testTenants: one tenant's broken way is that tenant's alone, and looking at ways binds nobody to an account.
func testTenants(t *testing.T, s *services) {
	w := s.world(t)
	dir := t.TempDir()
	for name, key := range map[string]string{"good": "sk_test_good", "rolled": "sk_test_hunter2", "moved": "sk_test_moved"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.simulate(stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_simulated"}, {Secret: "sk_test_good", Account: "acct_good"}, {Secret: "sk_test_moved", Account: "acct_new"}}})
	w.sql(`INSERT INTO tenants (id, created_at, stripe_account) VALUES ('plain', now(), NULL), ('connected', now(), 'acct_connected')`,
		`INSERT INTO tenants (id, created_at, stripe_key_ref) VALUES ('good', now(), 'file:`+dir+`/good')`)
	w.expect(map[string]expectation{"stripe_tenants": is(OK, "all 2 tenants")})
	w.sql(`INSERT INTO tenants (id, created_at, stripe_key_ref) VALUES ('rolled', now(), 'file:`+dir+`/rolled'), ('lost', now(), 'file:`+dir+`/lost')`,
		`INSERT INTO tenants (id, created_at, stripe_key_ref, account, livemode) VALUES ('moved', now(), 'file:`+dir+`/moved', 'acct_old', false)`)
	r := w.expect(map[string]expectation{"stripe_tenants": is(Failed, "3 of 5 tenants", "tenant rolled: ", "tenant lost: ", "cannot be read", "tenant moved: its payments began on acct_old, and its way leads to acct_new", "payments of these tenants wait")})
	for _, c := range r.Checks {
		if strings.Contains(c.Found+c.Remedy, "hunter2") {
			t.Errorf("a secret is shown: %+v", c)
		}
	}
	w.sql(`DO $$ BEGIN IF EXISTS (SELECT FROM tenants WHERE account IS NOT NULL AND id <> 'moved') THEN RAISE 'pinned'; END IF; END $$`)
}

func testNoKey(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_STRIPE_KEY"], w.values["ONCEPAY_ROLES"] = "", "relay"
	w.expect(map[string]expectation{"stripe_account": is(Warning, "could not be a worker"), "stripe_tenants": is(NotChecked, "without ONCEPAY_STRIPE_KEY"), "stripe_rights": is(NotChecked, "without ONCEPAY_STRIPE_KEY")})
}

func testStripeAway(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_STRIPE_URL"] = "http://" + closedPort
	w.expect(unchecked(map[string]expectation{"stripe": is(Failed, "cannot be reached", "ONCEPAY_STRIPE_URL")}, "stripe", "stripe_account", "stripe_tenants", "stripe_rights", "clock_stripe"))
}

func testStripeSilent(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_STRIPE_URL"] = "http://" + silentPort(t)
	w.expect(unchecked(map[string]expectation{"stripe": is(Failed, "cannot be reached")}, "stripe", "stripe_account", "stripe_tenants", "stripe_rights", "clock_stripe"))
}

func testClock(t *testing.T, s *services) {
	w := s.world(t)
	w.clock = clock(-5 * time.Minute)
	w.expect(map[string]expectation{
		"clock_postgres": is(Failed, "behind PostgreSQL", "NTP"), "clock_stripe": is(Failed, "behind Stripe", "NTP"), "clock_nats": is(Warning, "behind NATS", "NTP"),
	})
}

func testSettings(t *testing.T, s *services) {
	w := s.world(t)
	w.values["ONCEPAY_LEASE"] = "10s"
	w.expect(map[string]expectation{"settings": is(Failed, "ONCEPAY_LEASE: must be longer than ONCEPAY_STRIPE_TIMEOUT", "oncepay config")})
	w.values["ONCEPAY_LEASE"] = "30500ms"
	w.expect(map[string]expectation{"settings": is(Warning, "leaves 500ms", "raise ONCEPAY_LEASE")})
	w.values["ONCEPAY_LEASE"], w.values["ONCEPAY_DRAIN"] = "45s", "5s"
	w.expect(map[string]expectation{"settings": is(Warning, "ONCEPAY_DRAIN 5s is shorter", "raise ONCEPAY_DRAIN")})
}

// testLiveKey: a live key never leaves for another server than Stripe's, and what is only untidy in test mode is not in live mode.
func testLiveKey(t *testing.T, s *services) {
	w := s.world(t)
	stripe := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Authorization")) > 0 || r.Method != http.MethodGet {
			t.Errorf("%s %s, authorized with %q", r.Method, r.URL, r.Header.Values("Authorization"))
		}
	}))
	t.Cleanup(stripe.Close)
	w.values["ONCEPAY_STRIPE_URL"] = stripe.URL
	w.values["ONCEPAY_STRIPE_KEY"], w.values["ONCEPAY_NATS_MONITOR_URL"] = "sk_live_hunter2", ""
	want := map[string]expectation{
		"settings": is(Failed, "ONCEPAY_STRIPE_URL: must be left out with a live key"), "nats_sync": is(Failed, "not seen on any server"),
		"postgres_standby": is(Warning, "no standby", "synchronous_standby_names"), "replicas": is(Warning, "1 of 3 copies", "ONCEPAY_STREAM_REPLICAS=3"),
	}
	w.expect(unchecked(want, "settings", "stripe_account", "stripe_tenants", "stripe_rights"))
}
