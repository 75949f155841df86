package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/consumer/rewind"
	"github.com/oncepay/oncepay/consumer/trim"
	"github.com/oncepay/oncepay/ingress"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
)

// ServeOptions are what a caller other than production may add.
type ServeOptions struct {
	// Ready is called once everything works, with the addresses of health and metrics ("" when off).
	Ready func(http, admin string)
	// OnStep is told of every step of every payment.
	OnStep func(payments.Step, payments.ID)
	// Relayed is told of outbox items that have their PubAck and are deleted.
	Relayed func(n int)
	// Settled is told of every claim that ended, with the time since its message was stored (zero for due tickets).
	Settled func(s payments.Settlement, waited time.Duration)
	// Observed is told of every answer of Stripe.
	Observed func(payments.Observation)
}

// Budgets of draining, beside the worker's own: Settings.DrainBudget.
const (
	httpBudget    = 3 * time.Second
	replaysBudget = 5 * time.Second
	trimBudget    = 5 * time.Second
	rewindBudget  = 10 * time.Second
	markBudget    = 5 * time.Second
	relayBudget   = 10 * time.Second
	closeBudget   = 10 * time.Second
)

// service is one serving process, put together.
type service struct {
	settings    Settings
	log         *slog.Logger
	options     ServeOptions
	metrics     *Metrics
	store       *postgres.Store
	nc          *nats.Conn
	connected   atomic.Pointer[nats.Conn] // nc, for probes that come meanwhile
	js          jetstream.JetStream
	accounts    *stripe.Accounts
	stripe      atomic.Pointer[stripe.Accounts] // accounts, for the API; it may be there later than the API is
	relays      *relays
	receiver    receiver // of what the store commits
	api         *ingress.API
	open        *front
	worker      *consumer.Worker
	trimmer     *trim.Trimmer
	replays     *deadletter.Runner
	gate        *mark.Gate   // nil without a worker
	keeper      *mark.Keeper // of the database's mark
	rewinds     *rewind.Runner
	health      *Health
	trouble     *trouble
	front       *door  // ONCEPAY_HTTP_ADDR
	leaveStripe func() // ends findStripe
	admin       *door  // ONCEPAY_ADMIN_ADDR
}

// Serve works until ctx ends, and then drains in order: readiness, HTTP, worker, relay, connections. Its addresses are bound first: a taken
// port starts nothing, and a process that waits for PostgreSQL answers its probes. The API is served as soon as PostgreSQL is there.
//
//	HTTP ──▶ ingress ──▶ PostgreSQL ──▶ relay ──▶ JetStream
//	                         ▲
//	     JetStream ──▶ worker ──▶ Stripe
//
// What it needs and cannot reach is waited for; what is refused by name (a password, a database, a key) is a *UsageError.
func Serve(ctx context.Context, s Settings, log *slog.Logger, o ServeOptions) error {
	if err := s.CheckServe(); err != nil {
		return err
	}
	tuneMemory()
	metrics := NewMetrics()
	v := &service{settings: s, log: log, options: o, metrics: metrics, health: &Health{Metrics: metrics}, trouble: newTrouble(log, SystemClock{}.Now)}
	defer v.close()
	var err error
	if v.plays(RoleWorker) {
		v.gate = mark.NewGate(log)
	}
	v.open = newFront(v.health.Handler())
	if v.front, err = openDoor("ONCEPAY_HTTP_ADDR", s.HTTPAddr, v.open); err != nil {
		return err
	}
	if v.admin, err = openDoor("ONCEPAY_ADMIN_ADDR", s.AdminAddr, v.health.Handler()); err != nil {
		return err
	}
	if err = v.connect(ctx); err == nil {
		err = v.build()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		log.Info("oncepay was told to stop before it had started")
		return nil
	case err != nil:
		return err
	}
	return v.run(ctx)
}

// connect reaches PostgreSQL, NATS and Stripe, waiting for each as long as it takes, and brings schema and streams to what this version needs.
func (v *service) connect(ctx context.Context) (err error) {
	s := v.settings
	err = retry(ctx, v.log, "PostgreSQL", unreachable, func() error {
		if err := migrations.Up(ctx, s.DatabaseURL); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		v.store, err = v.openStore(ctx)
		return err
	})
	if err != nil {
		return DatabaseError(err)
	}
	// PostgreSQL may go away again at any time, and a starting process waits for it then too.
	err = retry(ctx, v.log, "PostgreSQL", unreachable, func() error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if err := v.checkNamespace(ctx); err != nil {
			return err
		}
		return v.checkClock(ctx)
	})
	if err != nil {
		return err
	}
	if err := v.openAPI(); err != nil {
		return err
	}
	if !v.plays(RoleWorker) && !v.plays(RoleRelay) {
		v.findStripe(ctx)
		return nil
	}
	if v.nc, v.js, err = ConnectNATS(ctx, s, "oncepay", v.log); err != nil {
		return err
	}
	v.connected.Store(v.nc)
	if err := EnsureStreams(ctx, v.js, s, v.log); err != nil {
		return err
	}
	if !v.plays(RoleWorker) {
		v.findStripe(ctx)
		return nil
	}
	if err := v.connectStripe(ctx); err != nil {
		return err
	}
	if own, _ := v.accounts.Account(ctx, ""); own.Livemode {
		if err := checkSync(ctx, s, v.log); err != nil {
			return err
		}
	}
	v.warmAccounts(ctx)
	return nil
}

