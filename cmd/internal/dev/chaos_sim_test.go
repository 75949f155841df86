package dev

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestASimulatorIsToldItsFaults: one that does not answer yet is told again; one that was killed meanwhile is not this event's to tell, and no finding.
func TestASimulatorIsToldItsFaults(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer starting.Close()
	if err := (&simControl{url: starting.URL}).applyTo(t.Context(), nil); err != nil || asked.Load() != 4 { // twice in vain; then faults, and limits
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	ended := make(chan struct{})
	close(ended)
	if err := (&simControl{url: "http://127.0.0.1:1"}).applyTo(t.Context(), ended); err != nil {
		t.Errorf("killed: %v", err)
	}
}
