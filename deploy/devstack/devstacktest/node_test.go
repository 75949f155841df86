package devstacktest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// A node takes another configuration while it runs, and says so when it cannot.
func TestNodeReloads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "node.conf")
	write := func(password string) {
		t.Helper()
		text := fmt.Sprintf("server_name: one\nlisten: \"127.0.0.1:-1\"\nauthorization { user: u, password: %s }\n", password)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	n, err := StartNode(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Stop() })
	connects := func(password string) bool {
		nc, err := nats.Connect(n.ClientURL, nats.UserInfo("u", password))
		if err == nil {
			nc.Close()
		}
		return err == nil
	}
	if n.Name != "one" || n.MonitorURL != "" || !connects("first") || connects("second") {
		t.Errorf("the node %+v does not go by its configuration", n)
	}
	write("second")
	if err := n.Reload(); err != nil || connects("first") || !connects("second") {
		t.Errorf("the node does not take the new configuration: %v", err)
	}
	write("{")
	if err := n.Reload(); err == nil || !connects("second") {
		t.Errorf("a configuration that is none: %v", err)
	}
	if err := n.Stop(); err != nil || connects("second") {
		t.Errorf("the node does not stop: %v", err)
	}
}

// A node that cannot start says why, and does not keep whoever starts it waiting.
func TestNodeThatCannotStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	path := filepath.Join(t.TempDir(), "node.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, "listen: %q\n", l.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := StartNode(path); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v, %v", n, err)
	}
}
