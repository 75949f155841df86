package dev

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/producer"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	intents, concurrency  int
	stripeURL, postgresAt string
	duplicates            float64
	json                  bool
	cpuProfile            string
	turn                  time.Duration // of http: of each side in each round
}

// Measurement is what one benchmark found.
type Measurement struct {
	Name               string  `json:"name"`
	Intents            int     `json:"intents"`
	Messages           int     `json:"messages"`
	Concurrency        int     `json:"concurrency"`
	PublishPerS        float64 `json:"publish_per_s"`
	PaymentsPerS       float64 `json:"payments_per_s"`
	E2EP50MS           float64 `json:"e2e_p50_ms"`
	E2EP99MS           float64 `json:"e2e_p99_ms"`
	CPUSecondsPer1k    float64 `json:"cpu_s_per_1k"`
	WALBytesPerPayment float64 `json:"wal_bytes_per_payment"`
	PeakRSSMB          float64 `json:"peak_rss_mb"`
	StripeRequests     int64   `json:"stripe_requests"`
}

func benchCommand() *cobra.Command {
	o := benchOptions{}
	c := &cobra.Command{
		Use: "bench [NAME]", Short: "Measure this machine: throughput (the default), publish or http", Args: cli.Arguments(0, 1),
		Long: "throughput: a backlog is published first; payments_per_s runs from the worker's start until the last outcome is recorded, its event has\n" +
			"its PubAck and the outbox is empty. JetStream syncs every write; PostgreSQL commits are synchronous. e2e includes the time in the backlog.\n" +
			"cpu_s_per_1k and peak_rss_mb are of this process: worker, relay and the embedded NATS server, not PostgreSQL.\n\n" +
			"publish: the Publisher against nats.go's own functions on one stream, in turns: 10,000 intents (--intents) with 1,000 pending, by one\n" +
			"PublishAll, and by --concurrency goroutines; then one at a time. It needs no PostgreSQL and no Stripe.\n\n" +
			"http: POST /v1/payments from 64 clients against a handler that does one INSERT and one synced publish for each request, in turns, and\n" +
			"batch run of a file. Nothing is charged: no worker runs, and it needs no Stripe.",
		RunE: func(c *cobra.Command, args []string) error {
			name := "throughput"
			if len(args) == 1 {
				name = args[0]
			}
			if !slices.Contains([]string{"throughput", "publish", "http"}, name) {
				return &app.UsageError{Text: "bench: the benchmarks are throughput, publish and http"}
			}
			if err := o.check(); err != nil {
				return err
			}
			switch name {
			case "publish":
				if !c.Flags().Changed("intents") {
					o.intents = publishIntents
				}
				return benchPublish(c.Context(), o)
			case "http":
				return benchHTTP(c.Context(), o)
			}
			m, err := throughput(c.Context(), o)
			if err != nil {
				return err
			}
			if o.json {
				return console.JSON(os.Stdout, m)
			}
			fmt.Printf("%d intents in %d messages, %d in flight\n  published   %8.0f/s\n  settled     %8.0f payments/s\n  in backlog  %8.0f ms p50, %.0f ms p99\n"+
				"  CPU         %8.2f s for 1,000 payments\n  WAL         %8.0f bytes a payment\n  memory      %8.0f MB at most\n",
				m.Intents, m.Messages, m.Concurrency, m.PublishPerS, m.PaymentsPerS, m.E2EP50MS, m.E2EP99MS, m.CPUSecondsPer1k, m.WALBytesPerPayment, m.PeakRSSMB)
			return nil
		},
	}
	c.Flags().IntVar(&o.intents, "intents", 20_000, "how many payment intents; of http: how many rows the file of batch run has")
	c.Flags().IntVar(&o.concurrency, "concurrency", 512, "payments in flight")
	c.Flags().StringVar(&o.stripeURL, "stripe-url", "", "a Stripe to use instead of the simulator")
	c.Flags().StringVar(&o.postgresAt, "postgres", "", "a PostgreSQL to use instead of a temporary one; a database is made there and dropped")
	c.Flags().Float64Var(&o.duplicates, "duplicates", 0, "further messages for each intent, on average")
	c.Flags().StringVar(&o.cpuProfile, "cpu-profile", "", "throughput and http: write a CPU profile of the measured time to this file, for go tool pprof and go build -pgo")
	c.Flags().DurationVar(&o.turn, "turn", 4*time.Second, "http: how long each side's turn is in each of five rounds")
	c.Flags().BoolVar(&o.json, "json", false, "print the measurement as one JSON document")
	return c
}