// connectStripe reaches Stripe, waiting for it as long as it takes.
func (v *service) connectStripe(ctx context.Context) error {
	s := v.settings
	err := retry(ctx, v.log, "Stripe", payments.Retryable, func() (err error) {
		v.accounts, err = stripe.NewAccounts(ctx, stripe.Options{
			Key: s.StripeKey, URL: s.StripeURL, AccountID: s.StripeAccount, Namespace: s.Namespace, Timeout: s.StripeTimeout,
			MaxConns: 2 * s.Concurrency, // as many as send may look up beside them
			Logger:   v.log,
		}, TenantWays(v.store))
		return err
	})
	switch {
	case payments.ErrorCode(err) == payments.CodeInvalid:
		return &UsageError{err.Error()}
	case err == nil:
		v.stripe.Store(v.accounts)
	}
	return err
}

// findStripe reaches Stripe in the background, where only the API needs it, to show customers' next actions: payments are accepted without it.
func (v *service) findStripe(ctx context.Context) {
	if !v.plays(RoleIngress) || v.settings.StripeKey == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	v.leaveStripe = func() { cancel(); <-done }
	go func() {
		defer close(done)
		if err := v.connectStripe(ctx); err != nil && ctx.Err() == nil {
			v.log.Warn("customers' next actions are not shown: Stripe cannot be used from here", "error", err)
		}
	}()
}

// checkNamespace binds the database to the namespace before anything can be sent under it.
func (v *service) checkNamespace(ctx context.Context) error {
	err := v.store.PinNamespace(ctx)
	switch {
	case err == nil:
		return nil
	case payments.ErrorCode(err) == payments.CodeInvalid:
		return &UsageError{err.Error()}
	}
	return DatabaseError(err)
}

// skewMax is how far our clock may be from PostgreSQL's: leases and the times of sends are PostgreSQL's, and the last check before a send is ours.
const skewMax = time.Minute

func (v *service) checkClock(ctx context.Context) error {
	skew, err := v.store.ClockSkew(ctx)
	if err != nil {
		return DatabaseError(err)
	}
	if skew.Abs() > skewMax {
		return fmt.Errorf("the clock of this machine differs from PostgreSQL's by %s; set both (NTP)", skew.Round(time.Second))
	}
	return nil
}

// build makes the parts of the roles.
func (v *service) build() (err error) {
	s := v.settings
	subjects, _ := s.Streams()
	v.metrics.Gauge("outbox_depth", "Events and dead letters not yet stored in their stream.", depth(v.store.OutboxDepth))
	v.metrics.Gauge("unpublished", "Accepted payments whose copy is not yet stored in its stream.", depth(v.store.Unpublished))
	if v.plays(RoleRelay) {
		if v.relays, err = newRelays(v.store, v.nc, subjects, v.relayOptions()); err != nil {
			return err
		}
		v.receiver.to.Store(v.relays)
	}
	if !v.plays(RoleWorker) {
		return nil
	}
	v.metrics.Gauge("tenants_held_back", "Tenants whose own Stripe account cannot be used; their payments wait.", func() (float64, bool) {
		return float64(v.accounts.Broken()), true
	})
	v.metrics.Gauge("stripe_rate", "ONCEPAY_STRIPE_RATE of this process, which should be that of all; 0: unlimited.", func() (float64, bool) {
		return s.StripeRate, true
	})
	if err := v.buildMark(subjects); err != nil {
		return err
	}
	processor := &payments.Processor{
		Store: v.store, FollowUps: v.store, Gateway: v.accounts, FollowUpGateway: v.accounts, Clock: SystemClock{}, Namespace: s.Namespace, Lease: s.Lease,
		CallTimeout: s.StripeTimeout,
		TriesMax:    s.MaxTries, ResubmitAfterAbsent: s.ResubmitAfterAbsent, Backoff: s.Backoff(), OnStep: v.options.OnStep, OnObservation: v.observed,
		Held: v.gate.Held,
	}
	v.worker, err = consumer.New(consumer.Config{
		JetStream: v.js, Subjects: subjects, Store: v.store, Batches: v.store, Processor: processor, Clock: SystemClock{}, Concurrency: s.Concurrency, Lease: s.Lease,
		NewToken: NewToken, Held: v.gate.Held, Log: v.log, Observer: v.observer(), OnStep: v.options.OnStep,
	})
	if err != nil {
		return err
	}
	if err := v.buildReplays(subjects); err != nil {
		return err
	}
	return v.buildTrim(subjects)
}

