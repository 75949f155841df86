package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// checkSync refuses live money on a broker that acknowledges before it syncs: by default JetStream does so for up to two minutes, and what a
// machine loses with its page cache was acknowledged to its producer.
func checkSync(ctx context.Context, s Settings) error {
	if s.NATSSyncConfirmed {
		return nil
	}
	if s.NATSMonitorURL == "" {
		return &UsageError{"ONCEPAY_NATS_MONITOR_URL: is required with a live key, to see that NATS runs with sync_interval: always; or set ONCEPAY_NATS_SYNC_CONFIRMED=true if you know that it does"}
	}
	always, err := syncsAlways(ctx, s.NATSMonitorURL)
	if err != nil {
		return fmt.Errorf("ONCEPAY_NATS_MONITOR_URL: the sync policy of NATS cannot be read: %w", err)
	}
	if !always {
		return &UsageError{"NATS acknowledges messages before they are synced to disk; set `jetstream { sync_interval: always }` on every server, then start again"}
	}
	return nil
}

// syncsAlways reads the policy from /jsz.
func syncsAlways(ctx context.Context, monitor string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(monitor, "/")+"/jsz?config=true", nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it answers %s", response.Status)
	}
	var document struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<20)).Decode(&document); err != nil {
		return false, err
	}
	return document.Config.SyncAlways, nil
}
