package app

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health answers /healthz, /readyz and /metrics.
type Health struct {
	// Checks are what the process needs to do its work; /readyz runs them all.
	Checks  map[string]func(context.Context) error
	Metrics *Metrics
	// notReady is set first of all when the process stops, so that nobody sends it new work.
	notReady atomic.Bool
}

// StopReady makes /readyz say that the process is going away.
func (h *Health) StopReady() { h.notReady.Store(true) }

// Handler serves the three paths. /healthz says only that the process lives: a liveness probe that asked PostgreSQL would restart every worker
// during its outage, and with them everything in flight.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.Metrics.Registry, promhttp.HandlerOpts{Registry: h.Metrics.Registry}))
	return mux
}

func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, report := http.StatusOK, map[string]string{"status": "ok"}
	if h.notReady.Load() {
		status, report["status"] = http.StatusServiceUnavailable, "stopping"
	}
	for name, check := range h.Checks {
		report[name] = "ok"
		if err := check(ctx); err != nil {
			// The cause goes to the log of whoever owns the connection; a probe needs to know only which part is away.
			status, report["status"], report[name] = http.StatusServiceUnavailable, "unavailable", "unavailable"
		}
	}
	answer(w, status, report)
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}
