package nats_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// patience bounds what a loaded machine may take for one step.
const patience = 2 * time.Minute

// TestMain ends the shared cluster.
func TestMain(m *testing.M) {
	devstacktest.NodeMain()
	code := m.Run()
	if shared.c != nil {
		if err := shared.c.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// shared is the cluster of the tests that only add messages; it ends with the test binary.
var shared struct {
	once sync.Once
	c    *cluster
	err  error
}

func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	shared.once.Do(func() { shared.c, shared.err = newCluster("acme", "globex-2") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.c
}

// ownCluster is for tests that change a cluster.
func ownCluster(t *testing.T, tenants ...string) *cluster {
	t.Helper()
	c, err := newCluster(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// cluster is three servers on loopback under the shipped configuration.
type cluster struct {
	dir     string
	servers []*devstacktest.Node // nil where one does not run
	// host:port of each node
	client, monitor, routes []string
}

// newCluster starts the shipped configuration, with a block for each further tenant made as docs/DEPLOY.md says, and the streams of an
// installation in it.
func newCluster(tenants ...string) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "oncepay-cluster-"); err != nil {
		return c, err
	}
	if err := os.CopyFS(filepath.Join(c.dir, "conf"), os.DirFS("conf")); err != nil {
		return c, err
	}
	for _, tenant := range tenants {
		if err := c.addTenant(tenant); err != nil {
			return c, err
		}
	}
	if _, err := c.prepare(); err != nil {
		return c, err
	}
	for range 3 { // between looking for a free port and listening somebody else may take it
		if err = c.startAll(); err == nil {
			break
		}
		c.stopAll()
	}
	if err != nil {
		return c, err
	}
	for i := range c.servers {
		if err := c.healthy(i); err != nil {
			return c, err
		}
	}
	// A cluster that is healthy may not know yet what each of its nodes has room for.
	return c, eventually(c.provision)
}

// startAll starts three new nodes on free ports.
func (c *cluster) startAll() error {
	ports, err := freePorts(9)
	if err != nil {
		return err
	}
	c.client, c.monitor, c.routes = ports[:3], ports[3:6], ports[6:]
	c.servers = make([]*devstacktest.Node, 3)
	for i := range c.servers {
		if err := c.start(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) stopAll() (err error) {
	for i, s := range c.servers {
		if s != nil {
			err = errors.Join(err, c.stop(i))
		}
	}
	c.servers = nil
	return err
}

func freePorts(n int) (addresses []string, err error) {
	for range n {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, fmt.Sprint("127.0.0.1:", port))
	}
	return addresses, nil
}

// file writes the configuration of node i: the shipped one with addresses and directory of this machine.
func (c *cluster) file(i int) (string, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "conf", "server.conf"))
	if err != nil {
		return "", err
	}
	text := string(data)
	for old, now := range map[string]string{
		"$NATS_SERVER_NAME":    fmt.Sprintf("nats-%d", i+1),
		"$NATS_MAX_FILE_STORE": "10GB",
		`"0.0.0.0:4222"`:       quote(c.client[i]),
		`"0.0.0.0:8222"`:       quote(c.monitor[i]),
		`"0.0.0.0:6222"`:       quote(c.routes[i]),
		`"/data"`:              quote(filepath.Join(c.dir, fmt.Sprintf("data-%d", i+1))),
	} {
		if strings.Count(text, old) != 1 {
			return "", fmt.Errorf("server.conf has %s %d times, and not once", old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, now, 1)
	}
	if err := c.fileRoutes(); err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "conf", fmt.Sprintf("node-%d.conf", i+1))
	return path, os.WriteFile(path, []byte(text), 0o600)
}

var routeTo = regexp.MustCompile(`@[^@"]*"`)

// fileRoutes puts this machine's addresses in place of the nodes' names, where the script wrote them.
func (c *cluster) fileRoutes() error {
	path := filepath.Join(c.dir, "conf", "passwords", "ROUTE.conf")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n := -1
	text := routeTo.ReplaceAllFunc(data, func([]byte) []byte { n++; return []byte("@" + c.routes[n] + `"`) })
	return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, text, 0o600))
}

func quote(s string) string { return `"` + s + `"` }

func (c *cluster) start(i int) error {
	path, err := c.file(i)
	if err != nil {
		return err
	}
	c.servers[i], err = devstacktest.StartNode(path)
	return err
}

func (c *cluster) stop(i int) error {
	s := c.servers[i]
	c.servers[i] = nil
	return s.Stop()
}

