package devstack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsReady bounds one start, the recovery of the store included. A server that cannot start says so at once; one on a busy machine needs its time.
const natsReady = 2 * time.Minute

// portPatience is for how long a restarted server waits for its port.
const portPatience = 10 * time.Second

// NATSOptions says which NATS server to start; the zero value is one on a free
// port with a temporary store and without monitoring.
type NATSOptions struct {
	// StoreDir is JetStream's file store, made when missing and kept at Close. "" is
	// a temporary one, removed at Close.
	StoreDir string
	// Port is the client port on 127.0.0.1; 0 finds a free one.
	Port int
	// Monitor serves the monitoring endpoints on 127.0.0.1, on MonitorPort or, when
	// that is 0, on a free port.
	Monitor     bool
	MonitorPort int
	// MaxPayload is the largest message in bytes; 0 is 1 MiB.
	MaxPayload int32
	// MaxStore bounds JetStream's store in bytes; 0 lets the server choose by the
	// free space on the disk.
	MaxStore int64
	// FastUnsafe keeps a temporary store in memory where that is possible: syncing
	// costs nothing there, and nothing survives the machine. For tests.
	FastUnsafe bool
}

// NATS is a NATS server inside this process, with JetStream. Its methods may be
// called from any goroutine.
type NATS struct {
	options server.Options
	watch   *watcher // of a temporary store, else nil
	lock    *dirLock

	mu     sync.Mutex
	server *server.Server
	closed bool
}

// StartNATS starts a server with JetStream that syncs every write to disk, and
// returns when it answers.
func StartNATS(options NATSOptions) (*NATS, error) {
	n := &NATS{options: server.Options{
		ServerName:             "oncepay-dev",
		Host:                   "127.0.0.1",
		Port:                   options.Port,
		JetStream:              true,
		SyncAlways:             true,
		MaxPayload:             options.MaxPayload,
		JetStreamMaxStore:      options.MaxStore,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	}}
	if options.Monitor {
		n.options.HTTPHost, n.options.HTTPPort = "127.0.0.1", options.MonitorPort
	}
	if n.options.MaxPayload == 0 {
		n.options.MaxPayload = 1 << 20
	}
	if err := n.open(options); err != nil {
		return nil, fmt.Errorf("nats: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *NATS) open(options NATSOptions) (err error) {
	store := options.StoreDir
	if store == "" {
		if n.watch, err = startWatcher("QUIT"); err != nil {
			return err
		}
		parent, err := tempParent(account{}, options.FastUnsafe)
		if err != nil {
			return err
		}
		if store, err = n.watch.TempDir(parent, "oncepay-nats-"); err != nil {
			return err
		}
	} else {
		if store, err = filepath.Abs(store); err != nil {
			return err
		}
		if err := os.MkdirAll(store, 0o700); err != nil {
			return err
		}
		if n.lock, err = lockDir(store); err != nil {
			return err
		}
	}
	n.options.StoreDir = store
	if err := errors.Join(checkPort(options.Port), checkPort(options.MonitorPort)); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.launchFree(options)
}

// launchFree looks for free ports until the server has got them: between looking
// and listening somebody else may take one.
func (n *NATS) launchFree(options NATSOptions) (err error) {
	for range 10 {
		if options.Port == 0 {
			if n.options.Port, err = freePort(); err != nil {
				return err
			}
		}
		if options.Monitor && options.MonitorPort == 0 {
			if n.options.HTTPPort, err = freePort(); err != nil {
				return err
			}
		}
		if err = n.launch(); err == nil || options.Port != 0 {
			return err
		}
	}
	return err
}

// launch starts a server on the ports and the store of n. The caller holds n.mu.
func (n *NATS) launch() error {
	options := n.options // the server writes into its options
	s, err := server.NewServer(&options)
	if err != nil {
		return err
	}
	log := &natsLog{}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	deadline := time.Now().Add(natsReady)
	for !s.ReadyForConnections(100 * time.Millisecond) {
		if fatal := log.fatal(); fatal != "" || time.Now().After(deadline) {
			s.Shutdown()
			s.WaitForShutdown()
			return fmt.Errorf("server does not start on %s: %s", net.JoinHostPort(n.options.Host, strconv.Itoa(n.options.Port)), log.text())
		}
	}
	n.server = s
	return nil
}

// URL is where clients connect; it stays the same over restarts.
func (n *NATS) URL() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return "nats://" + net.JoinHostPort(n.options.Host, strconv.Itoa(n.options.Port))
}

// MonitorURL is where the monitoring endpoints are, "" without monitoring.
func (n *NATS) MonitorURL() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.options.HTTPPort == 0 {
		return ""
	}
	return "http://" + net.JoinHostPort(n.options.HTTPHost, strconv.Itoa(n.options.HTTPPort))
}

// Stop ends the server and cuts its clients. Restart starts it again.
func (n *NATS) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
}

func (n *NATS) stop() {
	if n.server == nil {
		return
	}
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.server = nil
}

// Restart ends the server if it runs and starts it on the same port and store. A
// child process that was forked meanwhile keeps a socket of the last one until it
// has begun its program: the port is asked for again for a while.
func (n *NATS) Restart() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errors.New("nats: is closed")
	}
	n.stop()
	for until := time.Now().Add(portPatience); ; {
		err := n.launch()
		if err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "address already in use") || time.Now().After(until) {
			return fmt.Errorf("nats: %w", err)
		}
	}
}

// Close ends the server and removes a temporary store. It may be called again.
func (n *NATS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	n.stop()
	n.lock.release()
	if n.watch == nil {
		return nil
	}
	return n.watch.Close()
}

// natsLog keeps the errors of one server to explain a failed start, and nothing
// else: JetStream is talkative, and the terminal belongs to the program.
type natsLog struct {
	mu     sync.Mutex
	errs   []string
	deadly string
}

// Noticef drops the line.
func (*natsLog) Noticef(string, ...any) {}

// Warnf drops the line.
func (*natsLog) Warnf(string, ...any) {}

// Debugf drops the line.
func (*natsLog) Debugf(string, ...any) {}

// Tracef drops the line.
func (*natsLog) Tracef(string, ...any) {}

// Errorf keeps the line, up to a handful.
func (l *natsLog) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) < 5 {
		l.errs = append(l.errs, fmt.Sprintf(format, v...))
	}
}

// Fatalf keeps the line; the server gives up after it.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadly = fmt.Sprintf(format, v...)
}

func (l *natsLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadly
}

func (l *natsLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(l.errs, l.deadly), "; ")
}
