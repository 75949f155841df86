package door

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// mustPay waits for rest and wants the oracle's full consent to requests over HTTP: one charge for each of their payments, one event sequence
// each, and each batch told once, with all of its payments.
func mustPay(w *world.World, deadLetters int, parcels ...world.Parcel) world.Account {
	w.Helper()
	a := w.MustBeGood(deadLetters)
	want := 0
	for _, p := range parcels {
		want += len(p.Orders)
	}
	if len(a.Charges) != want || len(a.Payments) != want {
		w.Errorf("%d charges of %d payments, want %d of each", len(a.Charges), len(a.Payments), want)
	}
	mustBeTold(w, a, parcels)
	return a
}

// mustBeTold wants one completion of each batch in the stream, under one id however often it stands there.
func mustBeTold(w *world.World, a world.Account, parcels []world.Parcel) {
	w.Helper()
	batches := map[string]world.Parcel{}
	for _, p := range parcels {
		if p.Batch() {
			batches[p.ID()] = p
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
			w.Errorf("%s is told as %s and as %s", p.Key, earlier, e.ID)
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
		for _, o := range p.Orders {
			status := payments.StatusSucceeded
			if o.Declines {
				status = payments.StatusFailed
			}
			count[status]++
			sum[status] += o.Money.Amount
		}
		if e.ID != schema.EventID(p.ID(), 1, schema.EventBatchCompleted) || e.Sequence != 1 || !state.Complete || state.Count != len(p.Orders) ||
			len(state.ByStatus) != len(count) {
			w.Errorf("%s of %d payments is told as %s, sequence %d: %s", p.Key, len(p.Orders), e.ID, e.Sequence, e.Data)
		}
		for status, total := range state.ByStatus {
			if total.Count != count[status] || total.Amount["usd"] != sum[status] {
				w.Errorf("%s has %d of %s, over %d: %s", p.Key, count[status], status, sum[status], e.Data)
			}
		}
	}
	for id, p := range batches {
		if told[id] == "" {
			w.Errorf("%s is not told", p.Key)
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
func straggle(w *world.World, oneIn int) {
	w.Helper()
	rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: stripesim.FaultSlow + ":600", Rate: 1 / float64(oneIn)}
	if err := w.Sim.AddFault(rule); err != nil {
		w.Fatal(err)
	}
}

// watchCompletions sets the witness up, before anything is asked for.
func watchCompletions(w *world.World) {
	w.Helper()
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, witnessSQL)
		return err
	})
}

// mustHaveWitnessed wants each batch to have been told once, and none before all of its payments had their outcome.
func mustHaveWitnessed(w *world.World, batches int) {
	w.Helper()
	var told, distinct, early int
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*), count(DISTINCT batch), count(*) FILTER (WHERE unsettled > 0) FROM witness").Scan(&told, &distinct, &early)
	})
	if told != batches || distinct != batches || early != 0 {
		w.Errorf("%d batches of %d were told %d times, %d of them before all their payments had an outcome", distinct, batches, told, early)
	}
}