func (v *service) observed(p payments.Payment, o payments.Observation) {
	v.metrics.Observation(p, o)
	v.trouble.observed(p, o)
	if v.options.Observed != nil {
		v.options.Observed(o)
	}
}

func (v *service) observer() consumer.Observer {
	o := v.metrics.Observer()
	count := o.Settled
	message, taken := o.Message, o.Taken
	o.Message = func(l payments.Lane, fate string) { message(l, fate); v.keeper.Worked() }
	o.Taken = func(l payments.Lane, n int) { taken(l, n); v.keeper.Worked() }
	o.Settled = func(l payments.Lane, s payments.Settlement, waited time.Duration) {
		count(l, s, waited)
		v.keeper.Worked()
		v.trouble.settled(s)
		if v.options.Settled != nil {
			v.options.Settled(s, waited)
		}
	}
	return o
}

// run serves until ctx ends. The order of the parts is the order of draining.
func (v *service) run(ctx context.Context) error {
	g := newGroup(v.log)
	g.add("readiness", time.Second, func(ctx context.Context) error { <-ctx.Done(); v.health.StopReady(); return nil })
	if v.api != nil { // those who wait are answered, so that the server can end
		g.add("waiting callers", httpBudget, v.api.Run)
	}
	if v.front != nil {
		g.add(v.front.name, httpBudget, v.front.run)
	}
	if v.replays != nil { // before the worker, which has what they issue
		g.add("replays", replaysBudget, v.replays.Run)
	}
	if v.worker != nil {
		g.add("worker", v.settings.DrainBudget+5*time.Second, func(ctx context.Context) error { return v.worker.Run(ctx, v.settings.DrainBudget) })
	}
	if v.trimmer != nil {
		g.add("trim", trimBudget, v.trimmer.Run) // after the worker: what a drain acks makes room still
	}
	if v.rewinds != nil {
		g.add("rewind", rewindBudget, v.rewinds.Run)
	}
	if v.keeper != nil { // after the worker: what it does at last is marked
		g.add("mark", markBudget, v.keeper.Run)
	}
	if v.relays != nil {
		g.add("relay", relayBudget, v.relays.Run)
	}
	if v.admin != nil { // the operators' listener comes last: they watch a drain to its end
		g.add(v.admin.name, httpBudget, v.admin.run)
	}
	if v.api == nil {
		v.health.StartReady(v.checks())
	}
	v.log.Info("oncepay works", "roles", v.settings.Roles, "http", v.front.address(), "admin", v.admin.address())
	if v.options.Ready != nil {
		v.options.Ready(v.front.address(), v.admin.address())
	}
	err := g.serve(ctx)
	v.log.Info("oncepay stopped")
	return err
}

// checks are what the process needs. With the API it is fit for requests without NATS, which is told all the same.
func (v *service) checks() map[string]Check {
	checks := map[string]Check{"postgres": {Run: v.store.Ping}}
	if v.plays(RoleWorker) || v.plays(RoleRelay) {
		checks["nats"] = Check{Run: v.natsConnected, Optional: v.api != nil}
	}
	if v.gate != nil {
		checks["mark"] = Check{Run: v.notHeld, Optional: true}
	}
	return checks
}

func (v *service) natsConnected(context.Context) error {
	if nc := v.connected.Load(); nc == nil || !nc.IsConnected() {
		return errors.New("not connected")
	}
	return nil
}

// close ends what was opened, in reverse: flushers, then NATS with its acks, then the pool.
func (v *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	v.front.close()
	v.admin.close()
	if v.nc != nil {
		if v.nc.IsConnected() {
			_ = v.nc.FlushWithContext(ctx) // acks on their way
		}
		v.nc.Close()
	}
	if v.relays != nil {
		v.relays.Close()
	}
	if v.leaveStripe != nil {
		v.leaveStripe()
	}
	if v.accounts != nil {
		v.accounts.Close() // it may be pinning an account
	}
	if v.store != nil {
		_ = v.store.Close(ctx)
	}
}
