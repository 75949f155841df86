package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// monitor is what one monitoring endpoint says of its server.
type monitor struct {
	err     error
	id      string
	name    string
	version string
	clock   reading
	always  bool // every write is synced before it is acknowledged
	servers int  // of its cluster, those with JetStream
}

// answerMax bounds what is read of one answer.
const answerMax = 1 << 20

// checkMonitors asks every endpoint of ONCEPAY_NATS_MONITOR_URL.
func checkMonitors(ctx context.Context, x *examination) verdict {
	if x.settings.NATSMonitorURL == "" {
		return good("ONCEPAY_NATS_MONITOR_URL is not set: only what a client sees is checked")
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	urls := strings.Split(x.settings.NATSMonitorURL, ",")
	monitors := make([]monitor, len(urls))
	var wg sync.WaitGroup
	for i, one := range urls {
		wg.Go(func() { monitors[i] = x.readMonitor(ctx, strings.TrimRight(strings.TrimSpace(one), "/")) })
	}
	wg.Wait()
	x.monitors = monitors
	return judgeMonitors(monitors, x.said)
}

func judgeMonitors(monitors []monitor, said func(error) string) verdict {
	var seen, failed []string
	for i, m := range monitors {
		if m.err != nil {
			failed = append(failed, fmt.Sprintf("endpoint %d: %s", i+1, said(m.err)))
		} else {
			seen = append(seen, m.name)
		}
	}
	if len(failed) > 0 {
		return warn("correct ONCEPAY_NATS_MONITOR_URL, or start the server (`http: 127.0.0.1:8222`, `jetstream {}` in its configuration)", "%d of %d endpoints are not seen; %s", len(failed), len(monitors), join(failed))
	}
	return good("sees %s", join(seen))
}

func (x *examination) readMonitor(ctx context.Context, base string) (m monitor) {
	var server struct {
		ID      string    `json:"server_id"`
		Name    string    `json:"server_name"`
		Version string    `json:"version"`
		Now     time.Time `json:"now"`
	}
	before := x.clock.Now()
	if m.err = fetchJSON(ctx, base+"/varz", &server); m.err != nil {
		return m
	}
	m.id, m.name, m.version, m.clock = server.ID, server.Name, server.Version, between(before, x.clock.Now(), server.Now)
	var js struct {
		Config *struct {
			Always bool `json:"sync_always"`
		} `json:"config"`
		Meta *struct {
			Size int `json:"cluster_size"`
		} `json:"meta_cluster"`
		Disabled bool `json:"disabled"`
	}
	if m.err = fetchJSON(ctx, base+"/jsz?config=true", &js); m.err != nil {
		return m
	}
	if js.Config == nil || js.Disabled {
		m.err = errors.New("/jsz shows no configuration; is JetStream enabled?")
		return m
	}
	m.always, m.servers = js.Config.Always, 1
	if js.Meta != nil {
		m.servers = max(1, js.Meta.Size)
	}
	return m
}

// fetchJSON reads one document. Its errors do not repeat the address, in which a password may stand.
func fetchJSON(ctx context.Context, address string, into any) error {
	_, path, _ := strings.Cut(address, "://")
	path = path[strings.IndexByte(path, '/'):]
	response, err := get(ctx, address, http.ProxyFromEnvironment)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, response.Status)
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, answerMax)).Decode(into); err != nil {
		return fmt.Errorf("%s is not what NATS answers: %w", path, err)
	}
	return nil
}

// get makes one request, without following to another address. Its errors do not repeat the address.
func get(ctx context.Context, address string, proxy func(*http.Request) (*url.URL, error)) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: proxy, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return response, err
}

// checkSync: by default JetStream acknowledges before it syncs, and what a machine then loses with its page cache was promised to a producer.
func checkSync(_ context.Context, x *examination) verdict {
	return judgeSync(x.monitors, syncPolicy{live: x.live(), confirmed: x.settings.NATSSyncConfirmed, connected: x.nc.ConnectedServerId()})
}

type syncPolicy struct {
	live, confirmed bool
	connected       string // id of the server that the client is connected to
}

func judgeSync(monitors []monitor, p syncPolicy) verdict {
	seen, servers, connected := map[string]bool{}, 1, false
	for _, m := range monitors {
		if m.err != nil {
			continue
		}
		if !m.always {
			return bad("set `jetstream { sync_interval: always }` on every server, and restart one after another", "%s acknowledges messages before they are synced to disk", m.name)
		}
		seen[m.id] = true
		servers = max(servers, m.servers)
		connected = connected || m.id == p.connected
	}
	const remedy = "set ONCEPAY_NATS_MONITOR_URL to the monitoring endpoint of every server, comma separated; or ONCEPAY_NATS_SYNC_CONFIRMED=true if you know that each has sync_interval: always"
	found := fmt.Sprintf("seen on %d of %d servers", len(seen), servers)
	switch {
	case len(seen) == 0:
		found = "not seen on any server"
	case len(seen) >= servers && connected:
		return good("every write is synced before it is acknowledged, %s", found)
	case len(seen) >= servers:
		found = "not seen on the server that the client is connected to"
	}
	switch {
	case p.confirmed:
		return good("confirmed by ONCEPAY_NATS_SYNC_CONFIRMED; sync_interval: always is %s", found)
	case p.live:
		return bad(remedy, "sync_interval: always is %s", found)
	}
	return warn(remedy, "sync_interval: always is %s", found)
}
