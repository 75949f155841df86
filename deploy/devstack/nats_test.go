package devstack

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startNATS(t *testing.T, options NATSOptions) *NATS {
	t.Helper()
	n, err := StartNATS(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func connect(t *testing.T, n *NATS) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, err := nats.Connect(n.URL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

func TestNATSKeepsMessagesOverRestarts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	n := startNATS(t, NATSOptions{StoreDir: dir})
	url := n.URL()
	_, js := connect(t, n)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept.>"}}); err != nil {
		t.Fatal(err)
	}
	for round, again := range []func(){
		func() {
			if err := n.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		func() {
			n.Stop()
			if conn, err := nats.Connect(url); err == nil {
				conn.Close()
				t.Fatal("a stopped server answers")
			}
			if err := n.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		func() {
			port := n.options.Port
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			if err := n.Restart(); err == nil {
				t.Fatal("a closed server restarted")
			}
			n = startNATS(t, NATSOptions{StoreDir: dir, Port: port})
		},
	} {
		_, js := connect(t, n)
		if _, err := js.Publish(t.Context(), "kept."+strconv.Itoa(round), []byte("x")); err != nil {
			t.Fatal(err)
		}
		again()
		if n.URL() != url {
			t.Fatalf("moved from %s to %s", url, n.URL())
		}
		_, js = connect(t, n)
		stream, err := js.Stream(t.Context(), "KEPT")
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().State.Msgs; got != uint64(round+1) {
			t.Fatalf("%d messages after %d", got, round+1)
		}
	}
}

func TestNATSMonitoringShowsSync(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		n := startNATS(t, NATSOptions{Monitor: true, FastUnsafe: fast})
		response, err := http.Get(n.MonitorURL() + "/varz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var varz struct {
			Host       string `json:"host"`
			HTTPHost   string `json:"http_host"`
			MaxPayload int    `json:"max_payload"`
			JetStream  struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				} `json:"config"`
			} `json:"jetstream"`
		}
		if err := json.Unmarshal(body, &varz); err != nil {
			t.Fatal(err)
		}
		if varz.Host != "127.0.0.1" || varz.HTTPHost != "127.0.0.1" || varz.MaxPayload != 1<<20 {
			t.Errorf("%+v", varz)
		}
		if !varz.JetStream.Config.SyncAlways {
			t.Errorf("sync_always is %t", varz.JetStream.Config.SyncAlways)
		}
		url := n.MonitorURL()
		if err := n.Restart(); err != nil || n.MonitorURL() != url {
			t.Fatalf("%v, monitor %s -> %s", err, url, n.MonitorURL())
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if n := startNATS(t, NATSOptions{}); n.MonitorURL() != "" {
		t.Errorf("monitoring at %s unasked", n.MonitorURL())
	}
}

func TestNATSBoundsMessages(t *testing.T) {
	t.Parallel()
	n := startNATS(t, NATSOptions{MaxPayload: 1000})
	conn, js := connect(t, n)
	if got := conn.MaxPayload(); got != 1000 {
		t.Fatalf("max payload %d", got)
	}
	if _, err := js.Publish(context.WithoutCancel(t.Context()), "any", make([]byte, 1001)); err == nil {
		t.Fatal("a message above the bound was taken")
	}
}

func TestNATSRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startNATS(t, NATSOptions{StoreDir: dir})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, options := range map[string]NATSOptions{
		"in use by another": {StoreDir: dir},
		"is in use: choose": {Port: taken.Addr().(*net.TCPAddr).Port},
	} {
		n, err := StartNATS(options)
		if err == nil {
			n.Close()
			t.Fatalf("started, want %q", want)
		}
		if !strings.Contains(err.Error(), want) {
			t.Fatalf("%v does not say %q", err, want)
		}
	}
}

func TestNATSTemporaryStoreIsRemoved(t *testing.T) {
	t.Parallel()
	n := startNATS(t, NATSOptions{})
	store := n.options.StoreDir
	if _, err := os.Stat(store); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(store) {
		t.Fatal("the store is still there")
	}
}
