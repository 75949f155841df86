package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit bounds one start, crash recovery included.
const startLimit = 2 * time.Minute

// launch starts the postmaster and waits until it answers. What goes away by
// itself is tried again: a port that somebody just took, and the shared memory
// of a killed postmaster, which its last children hold for some milliseconds.
// The caller holds p.mu.
func (p *Postgres) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	fresh := p.port == 0
	for attempt := 1; ; attempt++ {
		if fresh {
			port, err := freePort()
			if err != nil {
				return err
			}
			p.port = port
		}
		said, err := p.launchOnce(ctx)
		if err == nil {
			return nil
		}
		if attempt == 100 || !passing(said) {
			return fmt.Errorf("%w: %s", err, lastLines(said))
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), lastLines(said))
		}
	}
}

// passing tells failures that another attempt may cure from the server's words,
// which are English because it runs with the C locale.
func passing(said string) bool {
	for _, words := range []string{
		"still in use", // pre-existing shared memory block
		"could not bind",
		"Address already in use",
		"lock file \"postmaster.pid\" already exists",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

func lastLines(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// launchOnce returns what the server logged when it did not come up.
func (p *Postgres) launchOnce(ctx context.Context) (said string, err error) {
	logPath := filepath.Join(p.dataDir, logFile)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	if err := p.as.own(logPath); err != nil {
		return "", err
	}
	death := syscall.SIGINT
	if p.options.DataDir == "" {
		death = syscall.SIGQUIT
	}
	proc, err := p.watch.start(childSpec{kind: "run", as: p.as, dir: p.dataDir, argv: p.argv(), out: log, death: death})
	if err != nil {
		return "", err
	}
	p.proc = proc
	if err = p.awaitReady(ctx); err == nil {
		return "", nil
	}
	if p.proc.alive() {
		_ = p.stop(ctx, syscall.SIGQUIT)
	}
	text, _ := io.ReadAll(io.NewSectionReader(log, from, 64<<10))
	return string(text), err
}

// argv puts all settings on the command line, so that a kept data directory
// carries none of ours.
func (p *Postgres) argv() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(p.port),
		"unix_socket_directories": p.sockets,
		"unix_socket_permissions": "0700",
		"max_connections":         "200",
		"shared_buffers":          "128MB",
		"max_wal_size":            "1GB",
		"autovacuum":              "on",
		"jit":                     "off",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"fsync":                   "on",
	}
	if p.options.DataDir == "" {
		// Inside the data directory nothing outlives it, as files in /dev/shm would.
		settings["dynamic_shared_memory_type"] = "mmap"
	}
	if p.options.FastUnsafe {
		// synchronous_commit stays on: without it a killed server loses commits that
		// it has confirmed, and tests of crashes would see what never happens.
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["checkpoint_timeout"] = "1h"
		settings["max_wal_size"] = "256MB" // it may lie in memory
	}
	maps.Copy(settings, p.options.Settings)
	argv := []string{filepath.Join(p.bin.dir, "postgres"), "-D", p.dataDir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		argv = append(argv, "-c", name+"="+settings[name])
	}
	return argv
}

var errEnded = errors.New("the server ended while starting")

// awaitReady waits for the postmaster's own word in its pid file, then asks once.
func (p *Postgres) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.saysReady() {
		select {
		case <-tick.C:
		case <-p.proc.exited:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("the server did not become ready: %w", ctx.Err())
		}
	}
	conn, err := pgx.Connect(ctx, p.dsn("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// saysReady reads line 8 of postmaster.pid ("ready   "), which is this
// postmaster's when line 1 is its process id.
func (p *Postgres) saysReady() bool {
	content, err := os.ReadFile(filepath.Join(p.dataDir, "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(p.proc.pid) && strings.TrimSpace(lines[7]) == "ready"
}