// check finds what is wrong with the flags before anything starts.
func (o benchOptions) check() error {
	switch {
	case o.intents < 1 || o.intents > 10_000_000:
		return &app.UsageError{Text: "--intents: must be from 1 to 10,000,000"}
	case o.turn < 100*time.Millisecond || o.turn > time.Minute:
		return &app.UsageError{Text: "--turn: must be from 100ms to 1m"}
	case !(o.duplicates >= 0 && o.duplicates <= 100):
		return &app.UsageError{Text: "--duplicates: must be from 0 to 100"}
	}
	return asFlags(map[string]string{"ONCEPAY_CONCURRENCY": strconv.Itoa(o.concurrency), "ONCEPAY_STRIPE_URL": o.stripeURL, "ONCEPAY_DATABASE_URL": o.postgresAt},
		map[string]string{"ONCEPAY_CONCURRENCY": "--concurrency", "ONCEPAY_STRIPE_URL": "--stripe-url", "ONCEPAY_DATABASE_URL": "--postgres"})
}

// bench is one measurement under way.
type bench struct {
	o        benchOptions
	stack    *stack
	settings app.Settings
	dsn      string

	mu       sync.Mutex
	waits    []float64
	relayed  atomic.Int64
	requests atomic.Int64
}

func throughput(ctx context.Context, o benchOptions) (_ *Measurement, err error) {
	b := &bench{o: o}
	if b.stack, err = startStack(ctx, stackOptions{withoutPostgres: o.postgresAt != "", withoutStripe: o.stripeURL != ""}); err != nil {
		return nil, err
	}
	defer b.stack.close()
	drop, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	defer drop()
	env := b.stack.environment()
	env["ONCEPAY_DATABASE_URL"], env["ONCEPAY_HTTP_ADDR"], env["ONCEPAY_CONCURRENCY"] = b.dsn, "off", strconv.Itoa(o.concurrency)
	env["ONCEPAY_STREAM_MAX_BYTES"] = strconv.FormatInt(streamRoom(o), 10)
	env["ONCEPAY_ACK_WAIT"], env["ONCEPAY_LEASE"], env["ONCEPAY_STRIPE_TIMEOUT"] = "30s", "45s", "30s"
	if o.stripeURL != "" {
		env["ONCEPAY_STRIPE_URL"] = o.stripeURL
	}
	if b.settings, err = app.Load(source(env)); err != nil {
		return nil, err
	}
	m := &Measurement{Name: "throughput", Intents: o.intents, Concurrency: o.concurrency}
	if err := b.publish(ctx, m); err != nil {
		return nil, err
	}
	return m, b.work(ctx, m)
}

// streamRoom is how large each stream may grow: what a benchmark can put there, and no more, since the server sets it aside on a disk that may be
// nearly full.
func streamRoom(o benchOptions) int64 {
	return 1<<30 + int64(float64(o.intents)*(1+o.duplicates)*1024)
}

// database makes a database of our own on the given server, or on the stack's.
func (b *bench) database(ctx context.Context) (drop func(), err error) {
	server := b.o.postgresAt
	if server == "" {
		server = b.stack.postgres.DSN("")
	}
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("--postgres: %w", err)
	}
	name := "oncepay_bench_" + strconv.Itoa(os.Getpid())
	if _, err := connection.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		_ = connection.Close(ctx)
		return nil, fmt.Errorf("--postgres: %w", err)
	}
	b.dsn = inDatabase(server, name)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_, _ = connection.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		_ = connection.Close(ctx)
	}, nil
}

