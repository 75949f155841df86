package doctor

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// testMark: what is behind, elsewhere or without a copy is a failure with its remedy; a rewind and a promotion mend themselves.
func testMark(t *testing.T, s *services) {
	w := s.world(t)
	w.expect(map[string]expectation{"mark": is(OK, "not marked yet")})
	_, js := w.jetstream()
	subjects, _ := w.settings().Streams()
	copied := mark.NewCopy(js, subjects.BucketMark())
	w.sql(`INSERT INTO installation_mark (marked_at, counter, floors) VALUES (now(), 7, '{}')`)
	w.expect(map[string]expectation{"mark": is(Failed, "the copy of the database's mark is gone", "`oncepay doctor --accept-mark --reason R`")})

	m := payments.Mark{Counter: 7, At: time.Now()}
	conn, err := pgx.Connect(t.Context(), w.values["ONCEPAY_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	state, err := postgres.ReadMark(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	m.SystemID, m.Timeline = state.SystemID, state.Timeline
	put := func(m payments.Mark) {
		t.Helper()
		if _, err := copied.Accept(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	m.Counter = 6 // Accept counts on
	put(m)
	w.expect(map[string]expectation{"mark": is(OK, "as far as the mark that is kept of it in NATS (7, ")})
	put(m)
	w.expect(map[string]expectation{"mark": is(Failed, "nothing is sent to Stripe: the database is behind its mark", "(marked last at ", "run `oncepay rewind --since T`")})
	w.sql(`UPDATE installation_mark SET counter = 100`)
	w.expect(map[string]expectation{"mark": is(OK)})
	older := m
	older.Timeline = 0
	put(older)
	w.expect(map[string]expectation{"mark": is(Warning, "a new timeline", "the role worker")})
	other := m
	other.SystemID = "1"
	put(other)
	w.expect(map[string]expectation{"mark": is(Failed, "another PostgreSQL cluster")})
	// Why a rewind failed is shown until another one completes, or somebody says that the database is right.
	fail := func() {
		w.sql(`INSERT INTO rewinds (created_at, updated_at, finished_at, since, state, actor, progress, detail) VALUES (now(), now(), now(), '2030-01-31T03:00:00Z', 'failed', 'ann', '{}',
			'the Stripe account of the tenant globex is not known')`)
	}
	fail()
	w.expect(map[string]expectation{"mark": is(Failed, "another PostgreSQL cluster", "rewind 1 failed at ", "the tenant globex is not known", "rewind again: `oncepay rewind --since 2030-01-31T03:00:00Z`")})
	w.sql(`UPDATE installation_mark SET counter = 1000`)
	put(payments.Mark{SystemID: state.SystemID, Timeline: state.Timeline})
	w.sql(`UPDATE installation_mark SET counter = 10000`)
	w.expect(map[string]expectation{"mark": is(Warning, "as far as its mark; rewind 1 failed at ", "may be missing", "rewind again")})
	w.sql(`INSERT INTO audit (at, actor, action, reason) VALUES (now(), 'ann', 'doctor --accept-mark', 'known to be right')`)
	w.expect(map[string]expectation{"mark": is(OK)})
	fail()
	w.expect(map[string]expectation{"mark": is(Warning, "rewind 2 failed at ")})
	w.sql(`INSERT INTO rewinds (created_at, updated_at, finished_at, since, state, actor, progress) VALUES (now(), now(), now(), now(), 'completed', 'ann', '{}')`)
	w.expect(map[string]expectation{"mark": is(OK)})
	w.sql(`INSERT INTO rewinds (created_at, updated_at, since, state, actor, progress) VALUES (now(), now(), now(), 'running', 'ann', '{}')`)
	w.expect(map[string]expectation{"mark": is(Warning, "is running: nothing is sent to Stripe", "follows it")})
	w.sql(`UPDATE rewinds SET detail = 'Stripe is away' WHERE state = 'running'`)
	w.expect(map[string]expectation{"mark": is(Warning, "it stands still: Stripe is away", "tried again by itself")})
	w.values["ONCEPAY_ROLES"] = "ingress"
	w.expect(map[string]expectation{"mark": is(OK, "the role worker")})
}
