package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

var errNoMonitor = &UsageError{"ONCEPAY_NATS_MONITOR_URL: is required with a live key, to see that NATS runs with sync_interval: always; or set ONCEPAY_NATS_SYNC_CONFIRMED=true if you know that it does"}

// checkSync refuses live money on a broker that acknowledges before it syncs: by default JetStream does so for up to two minutes, and what a
// machine loses with its page cache was acknowledged to its producer. Every server of a cluster has a monitoring endpoint of its own, and all
// that are given are asked; most of them must answer.
func checkSync(ctx context.Context, s Settings, log *slog.Logger) error {
	if s.NATSSyncConfirmed {
		return nil
	}
	if s.NATSMonitorURL == "" {
		return errNoMonitor
	}
	monitors := strings.Split(s.NATSMonitorURL, ",")
	var away []error
	for _, monitor := range monitors {
		always, err := syncsAlways(ctx, strings.TrimSpace(monitor))
		switch {
		case err != nil:
			away = append(away, err)
		case !always:
			return &UsageError{"ONCEPAY_NATS_URL: NATS acknowledges messages before they are synced to disk; set `jetstream { sync_interval: always }` on every server, then start again"}
		}
	}
	// A server that is down must not keep a worker from starting again: what a majority has synced is not lost.
	if 2*len(away) >= len(monitors) {
		return &UsageError{"ONCEPAY_NATS_MONITOR_URL: the sync policy of NATS cannot be read: " + OneLine(away[0].Error())}
	}
	for _, err := range away {
		log.Warn("the sync policy of one NATS server could not be read; a majority syncs every write", "error", OneLine(err.Error()))
	}
	return nil
}

// syncsAlways reads the policy from /jsz.
func syncsAlways(ctx context.Context, monitor string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(monitor, "/")+"/jsz?config=true", nil)
	if err != nil {
		return false, fmt.Errorf("it is no URL")
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it answers %s", response.Status)
	}
	var document struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<20)).Decode(&document); err != nil {
		return false, fmt.Errorf("/jsz: %w", err)
	}
	if document.Config == nil {
		return false, fmt.Errorf("/jsz shows no configuration; is JetStream enabled?")
	}
	return document.Config.SyncAlways, nil
}
