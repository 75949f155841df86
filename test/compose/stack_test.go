package compose

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestConfined: every service has no rights that it does not need, and a bound to what it may take.
func TestConfined(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		if s.Privileged || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: privileged %t, read-only %t, drops %v, %v", name, s.Privileged, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
		if s.PidsLimit <= 0 || s.MemLimit == "" || s.Restart == "" {
			t.Errorf("%s: pids %d, memory %q, restart %q", name, s.PidsLimit, s.MemLimit, s.Restart)
		}
		if s.NetworkMode != "" && s.NetworkMode != "none" || s.ContainerName != "" {
			t.Errorf("%s: network mode %q, name %q", name, s.NetworkMode, s.ContainerName)
		}
		// prepare hands the nodes their directories; it has no network, and ends.
		if name == "prepare" {
			if !slices.Equal(s.CapAdd, []string{"CHOWN"}) || s.NetworkMode != "none" || s.Restart != "no" {
				t.Errorf("prepare may %v on network %q, restart %q", s.CapAdd, s.NetworkMode, s.Restart)
			}
			continue
		}
		if len(s.CapAdd) > 0 {
			t.Errorf("%s may %v", name, s.CapAdd)
		}
		// An image of ours sets its user, which TestImage looks at.
		if root := s.User == "" || strings.HasPrefix(s.User, "0") || s.User == "root"; root && s.Build == nil {
			t.Errorf("%s runs as root", name)
		}
	}
}

// TestPorts: what is published is published on loopback.
func TestPorts(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, s := range load(t).Services {
		for _, p := range s.Ports {
			host, rest, ok := strings.Cut(p, ":")
			port, _, _ := strings.Cut(rest, ":")
			if ip := net.ParseIP(host); !ok || ip == nil || !ip.IsLoopback() {
				t.Errorf("%s publishes %s beyond loopback", name, p)
			}
			if other := seen[port]; other != "" {
				t.Errorf("%s and %s publish the same port %s", name, other, port)
			}
			seen[port] = name
		}
	}
	if len(seen) < 6 {
		t.Errorf("only %d ports are published", len(seen))
	}
}

