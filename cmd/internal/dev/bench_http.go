package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments/postgres"
)

const (
	httpRounds  = 5
	httpClients = 64
)

// HTTPMeasurement is what the benchmark of the HTTP API found. Rates are requests a second that were answered 202, each under a key of its own;
// each figure is the median of the rounds, and ratios that of the rounds' own. A ratio above 1 is in the product's favour.
type HTTPMeasurement struct {
	Name          string  `json:"name"`
	Clients       int     `json:"clients"`
	Rounds        int     `json:"rounds"`
	TurnSeconds   float64 `json:"turn_s"`
	BaselinePerS  float64 `json:"baseline_per_s"`
	BaselineP50MS float64 `json:"baseline_p50_ms"`
	BaselineP99MS float64 `json:"baseline_p99_ms"`
	ProductPerS   float64 `json:"product_per_s"`
	ProductP50MS  float64 `json:"product_p50_ms"`
	ProductP99MS  float64 `json:"product_p99_ms"`
	// BaselineCPUUS and ProductCPUUS are the CPU time of one request in all processes, in microseconds: this one with client, server and JetStream, and
	// PostgreSQL, whose part of it stands beside; the product's until the last copy was stored. Without PostgreSQL's part where its server is not ours.
	BaselineCPUUS         float64 `json:"baseline_cpu_us"`
	BaselinePostgresCPUUS float64 `json:"baseline_postgres_cpu_us"`
	ProductCPUUS          float64 `json:"product_cpu_us"`
	ProductPostgresCPUUS  float64 `json:"product_postgres_cpu_us"`
	Ratio                 float64 `json:"ratio"`
	P50Ratio              float64 `json:"p50_ratio"` // baseline's p50 by the product's
	// PublishedPerS counts the product's time until the last copy of an accepted payment was stored in its stream, too.
	PublishedPerS  float64 `json:"product_published_per_s"`
	PublishedRatio float64 `json:"published_ratio"`
	// BatchPerS is payments a second that `batch run` got accepted, its validating pass included; BatchRatio compares it with the baseline.
	BatchPerS  float64 `json:"batch_payments_per_s"`
	BatchRatio float64 `json:"batch_ratio"`
}

// httpBench compares the API with the handler that one would write without it: one INSERT and one synced publish for each request (baseline). Both
// are served by this process on loopback, on one PostgreSQL and one JetStream, and take turns.
type httpBench struct {
	o        benchOptions
	bench    *bench
	store    *postgres.Store
	secret   string
	baseline *baseline
	product  string // its address
	next     atomic.Int64
}

// turn is one side's turn of one round.
type turn struct {
	rate, p50, p99 float64
	published      float64
	requests       int
	cpu, postgres  float64 // microseconds a request, of all processes and of PostgreSQL's
}

func benchHTTP(ctx context.Context, o benchOptions) error {
	m, err := measureHTTP(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		return console.JSON(os.Stdout, m)
	}
	fmt.Printf("%d clients, median of %d rounds in turns of %.0f s; every write is synced\n"+
		"  one INSERT, one publish     %8.0f/s  %6.1f ms p50  %6.1f ms p99  %4.0f us of CPU each, %.0f of them PostgreSQL's\n"+
		"  POST /v1/payments           %8.0f/s  %6.1f ms p50  %6.1f ms p99  %4.0f us of CPU each, %.0f of them PostgreSQL's  %.1f times as many\n"+
		"    until all are published   %8.0f/s  %.1f times as many\n"+
		"  batch run                   %8.0f payments/s  %.1f times as many\n",
		m.Clients, m.Rounds, m.TurnSeconds, m.BaselinePerS, m.BaselineP50MS, m.BaselineP99MS, m.BaselineCPUUS, m.BaselinePostgresCPUUS,
		m.ProductPerS, m.ProductP50MS, m.ProductP99MS, m.ProductCPUUS, m.ProductPostgresCPUUS, m.Ratio, m.PublishedPerS, m.PublishedRatio, m.BatchPerS, m.BatchRatio)
	return nil
}

