package doctor

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/oncepay/oncepay/deploy/devstack"
)

// testCluster examines three servers in health, with one of their endpoints unknown, and with one server gone.
func testCluster(t *testing.T, s *services) {
	w := s.bare(t)
	nodes := startCluster(t, 3)
	var urls, monitors []string
	for _, n := range nodes {
		urls = append(urls, n.ClientURL())
		monitors = append(monitors, fmt.Sprintf("http://%s", n.MonitorAddr()))
	}
	w.values["ONCEPAY_NATS_URL"], w.values["ONCEPAY_NATS_MONITOR_URL"] = strings.Join(urls, ","), strings.Join(monitors, ",")
	w.values["ONCEPAY_STREAM_REPLICAS"] = "3"
	w.provision()
	w.settles(map[string]expectation{"replicas": is(OK, "3 copies of each stream and durable, all current"), "nats_sync": is(OK, "seen on 3 of 3 servers"), "nats_versions": is(OK, "on 3 servers")})

	w.values["ONCEPAY_NATS_MONITOR_URL"] = monitors[0] + "," + monitors[1]
	w.expect(map[string]expectation{"nats_sync": is(Warning, "seen on 2 of 3 servers")})
	w.values["ONCEPAY_NATS_MONITOR_URL"] = strings.Join(monitors, ",")

	nodes[2].Shutdown()
	nodes[2].WaitForShutdown()
	w.values["ONCEPAY_NATS_URL"] = urls[0] + "," + urls[1]
	w.settles(map[string]expectation{
		"replicas": is(Failed, "node-2 is offline", "start the servers that are away"), "nats_sync": is(Warning, "seen on 2 of 3 servers"),
		"nats_monitor": is(Warning, "1 of 3 endpoints are not seen; endpoint 3"),
	})
}

// settles examines until the results are as they should be, or time is over: a cluster elects, and notices that a peer is gone, in its own time.
func (w *world) settles(want map[string]expectation) {
	w.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		r := w.examine()
		as := func(c Check) bool {
			e, listed := want[c.Name]
			return c.Result == e.result || !listed && c.Result == OK
		}
		if !slices.ContainsFunc(r.Checks, func(c Check) bool { return !as(c) }) || time.Now().After(deadline) {
			w.judge(r, want)
			return
		}
	}
}

// startCluster starts servers with JetStream that know each other.
func startCluster(t *testing.T, n int) []*server.Server {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for range n {
		port, err := devstack.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	nodes := make([]*server.Server, n)
	for i := range nodes {
		o := &server.Options{
			ServerName: fmt.Sprintf("node-%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: -1, NoSigs: true, NoLog: true,
			JetStream: true, SyncAlways: true, StoreDir: t.TempDir(), DisableJetStreamBanner: true, Routes: routes,
			Cluster: server.ClusterOpts{Name: "trio", Host: "127.0.0.1", Port: ports[i]},
		}
		node, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = node
		t.Cleanup(func() { node.Shutdown(); node.WaitForShutdown() })
	}
	for _, node := range nodes {
		node.Start()
	}
	for _, node := range nodes {
		if !node.ReadyForConnections(patience) {
			t.Fatal("the servers do not start")
		}
	}
	return nodes
}
