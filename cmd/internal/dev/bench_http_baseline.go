package dev

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// baseline is the handler that one would write: read the request, INSERT … ON CONFLICT its row in a commit of its own, publish it and wait for the
// PubAck, answer. The row is the product's, in the same table; it has no ticket, no outbox, no API keys and no limits, and a publish that fails after
// the commit is answered 500.
type baseline struct {
	addr   string
	pool   *pgxpool.Pool
	js     jetstream.JetStream
	server *http.Server
}

// baselineInsert stores the payment in the table and with the indexes and constraints that the product's row has.
const baselineInsert = `INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
	currency, capture_method, off_session, customer, payment_method, details, created_at, updated_at)
VALUES ($1, $2, $3, 'charge', 1, 'received', 1, $4, 1, $5, $6, 'automatic', true, $7, $8, $9, now(), now()) ON CONFLICT DO NOTHING`

// baselineTenant keeps its rows apart from the product's.
const baselineTenant = "baseline"

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
	intent := payments.Intent{
		TenantID: baselineTenant, IdempotencyKey: key, Amount: in.Amount, Currency: in.Currency, Customer: in.Customer, PaymentMethod: in.PaymentMethod,
		OffSession: true, Metadata: in.Metadata,
	}
	id, fingerprint := intent.ID(), payments.Fingerprint(intent)
	details, _ := json.Marshal(map[string]any{"metadata": in.Metadata})
	_, err = b.pool.Exec(r.Context(), baselineInsert, baselineTenant, id[:], key, fingerprint[:], in.Amount, in.Currency, in.Customer, in.PaymentMethod, string(details))
	if err == nil {
		in.IdempotencyKey, in.OffSession = key, true
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
