package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/producer"
)

// gate stops goroutines of a worker at its steps, and all of them once the worker is dead. What is stopped never goes on: it ends where it
// stands, without another word to anybody.
type gate struct {
	stop  func(payments.Step, payments.ID) bool // nil: nothing
	watch func(payments.Step, payments.ID)      // nil: nobody

	mu      sync.Mutex
	dead    bool
	ended   chan struct{}
	stopped map[payments.ID]bool
	seen    map[payments.Step]map[payments.ID]int
}

func newGate(stop func(payments.Step, payments.ID) bool) *gate {
	return &gate{stop: stop, ended: make(chan struct{}), stopped: map[payments.ID]bool{}, seen: map[payments.Step]map[payments.ID]int{}}
}

func (g *gate) onStep(s payments.Step, id payments.ID) {
	if g.watch != nil {
		g.watch(s, id)
	}
	g.mu.Lock()
	if g.seen[s] == nil {
		g.seen[s] = map[payments.ID]int{}
	}
	g.seen[s][id]++
	stop := g.dead || g.stop != nil && g.stop(s, id)
	if stop {
		g.stopped[id] = true
	}
	g.mu.Unlock()
	if stop {
		<-g.ended
		runtime.Goexit() // runs what is deferred in this process, which is dead to the outside
	}
}

// die stops everything that reaches another step.
func (g *gate) die() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dead {
		g.dead = true
		close(g.ended)
	}
}

func (g *gate) hasStopped(id payments.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped[id]
}

func (g *gate) hasSeen(s payments.Step, id payments.ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[s][id]
}

// worker is one worker with its relay, wired as in production.
type worker struct {
	*consumer.Worker
	world *world
	gate  *gate
	// replaying stops the runner of replays, if the worker has one.
	replaying *gate
	nc        *nats.Conn
	proxies   []*devstacktest.Proxy
	stopRun   context.CancelFunc
	ended     chan struct{}
	runErr    error
	drain     time.Duration
	mark      *mark.Gate // nil: it is not marked
	keeper    *mark.Keeper
	looks     atomic.Int64 // how often the database was compared with its mark
}

// workerOptions say how a worker differs from a healthy one.
type workerOptions struct {
	name        string
	stop        func(payments.Step, payments.ID) bool // set: the worker is mortal
	watch       func(payments.Step, payments.ID)      // is told of every step
	concurrency int
	drain       time.Duration
	triesMax    int
	replays     func(deadletter.Step) bool // set: it runs replays, and stops where this says so
	gateway     func(payments.Gateway) payments.Gateway
	jetstream   func(jetstream.JetStream) jetstream.JetStream
	// marked: the worker notices a restored database, and runs rewinds; the runner dies before a step of which onRewind says so.
	marked   bool
	onRewind func(payments.RewindStep) (dies bool)
	// postgres and nats, when set, are asked about everything that goes out on the worker's connections, once it works.
	postgres, nats func(chunk []byte) devstacktest.Action
}

// start starts a worker; it is stopped with the test.
func (w *world) start(o workerOptions) *worker {
	w.Helper()
	v := &worker{world: w, gate: newGate(o.stop), replaying: newGate(nil), ended: make(chan struct{}), drain: max(o.drain, 5*time.Second)}
	v.gate.watch = o.watch
	if o.stop != nil {
		v.drain = 100 * time.Millisecond
	}
	dsn, natsURL := v.lines(o)
	log := w.logs.logger(o.name)
	ctx, cancel := context.WithCancel(context.Background())
	v.stopRun = cancel
	var relay *producer.Relay
	if o.marked {
		v.mark = mark.NewGate(log)
	}
	store := v.openStore(ctx, dsn, log, func(items []payments.OutboxItem) { relay.Offer(items) })
	v.nc = w.connect(natsURL, o.name)
	js, err := jetstream.New(v.nc)
	if err != nil {
		w.Fatal(err)
	}
	relay, err = producer.NewRelay(store, v.nc, w.subjects, producer.RelayOptions{
		Hold: w.times.hold, AckTimeout: 2 * time.Second, IdleMin: 50 * time.Millisecond, IdleMax: 200 * time.Millisecond, FinalTimeout: 2 * time.Second,
	})
	if err != nil {
		w.Fatal(err)
	}
	gateway := w.openGateway(ctx, log)
	if o.jetstream != nil {
		js = o.jetstream(js)
	}
	v.wire(o, store, gateway, js, log)
	if len(v.proxies) > 0 {
		v.proxies[0].OnClientData(o.postgres)
		v.proxies[1].OnClientData(o.nats)
	}
	var marking sync.WaitGroup
	watching, stopMark := context.WithCancel(context.Background())
	if o.marked {
		w.keep(watching, &marking, v, store, js, gateway, o.onRewind)
	}
	relaying, stopRelay := context.WithCancel(context.Background())
	var relayed sync.WaitGroup
	relayed.Go(func() { _ = relay.Run(relaying) })
	go func() {
		defer close(v.ended)
		v.runErr = v.Run(ctx, v.drain)
	}()
	replayed := func() {}
	if o.replays != nil {
		replayed = v.runReplays(ctx, store, o.replays, log)
	}
	w.Cleanup(func() {
		v.gate.die()
		v.replaying.die()
		v.stop()
		replayed()
		stopMark()
		marking.Wait()
		stopRelay()
		relayed.Wait()
		v.nc.Close()
		relay.Close()
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = store.Close(closing) // a dead worker's cannot flush
		gateway.Close()
	})
	return v
}