func measureHTTP(ctx context.Context, o benchOptions) (_ *HTTPMeasurement, err error) {
	h := &httpBench{o: o, bench: &bench{o: o}}
	if h.bench.stack, err = startStack(ctx, stackOptions{withoutPostgres: o.postgresAt != "", withoutStripe: true}); err != nil {
		return nil, err
	}
	defer h.bench.stack.close()
	drop, err := h.bench.database(ctx)
	if err != nil {
		return nil, err
	}
	defer drop()
	stop, err := h.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	nc, err := nats.Connect(h.bench.stack.nats.URL(), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if h.baseline, err = startBaseline(ctx, h.bench.dsn, js); err != nil {
		return nil, err
	}
	defer h.baseline.close()
	endProfile, err := startProfile(o.cpuProfile)
	if err != nil {
		return nil, err
	}
	defer endProfile()
	return h.rounds(ctx)
}

// serve starts the product: the API and the relay, with the settings of production but for the limits on requests.
func (h *httpBench) serve(ctx context.Context) (stop func(), err error) {
	env := h.bench.stack.environment()
	env["ONCEPAY_DATABASE_URL"], env["ONCEPAY_HTTP_ADDR"], env["ONCEPAY_ROLES"] = h.bench.dsn, "127.0.0.1:0", "ingress,relay"
	env["ONCEPAY_API_RATE"], env["ONCEPAY_STREAM_MAX_BYTES"], env["ONCEPAY_STRIPE_KEY"] = "0", "4294967296", ""
	if h.secret, err = prepare(ctx, env); err != nil {
		return nil, err
	}
	settings, err := app.Load(source(env))
	if err != nil {
		return nil, err
	}
	if h.store, err = postgres.Open(ctx, h.bench.dsn, postgres.Options{PoolSize: 2}); err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	ready, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- app.Serve(serving, settings, app.NewLog(os.Stderr, "warn"), app.ServeOptions{Ready: func(http, _ string) { ready <- http }})
	}()
	stop = func() {
		cancel()
		<-served
		_ = h.store.Close(context.WithoutCancel(ctx))
	}
	select {
	case h.product = <-ready:
		return stop, nil
	case err := <-served:
		served <- err
		stop()
		return nil, firstOf(err, errors.New("the API ended by itself"))
	}
}

// rounds lets both sides take turns, each first every other time.
func (h *httpBench) rounds(ctx context.Context) (*HTTPMeasurement, error) {
	var base, product []turn
	var ratios, p50s, published, batches, batchRatios []float64
	for n := range httpRounds {
		var b, p turn
		var err error
		for k := range 2 {
			process, server := h.cpu()
			if (k+n)%2 == 0 {
				b, err = h.turn(ctx, h.baseline.addr)
				h.spent(&b, process, server)
			} else if p, err = h.turn(ctx, h.product); err == nil {
				err = h.drain(ctx, &p)
				h.spent(&p, process, server)
			}
			if err != nil {
				return nil, err
			}
		}
		batch, err := h.batch(ctx, n)
		if err != nil {
			return nil, err
		}
		base, product = append(base, b), append(product, p)
		ratios, p50s, published = append(ratios, p.rate/b.rate), append(p50s, b.p50/p.p50), append(published, p.published/b.rate)
		batches, batchRatios = append(batches, batch), append(batchRatios, batch/b.rate)
	}
	of := func(turns []turn, figure func(turn) float64) float64 {
		figures := make([]float64, len(turns))
		for i, t := range turns {
			figures[i] = figure(t)
		}
		return round(percentile(figures, 0.5))
	}
	rate, p50, p99 := func(t turn) float64 { return t.rate }, func(t turn) float64 { return t.p50 }, func(t turn) float64 { return t.p99 }
	cpu, server := func(t turn) float64 { return t.cpu }, func(t turn) float64 { return t.postgres }
	return &HTTPMeasurement{
		Name: "http", Clients: httpClients, Rounds: httpRounds, TurnSeconds: h.o.turn.Seconds(),
		BaselinePerS: of(base, rate), BaselineP50MS: of(base, p50), BaselineP99MS: of(base, p99),
		ProductPerS: of(product, rate), ProductP50MS: of(product, p50), ProductP99MS: of(product, p99),
		PublishedPerS: of(product, func(t turn) float64 { return t.published }), BatchPerS: round(percentile(batches, 0.5)),
		BaselineCPUUS: of(base, cpu), BaselinePostgresCPUUS: of(base, server), ProductCPUUS: of(product, cpu), ProductPostgresCPUUS: of(product, server),
		Ratio: round(percentile(ratios, 0.5)), P50Ratio: round(percentile(p50s, 0.5)), PublishedRatio: round(percentile(published, 0.5)),
		BatchRatio: round(percentile(batchRatios, 0.5)),
	}, nil
}

