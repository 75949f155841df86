package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/payments/postgres"
)

// chaosRun is one run: processes, the links between them, and what producers know.
type chaosRun struct {
	o      ChaosOptions
	say    func(format string, args ...any)
	keeper *chaos.Keeper
	dir    string // temporary; logs are in it
	logs   map[string]*os.File
	logsMu sync.Mutex

	postgres  *devstack.Postgres
	processes map[string]*chaos.Process
	links     map[string][]*chaos.Link
	ports     map[string]int // of NATS nodes, their routes, doors and the simulator
	sim       *simControl

	env       map[string]string // without links: the operator's
	settings  app.Settings
	producing app.Settings
	apiKey    string
	doors     []string // addresses of the producers' links to the APIs
	client    *http.Client
	js        jetstream.JetStream
	store     *postgres.Store

	work      *chaosWork
	delivered atomic.Int64 // of its deliveries
	book      *book
	operated  operated

	took   time.Duration // of the faults
	rested time.Duration // from then until rest
}

// Times of a run.
const (
	chaosLease   = 5 * time.Second
	startMax     = 3 * time.Minute
	settleMax    = 120 * time.Second // without headway
	endWithin    = 12 * time.Second
	chaosStreams = "3" // replicas
	chaosTries   = "2" // few, so that there are payments that were given up, for operators to replay
)

// log is the log file of a process.
func (c *chaosRun) log(name string) io.Writer {
	c.logsMu.Lock()
	defer c.logsMu.Unlock()
	if f := c.logs[name]; f != nil {
		return f
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "logs", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return io.Discard
	}
	c.logs[name] = f
	return f
}

// start brings everything up, and whatever is up is closed by close.
func (c *chaosRun) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	if c.keeper, err = chaos.NewKeeper(); err != nil {
		return err
	}
	if c.dir, err = c.keeper.TempDir("oncepay-chaos-"); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return err
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.describeServers(); err != nil {
		return err
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.describeOurs(); err != nil {
		return err
	}
	return c.startAll(ctx, slices.Concat(chaosWorkers, chaosDoors))
}

func (c *chaosRun) choosePorts() error {
	for _, name := range slices.Concat(chaosNodes, []string{"nats-1/route", "nats-2/route", "nats-3/route", nameStripe}, chaosDoors) {
		port, err := devstack.FreePort()
		if err != nil {
			return err
		}
		c.ports[name] = port
	}
	return nil
}

func (c *chaosRun) addr(name string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ports[name]))
}

// ourselves is the command line of this program with a hidden command, and an environment without settings of ours.
func ourselves(args ...string) (argv, env []string, err error) {
	path, err := os.Executable()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "ONCEPAY_") || name == "ONCEPAY_SABOTAGE" {
			env = append(env, pair)
		}
	}
	return append([]string{path}, args...), env, err
}

func (c *chaosRun) describe(name string, settings map[string]string, args ...string) error {
	argv, env, err := ourselves(args...)
	for name, value := range settings {
		env = append(env, name+"="+value)
	}
	c.processes[name] = chaos.NewProcess(chaos.Spec{Name: name, Argv: argv, Env: env, Logs: c.log(name)}, c.keeper)
	return err
}

func (c *chaosRun) describeServers() error {
	var routes []int
	for _, name := range chaosNodes {
		routes = append(routes, c.ports[name+"/route"])
	}
	for _, name := range chaosNodes {
		node := chaos.Node{Name: name, Port: c.ports[name], Route: c.ports[name+"/route"], Routes: routes, Store: filepath.Join(c.dir, name)}
		text, err := json.Marshal(node)
		if err != nil {
			return err
		}
		if err := c.describe(name, nil, nodeCommand, string(text)); err != nil {
			return err
		}
	}
	ledger := filepath.Join(c.dir, "stripe.ledger")
	return c.describe(nameStripe, nil, simulatorCommand, "--addr", c.addr(nameStripe), "--data", ledger, "--seed", fmt.Sprint(c.o.Seed))
}

// startAll starts processes side by side.
func (c *chaosRun) startAll(ctx context.Context, names []string) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = c.processes[name].Start(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (c *chaosRun) startServers(ctx context.Context) error {
	servers := make(chan error, 1)
	go func() { servers <- c.startAll(ctx, append([]string{nameStripe}, chaosNodes...)) }()
	var err error
	c.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{})
	return errors.Join(err, <-servers)
}