// lines are the addresses at which a worker reaches PostgreSQL and NATS: those of proxies, if it is mortal or its lines are to break.
func (v *worker) lines(o workerOptions) (dsn, natsURL string) {
	w := v.world
	w.Helper()
	if o.stop == nil && o.postgres == nil && o.nats == nil {
		return w.dsn, w.natsURL
	}
	pg, broker := devstacktest.NewProxy(w, w.dsn), devstacktest.NewProxy(w, w.natsURL)
	v.proxies = []*devstacktest.Proxy{pg, broker}
	return devstacktest.Via(w, w.dsn, pg.Addr()), devstacktest.Via(w, w.natsURL, broker.Addr())
}

// openStore is the worker's own store; it offers to the relay what it has committed.
func (v *worker) openStore(ctx context.Context, dsn string, log *slog.Logger, offer func([]payments.OutboxItem)) *postgres.Store {
	w := v.world
	w.Helper()
	var compared func(context.Context, func(context.Context) (payments.MarkState, error))
	if v.mark != nil {
		compared = v.mark.Connected
	}
	store, err := postgres.Open(ctx, dsn, postgres.Options{
		PoolSize: 4, Clock: w.clock, Namespace: namespace, RequestVersion: stripe.RequestVersion, Logger: log, Hold: w.times.hold, FlushTimeout: 3 * time.Second,
		Backoff: w.times.backoff, Committed: offer, Connected: compared,
	})
	if err != nil {
		w.Fatal(err)
	}
	return store
}

// openGateway is a way to Stripe. Production, too, tries until Stripe answers within the time-out.
func (w *world) openGateway(ctx context.Context, log *slog.Logger) (gateway *stripe.Gateway) {
	w.Helper()
	w.await("Stripe, at start", func() (bool, string) {
		var err error
		gateway, err = stripe.New(ctx, stripe.Options{Key: stripeKey, URL: w.simURL, Namespace: namespace, Timeout: w.times.call, Clock: w.clock, Logger: log})
		return err == nil, fmt.Sprint(err)
	})
	return gateway
}

// wire puts the worker together from its parts.
func (v *worker) wire(o workerOptions, store *postgres.Store, gateway payments.Gateway, js jetstream.JetStream, log *slog.Logger) {
	w := v.world
	w.Helper()
	if o.gateway != nil {
		gateway = o.gateway(gateway)
	}
	var held func() string
	if v.mark != nil {
		held = v.mark.Held
	}
	processor := &payments.Processor{
		Store: store, Gateway: gateway, Clock: w.clock, Namespace: namespace, Lease: w.times.lease, CallTimeout: w.times.call, TriesMax: cmp.Or(o.triesMax, 20),
		Backoff: w.times.backoff, OnStep: v.gate.onStep, Held: held,
	}
	var err error
	v.Worker, err = consumer.New(consumer.Config{
		JetStream: js, Subjects: w.subjects, Store: store, Batches: store, Processor: processor, Clock: w.clock, Concurrency: max(o.concurrency, 64), Lease: w.times.lease,
		PollInterval: 50 * time.Millisecond, NewToken: app.NewToken, Log: log, OnStep: v.gate.onStep, Held: held,
		Observer: v.observer(),
	})
	if err != nil {
		w.Fatal(err)
	}
}

// runReplays runs replays beside the worker until ctx ends.
func (v *worker) runReplays(ctx context.Context, store *postgres.Store, stop func(deadletter.Step) bool, log *slog.Logger) (wait func()) {
	v.world.Helper()
	v.replaying = newGate(func(s payments.Step, _ payments.ID) bool { return stop(deadletter.Step(s)) })
	runner, err := deadletter.New(deadletter.Config{
		Store: store, Batches: store, Replays: store, Clock: v.world.clock, Subjects: v.world.subjects, Log: log, Hold: 2 * time.Second, Poll: 50 * time.Millisecond,
		Idle: 100 * time.Millisecond, OnStep: func(s deadletter.Step, _ string) { v.replaying.onStep(payments.Step(s), payments.ID{}) },
	})
	if err != nil {
		v.world.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = runner.Run(ctx) })
	return running.Wait
}

// kill ends a mortal worker as SIGKILL would: from now on nothing of it reaches anybody.
func (v *worker) kill() {
	v.gate.die()
	v.replaying.die()
	for _, p := range v.proxies {
		p.Cut()
	}
	v.nc.Close()
	v.stopRun()
}

// stop lets the worker drain, as SIGTERM does, and returns what Run said.
func (v *worker) stop() error {
	v.stopRun()
	<-v.ended
	return v.runErr
}
