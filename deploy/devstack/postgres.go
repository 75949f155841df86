package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopLimit bounds how long Close waits for an orderly stop.
const stopLimit = 15 * time.Second

// PostgresOptions says which PostgreSQL to start; the zero value is a durable
// server on a free port with a temporary data directory.
type PostgresOptions struct {
	// DataDir is PostgreSQL's data directory, made when missing, kept at Close and
	// taken over when an earlier process left it. "" is a temporary one, removed
	// at Close. For root, a directory below a private home becomes a symbolic link
	// to one under /var/lib/oncepay, where an unprivileged user can reach it.
	DataDir string
	// Port is the TCP port on 127.0.0.1; 0 finds a free one.
	Port int
	// FastUnsafe switches fsync off: commits survive the end of PostgreSQL (kill -9
	// too), but not of the machine. For tests.
	FastUnsafe bool
	// Settings are further server settings; they win over the defaults here.
	Settings map[string]string
}

// Postgres is a running server and everything needed to start it again. Its
// methods may be called from any goroutine.
type Postgres struct {
	options  PostgresOptions
	bin      binaries
	as       account
	dataDir  string // real path
	sockets  string // private directory of the unix socket
	password string
	watch    *watcher
	lock     *dirLock

	mu     sync.Mutex // serialises start and stop; guards what follows
	port   int
	proc   *child
	closed bool
}

// StartPostgres starts PostgreSQL 15 or newer, found on PATH or where packages
// put it, and returns when it answers. Where none is installed it is fetched,
// except for root; the error then names what to install. The context bounds the
// start only.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	stop := "INT"
	if options.DataDir == "" {
		stop = "QUIT"
	}
	watch, err := startWatcher(stop)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	p := &Postgres{options: options, watch: watch, port: options.Port}
	if err := p.open(ctx); err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.Join(err, p.Close()))
	}
	return p, nil
}

func (p *Postgres) open(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.launch(ctx)
}

// prepare brings the data directory into the state in which a server can start.
func (p *Postgres) prepare(ctx context.Context) (err error) {
	if p.options.DataDir != "" {
		if p.dataDir, err = resolveDataDir(p.options.DataDir); err != nil {
			return err
		}
	}
	if p.as, err = runAccount(p.dataDir); err != nil {
		return err
	}
	parent, err := tempParent(p.as, p.options.FastUnsafe && p.dataDir == "")
	if err != nil {
		return err
	}
	if p.sockets, err = p.watch.TempDir(parent, "oncepay-pg-"); err != nil {
		return err
	}
	if err := p.as.own(p.sockets); err != nil {
		return err
	}
	if p.dataDir == "" {
		p.dataDir = filepath.Join(p.sockets, "data")
	}
	exists, err := isDataDir(p.dataDir)
	if err != nil {
		return err
	}
	if p.bin, err = chooseBinaries(ctx, p.as, p.dataDir); err != nil {
		return err
	}
	if !exists {
		if p.dataDir, err = relocate(p.dataDir, p.as); err != nil {
			return err
		}
		if err := initialise(ctx, p.watch, p.bin, p.as, p.dataDir, p.options.FastUnsafe); err != nil {
			return err
		}
	}
	if p.lock, err = lockDir(p.dataDir); err != nil {
		return err
	}
	if err := takeOver(ctx, p.dataDir); err != nil {
		return err
	}
	if err := checkPort(p.options.Port); err != nil {
		return err
	}
	secret, err := os.ReadFile(filepath.Join(p.dataDir, passwordFile))
	if err != nil {
		return fmt.Errorf("data directory %s was not made by this program (%w): name another one", p.dataDir, err)
	}
	p.password = strings.TrimSpace(string(secret))
	return nil
}

// DSN is the connection string of a database as a URL; "" is the database
// "postgres".
func (p *Postgres) DSN(database string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dsn(database)
}

func (p *Postgres) dsn(database string) string {
	if database == "" {
		database = "postgres"
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, p.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port is the TCP port on 127.0.0.1; it stays the same over restarts.
func (p *Postgres) Port() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.port
}

// Pid is the process id of the postmaster, 0 while it is stopped.
func (p *Postgres) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil || !p.proc.alive() {
		return 0
	}
	return p.proc.pid
}

// DataDir is the real path of the data directory; the server's log lies in it as
// oncepay.log.
func (p *Postgres) DataDir() string { return p.dataDir }

// Exited is closed when the present postmaster has ended, for whatever reason.
func (p *Postgres) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc.exited
}

// Stop ends the server in order (clients are cut, a checkpoint is written) and at
// once when the context is done. Restart starts it again.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop(ctx, syscall.SIGINT)
}

// Kill ends the server with SIGKILL and waits until it is gone: the crash that
// tests want. Restart starts it again.
func (p *Postgres) Kill(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop(ctx, syscall.SIGKILL)
}

// Restart ends the server at once (SIGQUIT: no checkpoint, every client is cut) if
// it runs, and starts it on the same port and data.
func (p *Postgres) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("postgres: is closed")
	}
	if err := p.stop(ctx, syscall.SIGQUIT); err != nil {
		return err
	}
	if err := p.launch(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// Close stops the server and removes what was temporary. It may be called again.
func (p *Postgres) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	sig := syscall.SIGINT
	if p.options.DataDir == "" {
		sig = syscall.SIGQUIT // nobody reads this data again: no checkpoint
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := errors.Join(p.stop(ctx, sig), p.watch.Close())
	p.lock.release()
	return err
}

// stop signals the postmaster and waits for its end, with sharper signals once
// the context is done. The caller holds p.mu.
func (p *Postgres) stop(ctx context.Context, sig syscall.Signal) error {
	if p.proc == nil || !p.proc.alive() {
		return nil
	}
	limit := ctx.Done()
	for {
		if err := syscall.Kill(p.proc.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("postgres: stop: %w", err)
		}
		select {
		case <-p.proc.exited:
			return nil
		case <-limit:
		}
		if sig == syscall.SIGKILL {
			<-p.proc.exited
			return nil
		}
		if sig == syscall.SIGQUIT {
			sig = syscall.SIGKILL
		} else {
			sig = syscall.SIGQUIT
		}
		after, cancel := context.WithTimeout(context.Background(), 6*time.Second)
		defer cancel()
		limit = after.Done()
	}
}
