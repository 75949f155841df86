package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// upOptions are the flags of up.
type upOptions struct {
	dataDir, http, admin, nats, stripe, envFile string
	postgresPort, workers                       int
}

func upCommand() *cobra.Command {
	o := upOptions{}
	c := &cobra.Command{
		Use: "up", Short: "Run JetStream, PostgreSQL, the Stripe simulator and workers until Ctrl-C", Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return up(c.Context(), o, os.Stdout) },
	}
	c.Flags().StringVar(&o.dataDir, "data-dir", "", "keep everything there; when empty, a temporary directory that is removed at the end (as root, PostgreSQL's files of a private directory lie in /var/lib/oncepay behind a link)")
	c.Flags().StringVar(&o.http, "http", "", "address of the HTTP API, health and metrics; a free port when empty")
	c.Flags().StringVar(&o.admin, "admin", "", "second address of health and metrics, for operators; a free port when empty")
	c.Flags().StringVar(&o.nats, "nats", "", "address of NATS on 127.0.0.1; a free port when empty")
	c.Flags().IntVar(&o.postgresPort, "postgres-port", 0, "port of PostgreSQL on 127.0.0.1; a free one when 0")
	c.Flags().StringVar(&o.stripe, "stripe", "", "address of the Stripe simulator; a free port when empty")
	c.Flags().StringVar(&o.envFile, "env-file", "", "write every setting there, to be sourced by a shell")
	c.Flags().IntVar(&o.workers, "workers", 1, "worker processes")
	return c
}

// portOf reads the port of a loopback address; "" is 0, a free one.
func portOf(flag, addr string) (int, error) {
	if addr == "" {
		return 0, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "127.0.0.1" && host != "localhost" {
		return 0, &app.UsageError{Text: flag + ": must be 127.0.0.1:port"}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, &app.UsageError{Text: flag + ": must be 127.0.0.1:port"}
	}
	return int(n), nil
}

// check finds what is wrong with the flags before anything starts, and returns the port of NATS.
func (o upOptions) check() (natsPort int, err error) {
	if natsPort, err = portOf("--nats", o.nats); err != nil {
		return 0, err
	}
	if o.postgresPort < 0 || o.postgresPort > 65535 {
		return 0, &app.UsageError{Text: "--postgres-port: must be from 0 to 65535"}
	}
	if o.workers < 1 || o.workers > 64 {
		return 0, &app.UsageError{Text: "--workers: must be from 1 to 64"}
	}
	if err := asFlags(map[string]string{"ONCEPAY_HTTP_ADDR": orFree(o.http), "ONCEPAY_ADMIN_ADDR": orFree(o.admin)}, map[string]string{
		"ONCEPAY_HTTP_ADDR": "--http", "ONCEPAY_ADMIN_ADDR": "--admin",
	}); err != nil {
		return 0, err
	}
	for flag, addr := range map[string]string{"--nats": o.nats, "--stripe": o.stripe, "--http": o.http, "--admin": o.admin} {
		if addr == "" {
			continue
		}
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			return 0, &app.UsageError{Text: flag + ": " + err.Error()}
		}
		_ = listener.Close()
	}
	if o.envFile == "" {
		return natsPort, nil
	}
	// Whoever waits for the file must not find that of an earlier run.
	if err := os.Remove(o.envFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, &app.UsageError{Text: "--env-file: " + err.Error()}
	}
	if _, err := os.Stat(filepath.Dir(o.envFile)); err != nil {
		return 0, &app.UsageError{Text: "--env-file: " + err.Error()}
	}
	return natsPort, nil
}

// up runs the stack until ctx ends, and leaves nothing running.
func up(ctx context.Context, o upOptions, out io.Writer) (err error) {
	natsPort, err := o.check()
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			err = nil // Ctrl-C while it starts is an end like any other, whatever it broke off
		}
	}()
	s, err := startStack(ctx, stackOptions{dataDir: o.dataDir, natsPort: natsPort, postgresPort: o.postgresPort, stripeAddr: o.stripe})
	if err != nil {
		return err
	}
	defer s.close()
	env := s.environment()
	tryLimits(env, os.Getenv)
	if level := os.Getenv("ONCEPAY_LOG_LEVEL"); level != "" {
		env["ONCEPAY_LOG_LEVEL"] = level
	} else {
		env["ONCEPAY_LOG_LEVEL"] = "warn" // what is worth a person's while
	}
	env["ONCEPAY_HTTP_ADDR"], env["ONCEPAY_ADMIN_ADDR"] = orFree(o.http), orFree(o.admin)
	key, err := prepare(ctx, env)
	if err != nil {
		return err
	}
	children, at, err := startChildren(ctx, env, o.workers)
	defer stopAll(children)
	if err != nil {
		return err
	}
	env["ONCEPAY_HTTP_ADDR"], env["ONCEPAY_ADMIN_ADDR"], env["ONCEPAY_DEV_API_KEY"] = at.http, at.admin, key
	env["ONCEPAY_API_URL"], env["ONCEPAY_API_KEY"] = "http://"+at.http, key
	if o.envFile != "" {
		if err := writeEnvFile(o.envFile, env); err != nil {
			return err
		}
	}
	announce(out, env, o)
	err = watch(ctx, children)
	stopAll(children)
	s.close()
	if err == nil {
		fmt.Fprintln(out, "stopped; nothing is left running")
	}
	return err
}