// TestCluster: three nodes of different names on different volumes, three copies of each stream, and room for them.
func TestCluster(t *testing.T) {
	t.Parallel()
	f := load(t)
	nodes := f.nodes(t)
	if !slices.Equal(nodes, []string{"nats-1", "nats-2", "nats-3"}) {
		t.Fatalf("nodes are %v", nodes)
	}
	for _, name := range nodes {
		s := f.Services[name]
		if s.Environment["NATS_SERVER_NAME"] != name {
			t.Errorf("%s is called %s", name, s.Environment["NATS_SERVER_NAME"])
		}
		for _, volume := range []string{"./deploy/nats/conf:/etc/nats:ro", "nats-secrets:/etc/nats/passwords:ro", name + ":/data"} {
			if !slices.Contains(s.Volumes, volume) {
				t.Errorf("%s does not mount %s", name, volume)
			}
		}
		if words(s.Command) != "nats-server --config /etc/nats/server.conf" {
			t.Errorf("%s runs %v", name, s.Command)
		}
	}
	conf := read(t, "deploy", "nats", "conf", "server.conf")
	if !regexp.MustCompile(`(?m)^\s*sync_interval: always\s*$`).MatchString(conf) {
		t.Error("server.conf does not sync always")
	}
	for _, name := range f.workers(t) {
		e := f.Services[name].Environment
		if e["ONCEPAY_STREAM_REPLICAS"] != strconv.Itoa(len(nodes)) {
			t.Errorf("%s asks for %s copies", name, e["ONCEPAY_STREAM_REPLICAS"])
		}
		if e["ONCEPAY_NATS_MONITOR_URL"] != "http://nats-1:8222,http://nats-2:8222,http://nats-3:8222" {
			t.Errorf("%s looks at %s", name, e["ONCEPAY_NATS_MONITOR_URL"])
		}
		stream, err := strconv.ParseInt(e["ONCEPAY_STREAM_MAX_BYTES"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		store, found := strings.CutSuffix(f.Services[nodes[0]].Environment["NATS_MAX_FILE_STORE"], "GB")
		gigabytes, err := strconv.ParseInt(store, 10, 64)
		if !found || err != nil || gigabytes<<30 < 4*stream {
			t.Errorf("four streams of %d bytes do not fit into %sGB", stream, store)
		}
	}
}

// words is a command as one line.
func words(command any) string {
	list, _ := command.([]any)
	var all []string
	for _, w := range list {
		s, _ := w.(string)
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

// TestOrder: nothing starts before what it needs works, and a worker may finish what is in flight before it is killed.
func TestOrder(t *testing.T) {
	t.Parallel()
	f := load(t)
	const healthy, completed = "service_healthy", "service_completed_successfully"
	for _, want := range []struct{ service, needs, condition string }{
		{"postgres", "prepare", completed}, {"nats-1", "prepare", completed}, {"nats-2", "prepare", completed}, {"nats-3", "prepare", completed},
		{"migrate", "postgres", healthy}, {"migrate", "prepare", completed},
	} {
		if got := f.Services[want.service].DependsOn[want.needs].Condition; got != want.condition {
			t.Errorf("%s waits for %s: %q", want.service, want.needs, got)
		}
	}
	workers := f.workers(t)
	if len(workers) != 2 {
		t.Errorf("workers are %v", workers)
	}
	for _, name := range workers {
		s := f.Services[name]
		want := map[string]struct{ Condition string }{"migrate": {completed}, "nats-1": {healthy}, "nats-2": {healthy}, "nats-3": {healthy}}
		if !maps.Equal(s.DependsOn, want) {
			t.Errorf("%s waits for %v", name, s.DependsOn)
		}
		drain, err := time.ParseDuration(s.Environment["ONCEPAY_DRAIN"])
		grace, err2 := time.ParseDuration(s.StopGrace)
		// Beside the drain: 5 s to give up, 10 s for the relay, 10 s to close, and some for readiness, HTTP and metrics.
		if err != nil || err2 != nil || grace < drain+30*time.Second {
			t.Errorf("%s is killed after %q, and drains for %q", name, s.StopGrace, s.Environment["ONCEPAY_DRAIN"])
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s is restarted %q", name, s.Restart)
		}
	}
	for _, name := range append(f.nodes(t), "postgres") {
		if len(f.Services[name].Healthcheck) == 0 {
			t.Errorf("%s has no health check", name)
		}
	}
}

// TestPostgres: a commit that was answered is on disk.
func TestPostgres(t *testing.T) {
	t.Parallel()
	f := load(t)
	command := words(f.Services["postgres"].Command)
	for _, want := range []string{"-cfsync=on", "-csynchronous_commit=on", "-cfull_page_writes=on"} {
		if !strings.Contains(command, want) {
			t.Errorf("PostgreSQL runs without %s", want)
		}
	}
	for _, n := range f.Services["postgres"].Networks {
		if !f.Networks[n].Internal {
			t.Errorf("PostgreSQL is on %s, which leads outside", n)
		}
	}
	major := regexp.MustCompile(`^postgres:(\d+)`).FindStringSubmatch(f.Services["postgres"].Image)
	if n, err := strconv.Atoi(slices.Concat(major, []string{"", "0"})[1]); err != nil || n < 15 {
		t.Errorf("PostgreSQL is %s", f.Services["postgres"].Image)
	}
}

// TestSimulator: it runs only where its profile is asked for.
func TestSimulator(t *testing.T) {
	t.Parallel()
	f := load(t)
	profiles := map[string][]string{"stripe": {"simulator"}, "oncepay": {"tools"}}
	for name, s := range f.Services {
		if !slices.Equal(s.Profiles, profiles[name]) {
			t.Errorf("%s has profiles %v", name, s.Profiles)
		}
	}
}
