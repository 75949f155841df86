// Package devstacktest gives tests real services: one PostgreSQL and one NATS
// server per test binary, started on first use and stopped by Run.
//
//	func TestMain(m *testing.M) { devstacktest.Run(m) }
//
// Every test takes a database and a prefix of its own (Database, Prefix) and may
// so run in parallel with all others. A service that cannot start fails the test.
package devstacktest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack"
	"go.uber.org/goleak"
)

// startLimit bounds the start of a service: machines that run many test binaries
// at once are slow.
const startLimit = 2 * time.Minute

// lazy is a service that is started once, on first use.
type lazy[S interface{ Close() error }] struct {
	once    sync.Once
	service S
	err     error
	started bool
}

func (l *lazy[S]) get(tb testing.TB, start func() (S, error)) S {
	tb.Helper()
	l.once.Do(func() {
		l.service, l.err = start()
		l.started = l.err == nil
	})
	if l.err != nil {
		tb.Fatalf("devstacktest: %v", l.err)
	}
	return l.service
}

// stop closes the service if it runs; it must not race with get.
func (l *lazy[S]) stop() error {
	if !l.started {
		return nil
	}
	l.started = false
	return l.service.Close()
}

var (
	sharedPostgres lazy[*devstack.Postgres]
	sharedNATS     lazy[*devstack.NATS]
)

// Postgres is this test binary's PostgreSQL, without fsync: commits survive Kill
// and Restart, not the machine. A test that stops it disturbs its neighbours and
// starts one of its own with devstack.StartPostgres instead.
func Postgres(tb testing.TB) *devstack.Postgres {
	tb.Helper()
	return sharedPostgres.get(tb, func() (*devstack.Postgres, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		return devstack.StartPostgres(ctx, devstack.PostgresOptions{FastUnsafe: true})
	})
}

// NATS is this test binary's NATS server with JetStream and monitoring, its
// store in memory where that is possible. A test that stops it starts one of its own with devstack.StartNATS.
func NATS(tb testing.TB) *devstack.NATS {
	tb.Helper()
	return sharedNATS.get(tb, func() (*devstack.NATS, error) {
		return devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true, Monitor: true})
	})
}

// Prefix is a token that no other test has: lower-case letters and digits, fit for
// a NATS subject, a stream or consumer name and an SQL identifier.
func Prefix(tb testing.TB) string {
	tb.Helper()
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		tb.Fatalf("devstacktest: %v", err)
	}
	return "t" + hex.EncodeToString(b[:])
}

// Run runs the tests, stops the services, looks for goroutines that the tests
// left behind, and exits. It is all that TestMain needs; options extend what
// goleak ignores.
func Run(m *testing.M, options ...goleak.Option) {
	NodeMain()
	os.Exit(run(m, options))
}

func run(m *testing.M, options []goleak.Option) int {
	code := m.Run()
	if err := errors.Join(sharedPostgres.stop(), sharedNATS.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "devstacktest: stop:", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code // a failed test may well have left something
	}
	if err := leaks(options); err != nil {
		fmt.Fprintln(os.Stderr, "devstacktest:", strings.TrimSpace(err.Error()))
		return 1
	}
	return 0
}

// leaks looks for goroutines until there are none that should not be: one look has half a second, and on a busy machine what is ending needs longer.
func leaks(options []goleak.Option) (err error) {
	for range 10 {
		if err = goleak.Find(options...); err == nil {
			break
		}
	}
	return err
}
