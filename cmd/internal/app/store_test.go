package app

import (
	"context"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
)

// workers are the rates of the workers that are connected to the world's database, as the names of their connections tell them.
func (w *world) workers() (rates []float64) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.t.Context()))
	rows, err := conn.Query(w.t.Context(), `SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()`)
	if err != nil {
		w.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		if rate, worker := RateOfWorker(name); worker {
			rates = append(rates, rate)
		}
	}
	return rates
}

// TestWorkerName: what a name tells is what it was made of, and no other name tells anything.
func TestWorkerName(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 0.5, 20, 12.25, 1e6, math.MaxFloat64} {
		name := WorkerName(rate)
		if got, worker := RateOfWorker(name); got != rate || !worker || len(name) > 63 {
			t.Errorf("%g: %q tells %g, %t", rate, name, got, worker)
		}
	}
	for _, name := range []string{"", "oncepay", "psql", "oncepay doctor", "oncepay rate=", "oncepay rate=x", "oncepay rate=-1", "oncepay rate=NaN", "my oncepay rate=20"} {
		if rate, worker := RateOfWorker(name); worker {
			t.Errorf("%q is taken for a worker of %g", name, rate)
		}
	}
}