// healthy waits until a node's health check says what the compose file waits for.
func (c *cluster) healthy(i int) error {
	return eventually(func() error {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + c.monitor[i] + "/healthz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			why, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
			return fmt.Errorf("node %d: %s: %s", i+1, response.Status, why)
		}
		return nil
	})
}

// eventually asks a real server until it says yes.
func eventually(ask func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *cluster) close() error {
	return errors.Join(c.stopAll(), os.RemoveAll(c.dir))
}

// reload is what SIGHUP does to every node.
func (c *cluster) reload() error {
	for i, s := range c.servers {
		if _, err := c.file(i); err != nil {
			return err
		}
		if err := s.Reload(); err != nil {
			return err
		}
	}
	return nil
}

var block = regexp.MustCompile(`(?ms)^demo \{.*?^\}\n`)

// addTenant copies the block of the tenant demo, with the new name everywhere in it.
func (c *cluster) addTenant(name string) error {
	path := filepath.Join(c.dir, "conf", "tenants.conf")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	copied := block.Find(data)
	if copied == nil {
		return errors.New("tenants.conf has no block of demo to copy")
	}
	return os.WriteFile(path, append(data, strings.ReplaceAll(string(copied), "demo", name)...), 0o600)
}

// prepare runs the script that makes the passwords.
func (c *cluster) prepare(args ...string) (string, error) {
	env := os.Environ()
	for name, dir := range map[string]string{
		"NATS_CONF": "conf", "NATS_PASSWORDS": "conf/passwords", "POSTGRES_SECRETS": "postgres", "ONCEPAY_SECRETS": "oncepay",
	} {
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o700); err != nil {
			return "", err
		}
		env = append(env, name+"="+filepath.Join(c.dir, dir))
	}
	cmd := exec.Command("sh", append([]string{"../compose/prepare.sh"}, args...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("prepare.sh: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// client is a connection and what the server complained of on it.
type client struct {
	*nats.Conn
	t          *testing.T
	complaints chan error
	dropped    chan struct{}
}

// as connects as a user of the configuration.
func (c *cluster) as(t *testing.T, user string) *client {
	t.Helper()
	password, err := c.prepare("show", user)
	if err != nil {
		t.Fatal(err)
	}
	k := &client{t: t, complaints: make(chan error, 64), dropped: make(chan struct{}, 64)}
	k.Conn, err = connect(c.client, nats.UserInfo(user, password),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { k.complaints <- err }),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { k.dropped <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func connect(urls []string, options ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(strings.Join(urls, ","), append(options, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.Timeout(patience))...)
}

// quiet fails when the server complained of anything.
func (k *client) quiet() {
	k.t.Helper()
	if err := k.FlushTimeout(patience); err != nil {
		k.t.Fatal(err)
	}
	select {
	case err := <-k.complaints:
		k.t.Errorf("the server complains: %v", err)
	default:
	}
}

// undisturbed fails when the client was disconnected, or the server complained of anything.
func (k *client) undisturbed(who string) {
	k.t.Helper()
	select {
	case <-k.dropped:
		k.t.Errorf("%s was disconnected", who)
	default:
		k.quiet()
	}
}

// refused fails unless the server complains of the very thing that was just done.
func (k *client) refused(what string) {
	k.t.Helper()
	if err := k.FlushTimeout(patience); err != nil {
		k.t.Fatal(err)
	}
	select {
	case err := <-k.complaints:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), quote(what)) {
			k.t.Errorf("%s: the server complains of something else: %v", what, err)
		}
	case <-time.After(patience):
		k.t.Errorf("%s was not refused", what)
	}
}

func (k *client) jetstream() jetstream.JetStream {
	k.t.Helper()
	js, err := jetstream.New(k.Conn)
	if err != nil {
		k.t.Fatal(err)
	}
	return js
}

// settings are those of the compose file, but for the size.
var settings = schema.Settings{StreamMaxBytes: 64 << 20, Replicas: 3, AckWait: schema.DefaultAckWait}

// provision makes the streams as a worker does.
func (c *cluster) provision() error {
	password, err := c.prepare("show", "ONCEPAY")
	if err != nil {
		return err
	}
	nc, err := connect(c.client, nats.UserInfo("ONCEPAY", password))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	subjects := schema.Subjects{}
	return provision.Ensure(ctx, js, subjects.Streams(settings), subjects.Consumers(settings))
}

// stored is how many messages a stream took since its beginning.
func stored(t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}