// turn has all clients send payments, one after another each, until the time is up.
func (h *httpBench) turn(ctx context.Context, addr string) (turn, error) {
	var mu sync.Mutex
	var waits []float64
	var failed error
	var clients sync.WaitGroup
	started := time.Now()
	for range httpClients {
		clients.Go(func() {
			own, err := h.send(ctx, addr, started.Add(h.o.turn))
			mu.Lock()
			defer mu.Unlock()
			waits, failed = append(waits, own...), firstOf(failed, err)
		})
	}
	clients.Wait()
	took := time.Since(started).Seconds()
	rate := float64(len(waits)) / took
	return turn{rate: rate, p50: percentile(waits, 0.5), p99: percentile(waits, 0.99), published: took, requests: len(waits)}, failed
}

// cpu is the CPU time in seconds that this process and PostgreSQL's have used so far.
func (h *httpBench) cpu() (process, server float64) {
	if p := h.bench.stack.postgres; p != nil {
		server = p.CPU().Seconds()
	}
	return cpuSeconds(), server
}

// spent shares the CPU time since the turn's beginning out to its requests.
func (h *httpBench) spent(t *turn, process, server float64) {
	nowProcess, nowServer := h.cpu()
	each := 1e6 / float64(max(t.requests, 1))
	t.cpu, t.postgres = (nowProcess-process+nowServer-server)*each, (nowServer-server)*each
}

// send is one client on one connection.
func (h *httpBench) send(ctx context.Context, addr string, until time.Time) (waits []float64, err error) {
	c, err := dialHTTP(ctx, addr, "/v1/payments", h.secret, until)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var body []byte
	for time.Now().Before(until) {
		n := int(h.next.Add(1))
		key := "order-" + strconv.Itoa(n)
		body = strconv.AppendInt(append(body[:0], `{"amount":`...), int64(1000+n%9000), 10)
		body = strconv.AppendInt(append(body, `,"currency":"usd","payment_method":"pm_card_visa","customer":"cus_`...), int64(n%1000), 10)
		body = append(strconv.AppendInt(append(body, `","metadata":{"order":"`...), int64(n), 10), `"}}`...)
		began := time.Now()
		status, err := c.post(key, body)
		if err == nil && status != http.StatusAccepted {
			err = errors.New("POST /v1/payments was answered " + strconv.Itoa(status))
		}
		if err != nil {
			return waits, err
		}
		waits = append(waits, float64(time.Since(began).Microseconds())/1000)
	}
	return waits, nil
}

// drain waits until every accepted payment is published, and counts that time, too.
func (h *httpBench) drain(ctx context.Context, t *turn) error {
	accepted, sent := t.rate*t.published, t.published
	began := time.Now()
	for {
		left, err := h.store.Unpublished(ctx)
		if err != nil {
			return err
		}
		if left == 0 {
			t.published = accepted / (sent + time.Since(began).Seconds())
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listenLoopback is a free port.
func listenLoopback() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
