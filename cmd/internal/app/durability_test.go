package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func TestCheckSync(t *testing.T) {
	t.Parallel()
	monitor := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/jsz" || r.URL.Query().Get("config") != "true" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	always, lazy := monitor(200, `{"config":{"sync_always":true}}`), monitor(200, `{"config":{"sync_interval":120000000000}}`)
	for name, c := range map[string]struct {
		s    Settings
		want string
	}{
		"synced":              {Settings{NATSMonitorURL: always}, ""},
		"with a slash":        {Settings{NATSMonitorURL: always + "/"}, ""},
		"all of a cluster":    {Settings{NATSMonitorURL: always + ", " + always}, ""},
		"one of a cluster":    {Settings{NATSMonitorURL: always + "," + lazy}, "sync_interval: always"},
		"one is away":         {Settings{NATSMonitorURL: always + ",http://127.0.0.1:1," + always}, ""},
		"half are away":       {Settings{NATSMonitorURL: always + ",http://127.0.0.1:1"}, "cannot be read"},
		"one away, one lazy":  {Settings{NATSMonitorURL: always + ",http://127.0.0.1:1," + lazy}, "sync_interval: always"},
		"not synced":          {Settings{NATSMonitorURL: lazy}, "sync_interval: always"},
		"confirmed":           {Settings{NATSMonitorURL: lazy, NATSSyncConfirmed: true}, ""},
		"nobody knows":        {Settings{}, "ONCEPAY_NATS_MONITOR_URL: is required"},
		"no JetStream":        {Settings{NATSMonitorURL: monitor(200, `{"disabled":true}`)}, "is JetStream enabled"},
		"another server":      {Settings{NATSMonitorURL: monitor(404, "")}, "it answers 404"},
		"no JSON":             {Settings{NATSMonitorURL: monitor(200, "<html>")}, "cannot be read"},
		"endless":             {Settings{NATSMonitorURL: monitor(200, `{"a":"`+strings.Repeat("x", 2<<20)+`"}`)}, "too large"},
		"nobody there":        {Settings{NATSMonitorURL: "http://127.0.0.1:1"}, "cannot be read"},
		"the embedded server": {Settings{NATSMonitorURL: devstacktest.NATS(t).MonitorURL()}, ""},
	} {
		err := checkSync(t.Context(), c.s, slog.New(slog.DiscardHandler))
		var usage *UsageError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &usage) || !strings.Contains(usage.Text, c.want) || strings.Contains(usage.Text, "\n")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checkSync(ctx, Settings{NATSMonitorURL: always}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a cancelled question was answered")
	}
}
