package dev

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/schema"
)

// baseline is the handler that one would write: read the request, INSERT … ON CONFLICT its row in a commit of its own, publish it and wait for the
// PubAck, answer. It has no timeline, no ticket, no outbox, no API keys and no limits; a publish that fails after the commit is answered 500.
type baseline struct {
	addr   string
	pool   *pgxpool.Pool
	js     jetstream.JetStream
	server *http.Server
}

const baselineTable = `CREATE TABLE baseline (
	tenant_id text NOT NULL, idempotency_key text NOT NULL, amount bigint NOT NULL, currency text NOT NULL, customer text, payment_method text NOT NULL,
	body json NOT NULL, status text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant_id, idempotency_key))`

const baselineInsert = `INSERT INTO baseline (tenant_id, idempotency_key, amount, currency, customer, payment_method, body, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'received') ON CONFLICT DO NOTHING`

// startBaseline serves the handler on loopback with a connection to PostgreSQL for each client.
func startBaseline(ctx context.Context, dsn string, js jetstream.JetStream) (*baseline, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = httpClients
	b := &baseline{js: js}
	if b.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if _, err := b.pool.Exec(ctx, baselineTable); err != nil {
		b.pool.Close()
		return nil, err
	}
	listener, err := listenLoopback()
	if err != nil {
		b.pool.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", b.pay)
	b.addr, b.server = listener.Addr().String(), &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

func (b *baseline) close() {
	_ = b.server.Close()
	b.pool.Close()
}

func (b *baseline) pay(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil || key == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	var in plainIntent
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	_, err = b.pool.Exec(r.Context(), baselineInsert, demoTenant, key, in.Amount, in.Currency, in.Customer, in.PaymentMethod, string(body))
	if err == nil {
		in.IdempotencyKey = key
		body, _ = json.Marshal(in)
		_, err = b.js.Publish(r.Context(), "payments.intent."+demoTenant, body, jetstream.WithExpectStream(schema.Subjects{}.StreamIntents()))
	}
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]string{"idempotency_key": key, "status": "received"})
}
