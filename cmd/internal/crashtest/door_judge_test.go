package crashtest

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// mustPay waits for rest and wants the oracle's full consent to requests over HTTP: one charge for each of their payments, one event sequence
// each, and each batch told once, with all of its payments.
func (w *world) mustPay(deadLetters int, parcels ...parcel) account {
	w.Helper()
	a := w.mustBeGood(deadLetters)
	want := 0
	for _, p := range parcels {
		want += len(p.orders)
	}
	if len(a.Charges) != want || len(a.Payments) != want {
		w.Errorf("%d charges of %d payments, want %d of each", len(a.Charges), len(a.Payments), want)
	}
	w.mustBeTold(a, parcels)
	return a
}

// mustBeTold wants one completion of each batch in the stream, under one id however often it stands there.
func (w *world) mustBeTold(a account, parcels []parcel) {
	w.Helper()
	batches := map[string]parcel{}
	for _, p := range parcels {
		if p.batch() {
			batches[p.id()] = p
		}
	}
	told := map[string]string{}
	for _, e := range a.Told {
		p, known := batches[e.Subject]
		if !known {
			w.Errorf("a batch that nobody asked for is told: %s", e.Subject)
			continue
		}
		if earlier, twice := told[e.Subject]; twice && earlier != e.ID {
			w.Errorf("%s is told as %s and as %s", p.key, earlier, e.ID)
		}
		told[e.Subject] = e.ID
		var state struct {
			Count    int  `json:"count"`
			Complete bool `json:"complete"`
			ByStatus map[payments.Status]struct {
				Count  int              `json:"count"`
				Amount map[string]int64 `json:"amount"`
			} `json:"by_status"`
		}
		if err := json.Unmarshal(e.Data, &state); err != nil {
			w.Fatal(err)
		}
		count, sum := map[payments.Status]int{}, map[payments.Status]int64{}
		for _, o := range p.orders {
			status := payments.StatusSucceeded
			if o.Declines {
				status = payments.StatusFailed
			}
			count[status]++
			sum[status] += o.Money.Amount
		}
		if e.ID != schema.EventID(p.id(), 1, schema.EventBatchCompleted) || e.Sequence != 1 || !state.Complete || state.Count != len(p.orders) ||
			len(state.ByStatus) != len(count) {
			w.Errorf("%s of %d payments is told as %s, sequence %d: %s", p.key, len(p.orders), e.ID, e.Sequence, e.Data)
		}
		for status, total := range state.ByStatus {
			if total.Count != count[status] || total.Amount["usd"] != sum[status] {
				w.Errorf("%s has %d of %s, over %d: %s", p.key, count[status], status, sum[status], e.Data)
			}
		}
	}
	for id, p := range batches {
		if told[id] == "" {
			w.Errorf("%s is not told", p.key)
		}
	}
}

// witnessSQL lets PostgreSQL itself note, whenever a batch is told, how many of its payments are not there with a final status and its event as
// of that moment.
const witnessSQL = `
CREATE TABLE witness (batch text NOT NULL, unsettled bigint NOT NULL);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO witness SELECT NEW.idempotency_key, count(*) FROM generate_series(0, NEW.count - 1) AS i
	LEFT JOIN payments p ON p.tenant_id = NEW.tenant_id AND p.idempotency_key = NEW.idempotency_key || '::' || i
	WHERE p.finalized_at IS NULL OR NOT EXISTS (
		SELECT FROM payment_events e WHERE e.tenant_id = p.tenant_id AND e.payment_id = p.id AND e.status = p.status);
	RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE OF completed_at ON batches FOR EACH ROW EXECUTE FUNCTION witness()`

// straggle lets one payment in so many come to its outcome long after its neighbours, so that batches stand there half done.
func (w *world) straggle(oneIn int) {
	w.Helper()
	rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: stripesim.FaultSlow + ":600", Rate: 1 / float64(oneIn)}
	if err := w.sim.AddFault(rule); err != nil {
		w.Fatal(err)
	}
}

// sql runs statements on the world's database.
func (w *world) sql(do func(context.Context, *pgx.Conn) error) {
	w.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := do(ctx, conn); err != nil {
		w.Fatal(err)
	}
}

// watchCompletions sets the witness up, before anything is asked for.
func (w *world) watchCompletions() {
	w.Helper()
	w.sql(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, witnessSQL)
		return err
	})
}

// mustHaveWitnessed wants each batch to have been told once, and none before all of its payments had their outcome.
func (w *world) mustHaveWitnessed(batches int) {
	w.Helper()
	var told, distinct, early int
	w.sql(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*), count(DISTINCT batch), count(*) FILTER (WHERE unsettled > 0) FROM witness").Scan(&told, &distinct, &early)
	})
	if told != batches || distinct != batches || early != 0 {
		w.Errorf("%d batches of %d were told %d times, %d of them before all their payments had an outcome", distinct, batches, told, early)
	}
}