// tryLimits takes over the limits that somebody wants to try; nothing else of the caller's settings has a place here, since an env file of an earlier
// up may be among them.
func tryLimits(env map[string]string, getenv func(string) string) {
	for _, name := range []string{"ONCEPAY_STRIPE_RATE", "ONCEPAY_API_RATE", "ONCEPAY_UNPUBLISHED_MAX"} {
		if value := getenv(name); value != "" {
			env[name] = value
		}
	}
}

// stopAll stops all children at once.
func stopAll(children []*child) {
	var all sync.WaitGroup
	for _, c := range children {
		all.Go(func() { c.stop(12 * time.Second) })
	}
	all.Wait()
}

func orFree(addr string) string {
	if addr == "" {
		return "127.0.0.1:0"
	}
	return addr
}

// prepare migrates, makes the tenant and a key for it, and returns the key.
func prepare(ctx context.Context, env map[string]string) (key string, err error) {
	dsn := env["ONCEPAY_DATABASE_URL"]
	if err := migrations.Up(ctx, dsn); err != nil {
		return "", err
	}
	store, err := postgres.Open(ctx, dsn, postgres.Options{PoolSize: 2})
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close(context.WithoutCancel(ctx)) }()
	return ensureTenant(ctx, store)
}

// startChildren starts the worker processes. The first serves the API, and health and metrics for all; it returns where.
func startChildren(ctx context.Context, env map[string]string, n int) (children []*child, first listeners, err error) {
	for i := range n {
		own := map[string]string{}
		for name, value := range env {
			own[name] = value
		}
		if i > 0 {
			own["ONCEPAY_HTTP_ADDR"], own["ONCEPAY_ADMIN_ADDR"] = "off", "off"
		}
		c, err := startChild(own, os.Stderr)
		if err != nil {
			return children, first, err
		}
		children = append(children, c)
		at, err := c.waitReady(ctx)
		if err != nil {
			return children, first, err
		}
		if i == 0 {
			first = at
		}
	}
	return children, first, nil
}

// announce says where things are.
func announce(out io.Writer, env map[string]string, o upOptions) {
	fmt.Fprintf(out, `Oncepay is up; Ctrl-C ends it and leaves nothing running.
  NATS        %s (JetStream, every write synced)
  PostgreSQL  %s
  Stripe      %s (simulator; ledger at %s/_sim/ledger)
  HTTP        http://%s (the API; its reference at /docs)
  admin       http://%s/readyz and /metrics
  tenant      %s
`, env["ONCEPAY_NATS_URL"], env["ONCEPAY_DATABASE_URL"], env["ONCEPAY_STRIPE_URL"], env["ONCEPAY_STRIPE_URL"], env["ONCEPAY_HTTP_ADDR"], env["ONCEPAY_ADMIN_ADDR"], demoTenant)
	if o.envFile == "" {
		fmt.Fprintf(out, "  settings    none written; --env-file F writes them for a shell\n")
		return
	}
	file := o.envFile
	if !strings.Contains(file, "/") {
		file = "./" + file // a shell looks for a bare name along its PATH
	}
	fmt.Fprintf(out, `  settings    %s

In another terminal:
  set -a; . %s; set +a
  go run ./cmd/oncepay publish --tenant demo --key order-1 --amount 9900 --currency usd --payment-method pm_card_visa --wait
  go run ./cmd/oncepay payments show --tenant demo --key order-1
  curl "$ONCEPAY_API_URL/v1/payments" -H "Authorization: Bearer $ONCEPAY_API_KEY" -H 'Idempotency-Key: order-2' -H 'Prefer: wait=10' \
    -H 'Content-Type: application/json' -d '{"amount":9900,"currency":"usd","payment_method":"pm_card_visa"}'
`, file, file)
}

// watch waits for the end; a worker that ends by itself ends everything, since nothing would be charged any more.
func watch(ctx context.Context, children []*child) error {
	ended := make(chan error, len(children))
	for _, c := range children {
		go func() {
			<-c.exited
			ended <- c.err
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = errors.New("exit status 0")
		}
		return fmt.Errorf("a worker process ended, and with it everything: %w", err)
	}
}

// ensureTenant makes the tenant, which a kept data directory may have already, and a new key for it.
func ensureTenant(ctx context.Context, store *postgres.Store) (key string, err error) {
	exists, err := store.TenantExists(ctx, demoTenant)
	if err != nil {
		return "", err
	}
	if !exists {
		if _, err := store.CreateTenant(ctx, postgres.Tenant{ID: demoTenant}); err != nil {
			return "", err
		}
	}
	_, key, err = store.CreateAPIKey(ctx, demoTenant, payments.Scopes(), time.Time{})
	return key, err
}