// publish puts the backlog on the stream.
func (b *bench) publish(ctx context.Context, m *Measurement) error {
	if err := migrations.Up(ctx, b.dsn); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, b.dsn, postgres.Options{PoolSize: 2})
	if err != nil {
		return err
	}
	_, err = store.CreateTenant(ctx, postgres.Tenant{ID: demoTenant})
	if err = firstOf(err, store.Close(ctx)); err != nil {
		return err
	}
	log := app.NewLog(os.Stderr, "error")
	nc, js, err := app.ConnectNATS(ctx, b.settings, "oncepay-bench", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := app.EnsureStreams(ctx, js, b.settings, log); err != nil {
		return err
	}
	subjects, _ := b.settings.Streams()
	publisher, err := producer.New(nc, subjects, producer.Options{})
	if err != nil {
		return err
	}
	defer publisher.Close()
	const group = 10_000
	started := time.Now()
	total := b.o.intents + int(float64(b.o.intents)*b.o.duplicates)
	for first := 0; first < total; first += group {
		messages := make([]producer.Message, 0, group)
		for i := first; i < min(first+group, total); i++ {
			messages = append(messages, producer.Message{Intent: benchIntent(i % b.o.intents), Lane: payments.LaneInteractive})
		}
		for _, r := range publisher.PublishAll(ctx, messages) {
			if r.Err != nil {
				return fmt.Errorf("publishing the backlog: %w", r.Err)
			}
		}
	}
	m.Messages, m.PublishPerS = total, round(float64(total)/time.Since(started).Seconds())
	return nil
}

func benchIntent(i int) payments.Intent {
	n := strconv.Itoa(i)
	return payments.Intent{
		TenantID: demoTenant, IdempotencyKey: "order-" + n, Amount: 1000 + int64(i%9000), Currency: "usd", Customer: "cus_" + strconv.Itoa(i%1000),
		PaymentMethod: "pm_card_visa", OffSession: true, Metadata: map[string]string{"order": n},
	}
}

// work runs a worker until the backlog is gone, and measures it.
func (b *bench) work(ctx context.Context, m *Measurement) error {
	store, err := postgres.Open(ctx, b.dsn, postgres.Options{PoolSize: 1})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close(context.WithoutCancel(ctx)) }()
	wal, err := store.WALPosition(ctx)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	stopped := make(chan struct{})
	defer func() { stop(); <-stopped }() // before its database is dropped
	endProfile, err := startProfile(b.o.cpuProfile)
	if err != nil {
		return err
	}
	defer endProfile()
	cpu, started := cpuSeconds(), time.Now()
	go func() {
		defer close(stopped)
		served <- app.Serve(serving, b.settings, app.NewLog(os.Stderr, "warn"), app.ServeOptions{
			Relayed: func(n int) { b.relayed.Add(int64(n)) }, Settled: b.settled, Observed: func(payments.Observation) { b.requests.Add(1) },
		})
	}()
	if err := b.wait(ctx, store, served); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	m.PaymentsPerS, m.CPUSecondsPer1k = round(float64(b.o.intents)/took), (cpuSeconds()-cpu)/float64(b.o.intents)*1000
	end, err := store.WALPosition(ctx)
	if err != nil {
		return err
	}
	m.WALBytesPerPayment = round(float64(end-wal) / float64(b.o.intents))
	stop()
	if err := <-served; err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m.E2EP50MS, m.E2EP99MS = round(percentile(b.waits, 0.5)), round(percentile(b.waits, 0.99))
	m.PeakRSSMB, m.StripeRequests = round(peakRSSMB()), b.requests.Load()
	return nil
}

// startProfile writes a CPU profile to the file until end is called; "" is none.
func startProfile(file string) (end func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, &app.UsageError{Text: "--cpu-profile: " + err.Error()}
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, firstOf(err, f.Close())
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

func (b *bench) settled(s payments.Settlement, waited time.Duration) {
	if s.Err != nil || waited == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits = append(b.waits, float64(waited.Microseconds())/1000)
}

// wait returns when every event has its PubAck, the outbox is empty and no ticket is left.
func (b *bench) wait(ctx context.Context, store *postgres.Store, served chan error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-served:
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("the worker ended before the backlog did: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if b.relayed.Load() < int64(b.o.intents) {
			continue
		}
		tickets, err := store.TicketCount(ctx)
		if err != nil {
			return err
		}
		outbox, err := store.OutboxDepth(ctx)
		if err != nil {
			return err
		}
		if tickets+outbox == 0 {
			return nil
		}
	}
}

func firstOf(errs ...error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// inDatabase is a PostgreSQL URL with another database.
func inDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return server + " dbname=" + name
	}
	u.Path = "/" + name
	return u.String()
}

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// peakRSSMB is the largest resident set of this process. Linux counts it in kilobytes.
func peakRSSMB() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return float64(r.Maxrss) / 1024
}
