package world

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

// Gate stops goroutines of a worker at its steps, and all of them once the worker is dead. What is stopped never goes on: it ends where it
// stands, without another word to anybody.
type Gate struct {
	stop  func(payments.Step, payments.ID) bool // nil: nothing
	watch func(payments.Step, payments.ID)      // nil: nobody

	mu      sync.Mutex
	dead    bool
	ended   chan struct{}
	stopped map[payments.ID]bool
	seen    map[payments.Step]map[payments.ID]int
}

func newGate(stop func(payments.Step, payments.ID) bool) *Gate {
	return &Gate{stop: stop, ended: make(chan struct{}), stopped: map[payments.ID]bool{}, seen: map[payments.Step]map[payments.ID]int{}}
}

func (g *Gate) onStep(s payments.Step, id payments.ID) {
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
func (g *Gate) die() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dead {
		g.dead = true
		close(g.ended)
	}
}

// HasStopped reports whether the payment was stopped at the gate.
func (g *Gate) HasStopped(id payments.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped[id]
}

// HasSeen is how often the payment has come to the step.
func (g *Gate) HasSeen(s payments.Step, id payments.ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[s][id]
}

// Worker is one worker with its relay, wired as in production.
type Worker struct {
	*consumer.Worker
	World *World
	Gate  *Gate
	// Replaying stops the runner of replays, if the worker has one.
	Replaying *Gate
	nc        *nats.Conn
	proxies   []*devstacktest.Proxy
	stopRun   context.CancelFunc
	ended     chan struct{}
	runErr    error
	drain     time.Duration
	Mark      *mark.Gate // nil: it is not marked
	keeper    *mark.Keeper
	Tripped   atomic.Bool  // it sends nothing but probes
	Looks     atomic.Int64 // how often the database was compared with its mark
}

// WorkerOptions say how a worker differs from a healthy one.
type WorkerOptions struct {
	Name        string
	Stop        func(payments.Step, payments.ID) bool // set: the worker is mortal
	Watch       func(payments.Step, payments.ID)      // is told of every step
	Concurrency int
	drain       time.Duration
	TriesMax    int
	Replays     func(deadletter.Step) bool // set: it runs replays, and stops where this says so
	Gateway     func(payments.Gateway) payments.Gateway
	JetStream   func(jetstream.JetStream) jetstream.JetStream
	// Marked: the worker notices a restored database, and runs rewinds; the runner dies before a step of which OnRewind says so.
	Marked   bool
	OnRewind func(payments.RewindStep) (dies bool)
	// Postgres and NATS, when set, are asked about everything that goes out on the worker's connections, once it works.
	Postgres, NATS func(chunk []byte) devstacktest.Action
}

