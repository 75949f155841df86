package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// testCluster examines three servers in health, with one of their endpoints unknown, and with one server gone.
func testCluster(t *testing.T, s *services) {
	w := s.bare(t)
	nodes := devstacktest.Cluster(t, 3)
	var urls, monitors []string
	for _, n := range nodes {
		urls = append(urls, n.ClientURL)
		monitors = append(monitors, n.MonitorURL)
	}
	w.values["ONCEPAY_NATS_URL"], w.values["ONCEPAY_NATS_MONITOR_URL"] = strings.Join(urls, ","), strings.Join(monitors, ",")
	w.values["ONCEPAY_STREAM_REPLICAS"] = "3"
	w.provision()
	w.settles(map[string]expectation{"replicas": is(OK, "3 copies of each stream and durable, all current"), "nats_sync": is(OK, "seen on 3 of 3 servers"), "nats_versions": is(OK, "on 3 servers")})

	w.values["ONCEPAY_NATS_MONITOR_URL"] = monitors[0] + "," + monitors[1]
	w.expect(map[string]expectation{"nats_sync": is(Warning, "seen on 2 of 3 servers")})
	w.values["ONCEPAY_NATS_MONITOR_URL"] = strings.Join(monitors, ",")

	if err := nodes[2].Stop(); err != nil {
		t.Fatal(err)
	}
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
