package devstacktest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack"
)

// Cluster starts servers with JetStream and monitoring that know each other, node-0 and so on, each in a process of its own. They end with the test.
func Cluster(tb testing.TB, size int) []*Node {
	tb.Helper()
	var nodes []*Node
	var err error
	for range 3 { // between looking for a free port and listening somebody else may take it
		if nodes, err = startCluster(tb.TempDir(), size); err == nil {
			break
		}
	}
	if err != nil {
		tb.Fatalf("devstacktest: %v", err)
	}
	tb.Cleanup(func() {
		if err := stopNodes(nodes); err != nil {
			tb.Errorf("devstacktest: %v", err)
		}
	})
	return nodes
}

func startCluster(dir string, size int) (nodes []*Node, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, stopNodes(nodes))
		}
	}()
	var addresses, routes []string
	for range size {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		address := fmt.Sprint("127.0.0.1:", port)
		addresses, routes = append(addresses, address), append(routes, fmt.Sprintf("%q", "nats://"+address))
	}
	for i, address := range addresses {
		path := filepath.Join(dir, fmt.Sprintf("node-%d.conf", i))
		text := fmt.Sprintf(`server_name: "node-%d"
listen: "127.0.0.1:-1"
http: "127.0.0.1:-1"
jetstream { store_dir: %q, sync_interval: always }
cluster { name: trio, listen: %q, no_advertise: true, routes: [%s] }
`, i, filepath.Join(dir, fmt.Sprint("store-", i)), address, strings.Join(routes, ", "))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nodes, err
		}
		node, err := StartNode(path)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func stopNodes(nodes []*Node) (err error) {
	for _, n := range nodes {
		err = errors.Join(err, n.Stop())
	}
	return err
}