// Start starts a worker; it is stopped with the test.
func (w *World) Start(o WorkerOptions) *Worker {
	w.Helper()
	v := &Worker{World: w, Gate: newGate(o.Stop), Replaying: newGate(nil), ended: make(chan struct{}), drain: max(o.drain, slow*5*time.Second)}
	v.Gate.watch = o.Watch
	if o.Stop != nil {
		v.drain = 100 * time.Millisecond
	}
	dsn, natsURL := v.lines(o)
	log := w.Logs.Logger(o.Name)
	ctx, cancel := context.WithCancel(context.Background())
	v.stopRun = cancel
	var relay *producer.Relay
	if o.Marked {
		v.Mark = mark.NewGate(log)
	}
	store := v.openStore(ctx, dsn, log, func(items []payments.OutboxItem) { relay.Offer(items) })
	v.nc = w.Connect(natsURL, o.Name)
	js, err := jetstream.New(v.nc)
	if err != nil {
		w.Fatal(err)
	}
	relay, err = producer.NewRelay(store, v.nc, w.Subjects, producer.RelayOptions{
		Hold: w.Times.Hold, AckTimeout: 2 * time.Second, IdleMin: 50 * time.Millisecond, IdleMax: 200 * time.Millisecond, FinalTimeout: 2 * time.Second,
	})
	if err != nil {
		w.Fatal(err)
	}
	gateway := w.openGateway(ctx, log)
	if o.JetStream != nil {
		js = o.JetStream(js)
	}
	v.wire(o, store, gateway, js, log)
	if len(v.proxies) > 0 {
		v.proxies[0].OnClientData(o.Postgres)
		v.proxies[1].OnClientData(o.NATS)
	}
	var marking sync.WaitGroup
	watching, stopMark := context.WithCancel(context.Background())
	if o.Marked {
		w.keep(watching, &marking, v, store, js, gateway, o.OnRewind)
	}
	relaying, stopRelay := context.WithCancel(context.Background())
	var relayed sync.WaitGroup
	relayed.Go(func() { _ = relay.Run(relaying) })
	go func() {
		defer close(v.ended)
		v.runErr = v.Run(ctx, v.drain)
	}()
	replayed := func() {}
	if o.Replays != nil {
		replayed = v.runReplays(ctx, store, o.Replays, log)
	}
	w.Cleanup(func() {
		v.Gate.die()
		v.Replaying.die()
		v.Stop()
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
func (v *Worker) lines(o WorkerOptions) (dsn, natsURL string) {
	w := v.World
	w.Helper()
	if o.Stop == nil && o.Postgres == nil && o.NATS == nil {
		return w.DSN, w.NATSURL
	}
	pg, broker := devstacktest.NewProxy(w, w.DSN), devstacktest.NewProxy(w, w.NATSURL)
	v.proxies = []*devstacktest.Proxy{pg, broker}
	return devstacktest.Via(w, w.DSN, pg.Addr()), devstacktest.Via(w, w.NATSURL, broker.Addr())
}

// openStore is the worker's own store; it offers to the relay what it has committed.
func (v *Worker) openStore(ctx context.Context, dsn string, log *slog.Logger, offer func([]payments.OutboxItem)) *postgres.Store {
	w := v.World
	w.Helper()
	var compared func(context.Context, func(context.Context) (payments.MarkState, error))
	if v.Mark != nil {
		compared = v.Mark.Connected
	}
	store, err := postgres.Open(ctx, dsn, postgres.Options{
		PoolSize: 4, Clock: w.Clock, Namespace: Namespace, RequestVersion: stripe.RequestVersion, Logger: log, Hold: w.Times.Hold, FlushTimeout: 3 * time.Second,
		Backoff: w.Times.Backoff, Committed: offer, Connected: compared,
	})
	if err != nil {
		w.Fatal(err)
	}
	return store
}

// openGateway is a way to Stripe. Production, too, tries until Stripe answers within the time-out.
func (w *World) openGateway(ctx context.Context, log *slog.Logger) (gateway *stripe.Gateway) {
	w.Helper()
	w.Await("Stripe, at start", func() (bool, string) {
		var err error
		gateway, err = stripe.New(ctx, stripe.Options{Key: StripeKey, URL: w.SimURL, Namespace: Namespace, Timeout: w.Times.Call, Clock: w.Clock, Logger: log})
		return err == nil, fmt.Sprint(err)
	})
	return gateway
}

// wire puts the worker together from its parts.
func (v *Worker) wire(o WorkerOptions, store *postgres.Store, gateway payments.Gateway, js jetstream.JetStream, log *slog.Logger) {
	w := v.World
	w.Helper()
	if o.Gateway != nil {
		gateway = o.Gateway(gateway)
	}
	var held func() string
	if v.Mark != nil {
		held = v.Mark.Held
	}
	followUps, _ := gateway.(payments.FollowUpGateway)
	processor := &payments.Processor{
		Store: store, FollowUps: store, Gateway: gateway, FollowUpGateway: followUps, Clock: w.Clock, Namespace: Namespace, Lease: w.Times.Lease, CallTimeout: w.Times.Call, TriesMax: cmp.Or(o.TriesMax, 20),
		Backoff: w.Times.Backoff, OnStep: v.Gate.onStep, Held: held,
	}
	var err error
	v.Worker, err = consumer.New(consumer.Config{
		JetStream: js, Subjects: w.Subjects, Store: store, Batches: store, Processor: processor, Clock: w.Clock, Concurrency: max(o.Concurrency, 64), Lease: w.Times.Lease,
		PollInterval: 50 * time.Millisecond, NewToken: app.NewToken, Log: log, OnStep: v.Gate.onStep, Held: held,
		Observer: v.observer(),
	})
	if err != nil {
		w.Fatal(err)
	}
}

// runReplays runs replays beside the worker until ctx ends.
func (v *Worker) runReplays(ctx context.Context, store *postgres.Store, stop func(deadletter.Step) bool, log *slog.Logger) (wait func()) {
	v.World.Helper()
	v.Replaying = newGate(func(s payments.Step, _ payments.ID) bool { return stop(deadletter.Step(s)) })
	runner, err := deadletter.New(deadletter.Config{
		Store: store, FollowUps: store, Batches: store, Replays: store, Clock: v.World.Clock, Subjects: v.World.Subjects, Log: log, Hold: 2 * time.Second, Poll: 50 * time.Millisecond,
		Idle: 100 * time.Millisecond, OnStep: func(s deadletter.Step, _ string) { v.Replaying.onStep(payments.Step(s), payments.ID{}) },
	})
	if err != nil {
		v.World.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = runner.Run(ctx) })
	return running.Wait
}

// Kill ends a mortal worker as SIGKILL would: from now on nothing of it reaches anybody.
func (v *Worker) Kill() {
	v.Gate.die()
	v.Replaying.die()
	for _, p := range v.proxies {
		p.Cut()
	}
	v.nc.Close()
	v.stopRun()
}

// Stop lets the worker drain, as SIGTERM does, and returns what Run said.
func (v *Worker) Stop() error {
	v.stopRun()
	<-v.ended
	return v.runErr
}

// AllStopped reports whether all the payments have been stopped, and says how many.
func AllStopped(g *Gate, ids []payments.ID) (bool, string) {
	n := 0
	for _, id := range ids {
		if g.HasStopped(id) {
			n++
		}
	}
	return n == len(ids), fmt.Sprintf("%d of %d payments have stopped", n, len(ids))
}
