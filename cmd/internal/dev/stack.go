package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// stripeKey is the key that the simulator is given; it is no secret.
const stripeKey = "sk_test_oncepay_dev"

// stackOptions say where the parts of a stack stand; the zero value is a temporary stack on free ports.
type stackOptions struct {
	dataDir      string
	natsPort     int
	postgresPort int
	stripeAddr   string
	seed         uint64
	// without leaves parts out that the caller has elsewhere.
	withoutPostgres, withoutStripe bool
}

// stack is JetStream, PostgreSQL and the simulator on this machine.
type stack struct {
	nats      *devstack.NATS
	postgres  *devstack.Postgres
	sim       *stripesim.Server
	simServer *http.Server
	simURL    string
	database  string // DSN
}

// startStack starts the parts one after another; what was started is stopped again when a later one fails.
func startStack(ctx context.Context, o stackOptions) (_ *stack, err error) {
	s := &stack{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	dir := func(name string) string {
		if o.dataDir == "" {
			return ""
		}
		return filepath.Join(o.dataDir, name)
	}
	if o.dataDir != "" {
		if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
	if s.nats, err = devstack.StartNATS(devstack.NATSOptions{StoreDir: dir("nats"), Port: o.natsPort, Monitor: true}); err != nil {
		return nil, err
	}
	if !o.withoutStripe {
		if err := s.startSimulator(o, dir("stripe.ledger")); err != nil {
			return nil, err
		}
	}
	if !o.withoutPostgres {
		if s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{DataDir: dir("postgres"), Port: o.postgresPort}); err != nil {
			return nil, err
		}
		s.database = s.postgres.DSN("oncepay")
		if err := ensureDatabase(ctx, s.postgres, "oncepay"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *stack) startSimulator(o stackOptions, ledger string) (err error) {
	if s.sim, err = stripesim.New(stripesim.Options{Path: ledger, Seed: o.seed}); err != nil {
		return err
	}
	if s.simURL, s.simServer, err = serveLocal(o.stripeAddr, s.sim); err != nil {
		return &app.UsageError{Text: "--stripe: " + err.Error()}
	}
	return nil
}

// serveLocal serves a handler on addr, or on a free loopback port.
func serveLocal(addr string, h http.Handler) (url string, server *http.Server, err error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), server, nil
}

// close stops everything that was started.
func (s *stack) close() {
	if s.sim != nil {
		_ = s.sim.Close()
	}
	if s.simServer != nil {
		_ = s.simServer.Close()
	}
	if s.postgres != nil {
		_ = s.postgres.Close()
	}
	if s.nats != nil {
		_ = s.nats.Close()
	}
}

// environment is every setting that a process needs to work on this stack, with the short times that suit a demonstration.
func (s *stack) environment() map[string]string {
	env := s.settings()
	env["ONCEPAY_NATS_URL"], env["ONCEPAY_NATS_MONITOR_URL"] = s.nats.URL(), s.nats.MonitorURL()
	return env
}

// settings is environment without NATS.
func (s *stack) settings() map[string]string {
	return map[string]string{
		"ONCEPAY_DATABASE_URL":     s.database,
		"ONCEPAY_STRIPE_KEY":       stripeKey,
		"ONCEPAY_STRIPE_URL":       s.simURL,
		"ONCEPAY_STRIPE_RATE":      "0",
		"ONCEPAY_API_RATE":         "0",
		"ONCEPAY_STRIPE_TIMEOUT":   "3s",
		"ONCEPAY_LEASE":            "5s",
		"ONCEPAY_RETRY_MAX":        "2s",
		"ONCEPAY_ACK_WAIT":         "6s",
		"ONCEPAY_DRAIN":            "8s",
		"ONCEPAY_STREAM_MAX_BYTES": "1073741824",
		"ONCEPAY_NAMESPACE":        "oncepay",
	}
}

// source makes a settings source of an environment.
func source(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// asFlags checks settings that were given as flags of other names, and says which flag is wrong.
func asFlags(settings, flags map[string]string) error {
	_, err := app.Load(source(settings))
	var usage *app.UsageError
	if !errors.As(err, &usage) {
		return err
	}
	name, text, _ := strings.Cut(usage.Text, ": ")
	return &app.UsageError{Text: flags[name] + ": " + text}
}

// writeEnvFile writes the environment so that a shell can source it, readable by its owner alone, in one step: whoever sees the file sees all of it.
func writeEnvFile(path string, env map[string]string) error {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + "='" + strings.ReplaceAll(env[name], "'", `'\''`) + "'\n")
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".oncepay-env-*") // created 0600
	if err != nil {
		return fmt.Errorf("--env-file: %w", err)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.WriteString(b.String())
	if err = errors.Join(err, temporary.Close()); err != nil {
		return fmt.Errorf("--env-file: %w", err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("--env-file: %w", err)
	}
	return nil
}

// ensureDatabase makes the database unless a kept data directory has it.
func ensureDatabase(ctx context.Context, postgres *devstack.Postgres, name string) error {
	connection, err := pgx.Connect(ctx, postgres.DSN(""))
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	var exists bool
	if err := connection.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil || exists {
		return err
	}
	return postgres.CreateDatabase(ctx, name)
}
