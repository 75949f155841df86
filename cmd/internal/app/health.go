package app

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The states of a process, as /readyz tells them.
const (
	stateStarting int32 = iota // waits for what it needs
	stateReady
	stateStopping
)

// Health answers /healthz, /readyz and /metrics from the first moment on: a process that waits for PostgreSQL lives, and is not ready.
type Health struct {
	Metrics *Metrics

	state  atomic.Int32
	checks map[string]Check
}

// Check finds out whether something that the process needs is there. Without what is optional the process is ready all the same.
type Check struct {
	Run      func(context.Context) error
	Optional bool
}

// StartReady lets /readyz run the checks: they are what the process needs to do its work. It is called once.
func (h *Health) StartReady(checks map[string]Check) {
	h.checks = checks
	h.state.CompareAndSwap(stateStarting, stateReady)
}

// StopReady makes /readyz say that the process is going away.
func (h *Health) StopReady() { h.state.Store(stateStopping) }

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
	state := h.state.Load()
	if state != stateReady {
		answer(w, http.StatusServiceUnavailable, map[string]string{"status": map[int32]string{stateStarting: "starting", stateStopping: "stopping"}[state]})
		return
	}
	status, report := http.StatusOK, map[string]string{"status": "ok"}
	for name, check := range h.checks {
		report[name] = "ok"
		if err := check.Run(ctx); err != nil {
			// The cause goes to the log of whoever owns the connection; a probe needs to know only which part is away.
			report[name] = "unavailable"
			if !check.Optional {
				status, report["status"] = http.StatusServiceUnavailable, "unavailable"
			}
		}
	}
	answer(w, status, report)
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}