// prepare makes database, tenant, key and streams, and opens what the judge looks through, which knows no links.
func (c *chaosRun) prepare(ctx context.Context) (err error) {
	if err := ensureDatabase(ctx, c.postgres, "oncepay"); err != nil {
		return err
	}
	c.env = (&stack{database: c.postgres.DSN("oncepay"), simURL: "http://" + c.addr(nameStripe)}).settings()
	var nodes []string
	for _, name := range chaosNodes {
		nodes = append(nodes, "nats://"+c.addr(name))
	}
	c.env["ONCEPAY_NATS_URL"], c.env["ONCEPAY_STREAM_REPLICAS"] = strings.Join(nodes, ","), chaosStreams
	c.env["ONCEPAY_LOG_LEVEL"] = "warn"
	if c.o.KeysOff { // no lease ends and no call times out where nothing fails
		maps.Copy(c.env, map[string]string{"ONCEPAY_STRIPE_TIMEOUT": "20s", "ONCEPAY_LEASE": "60s", "ONCEPAY_ACK_WAIT": "30s"})
	}
	if c.settings, err = app.Load(source(c.env)); err != nil {
		return err
	}
	if c.apiKey, err = prepare(ctx, c.env); err != nil {
		return err
	}
	if c.store, err = postgres.Open(ctx, c.settings.DatabaseURL, postgres.Options{PoolSize: 4}); err != nil {
		return err
	}
	log := app.NewLog(c.log("judge"), "error")
	if _, c.js, err = app.ConnectNATS(ctx, c.settings, "oncepay-chaos", log); err != nil {
		return err
	}
	if err := app.EnsureStreams(ctx, c.js, c.settings, log); err != nil {
		return err
	}
	c.sim = &simControl{url: "http://" + c.addr(nameStripe), keysOff: c.o.KeysOff, background: !c.o.KeysOff}
	return c.sim.apply(ctx)
}

// connect opens a session of the judge's own.
func (c *chaosRun) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return pgx.Connect(ctx, c.postgres.DSN("postgres"))
}

// link makes the links of one name, to one or several servers.
func (c *chaosRun) link(name string, targets ...string) (addrs []string, err error) {
	for _, target := range targets {
		l, err := chaos.NewLink(target)
		if err != nil {
			return nil, err
		}
		c.links[name] = append(c.links[name], l)
		addrs = append(addrs, l.Addr())
	}
	return addrs, nil
}

func (c *chaosRun) linkNATS(name string) (string, error) {
	addrs, err := c.link(name+toNATS, c.addr(chaosNodes[0]), c.addr(chaosNodes[1]), c.addr(chaosNodes[2]))
	for i := range addrs {
		addrs[i] = "nats://" + addrs[i]
	}
	return strings.Join(addrs, ","), err
}

// describeOurs makes the links of workers, APIs and producers.
func (c *chaosRun) describeOurs() error {
	for _, name := range slices.Concat(chaosWorkers, chaosDoors) {
		env, err := c.linked(name)
		if err != nil {
			return err
		}
		env["ONCEPAY_CONCURRENCY"], env["ONCEPAY_MAX_TRIES"] = "64", chaosTries
		env["ONCEPAY_ROLES"], env["ONCEPAY_HTTP_ADDR"] = app.RoleWorker+","+app.RoleRelay, "off"
		if slices.Contains(chaosDoors, name) {
			env["ONCEPAY_ROLES"], env["ONCEPAY_HTTP_ADDR"] = app.RoleIngress+","+app.RoleRelay, c.addr(name)
		}
		if err := c.describe(name, env, workerCommand); err != nil {
			return err
		}
	}
	env := maps.Clone(c.env)
	var err error
	if env["ONCEPAY_NATS_URL"], err = c.linkNATS(producing); err != nil {
		return err
	}
	if c.producing, err = app.Load(source(env)); err != nil {
		return err
	}
	for _, name := range chaosDoors {
		addrs, err := c.link(producing+">"+name, c.addr(name))
		if err != nil {
			return err
		}
		c.doors = append(c.doors, addrs...)
	}
	return nil
}

// linked are the settings of a process that reaches everything over links.
func (c *chaosRun) linked(name string) (map[string]string, error) {
	env := maps.Clone(c.env)
	database, err := url.Parse(c.settings.DatabaseURL)
	if err != nil {
		return nil, err
	}
	addrs, err := c.link(name+toPostgres, database.Host)
	if err != nil {
		return nil, err
	}
	database.Host = addrs[0]
	env["ONCEPAY_DATABASE_URL"] = database.String()
	if addrs, err = c.link(name+toStripe, c.addr(nameStripe)); err != nil {
		return nil, err
	}
	env["ONCEPAY_STRIPE_URL"] = "http://" + addrs[0]
	env["ONCEPAY_NATS_URL"], err = c.linkNATS(name)
	return env, err
}

// close ends everything; it may be called again.
func (c *chaosRun) close() {
	var all sync.WaitGroup
	closeAll := func(names []string) {
		for _, name := range names {
			if p := c.processes[name]; p != nil {
				all.Go(func() { p.Close(endWithin) })
			}
		}
		all.Wait()
	}
	closeAll(slices.Concat(chaosWorkers, chaosDoors))
	if c.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.store.Close(ctx)
	}
	if c.js != nil {
		c.js.Conn().Close()
	}
	closeAll(append([]string{nameStripe}, chaosNodes...))
	for _, list := range c.links {
		for _, l := range list {
			l.Close()
		}
	}
	if c.postgres != nil {
		_ = c.postgres.Close()
	}
	for _, f := range c.logs {
		_ = f.Close()
	}
	if c.keeper != nil {
		_ = c.keeper.Close()
	}
}
