package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// DemoOptions are the flags of the demo.
type DemoOptions struct {
	Intents int
	Seed    uint64
	Faults  string // all, none, or a comma-separated list
	JSON    bool
}

// demo is one run: the stack, two worker processes, and what was published.
type demo struct {
	options  DemoOptions
	stack    *stack
	settings app.Settings
	js       jetstream.JetStream
	store    *postgres.Store
	work     *workload
	say      func(format string, args ...any)
	logs     *os.File

	stopWatching func() bool // whether ctx has ended

	workers []*child
	killed  int

	mu        sync.Mutex
	firstAck  map[int]time.Time // by intent
	sent      atomic.Int64
	repeats   atomic.Int64
	startedAt time.Time
	endedAt   time.Time
}

// Times of a demo: restMax is how long it may make no headway after the last publication.
const (
	restMax  = 45 * time.Second
	pollRest = 100 * time.Millisecond
)

// Demo publishes intents again and again through faults and killed workers, and proves that each was charged once. It returns an error only
// when it could not run; proof tells whether it holds.
func Demo(ctx context.Context, o DemoOptions, stderr *os.File) (proof *Proof, err error) {
	d := &demo{options: o, firstAck: map[int]time.Time{}, say: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }}
	if d.logs, err = os.CreateTemp("", "oncepay-demo-*.log"); err != nil {
		return nil, err
	}
	defer func() {
		_ = d.logs.Close()
		// What went wrong is to be understood; what was interrupted, or went well, is not.
		if ctx.Err() != nil || err == nil && proof.Holds {
			_ = os.Remove(d.logs.Name())
		} else {
			d.say("the workers' log is %s", d.logs.Name())
		}
	}()
	defer d.close()
	d.say("starting JetStream (synced), PostgreSQL and the Stripe simulator ...")
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	d.say("publishing %d intents from %d producers: %d messages, %d of them malformed", o.Intents, producerCount, d.work.messages, len(d.work.intents)-o.Intents)
	d.say("what Stripe does wrong on the way: %s", o.Faults)
	if err := d.run(ctx, stderr); err != nil {
		return nil, err
	}
	d.say("checking Stripe's ledger, payments, dead letters and events ...")
	return d.prove(ctx)
}

// start brings the stack up, and two workers on it.
func (d *demo) start(ctx context.Context) (err error) {
	if d.stack, err = startStack(ctx, stackOptions{seed: d.options.Seed}); err != nil {
		return err
	}
	if d.settings, err = app.Load(source(d.stack.environment())); err != nil {
		return err
	}
	if err := migrations.Up(ctx, d.settings.DatabaseURL); err != nil {
		return err
	}
	if d.store, err = postgres.Open(ctx, d.settings.DatabaseURL, postgres.Options{PoolSize: 4}); err != nil {
		return err
	}
	if _, err := d.store.CreateTenant(ctx, postgres.Tenant{ID: demoTenant}); err != nil {
		return err
	}
	log := app.NewLog(d.logs, "warn")
	nc, js, err := app.ConnectNATS(ctx, d.settings, "oncepay-demo", log)
	if err != nil {
		return err
	}
	d.js = js
	d.stopWatching = context.AfterFunc(ctx, nc.Close)
	if err := app.EnsureStreams(ctx, d.js, d.settings, log); err != nil {
		return err
	}
	subjects, _ := d.settings.Streams()
	if d.work, err = newWorkload(d.options.Intents, d.options.Seed, subjects); err != nil {
		return err
	}
	if err := addFaults(d.stack.sim, d.options.Faults); err != nil {
		return err
	}
	for range 2 {
		if err := d.startWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// faultList reads --faults.
func faultList(text string) []string {
	switch text {
	case "all":
		return faults
	case "none":
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// checkFaults asks a simulator of its own, before anything starts.
func checkFaults(text string) error {
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		return err
	}
	return errors.Join(addFaults(sim, text), sim.Close())
}

func addFaults(sim *stripesim.Server, text string) error {
	for _, fault := range faultList(text) {
		rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: fault, Rate: faultRate}
		if sim.AddFault(rule) != nil {
			return &app.UsageError{Text: "--faults: must be all, none or a list of " + strings.Join(faults, ",")}
		}
	}
	return nil
}

func (d *demo) startWorker(ctx context.Context) error {
	env := d.stack.environment()
	env["ONCEPAY_HTTP_ADDR"] = "off"
	env["ONCEPAY_CONCURRENCY"] = "64"
	env["ONCEPAY_LOG_LEVEL"] = "warn"
	c, err := startChild(env, d.logs)
	if err != nil {
		return err
	}
	d.workers = append(d.workers, c)
	if _, err := c.waitReady(ctx); err != nil {
		return err
	}
	return nil
}

// run publishes, kills a worker at a third and at two thirds of the way, and waits until everything has come to rest.
func (d *demo) run(ctx context.Context, stderr *os.File) (err error) {
	d.startedAt = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var producers sync.WaitGroup
	errs := make(chan error, producerCount)
	for _, list := range d.work.producers {
		producers.Go(func() { errs <- d.produce(ctx, list) })
	}
	published := make(chan struct{})
	go func() { producers.Wait(); close(published) }()
	progress := console.NewProgress(stderr, "payments settled", d.options.Intents)
	defer func() {
		if err != nil {
			progress.Abandon()
		}
	}()
	tick := time.NewTicker(pollRest)
	defer tick.Stop()
	killAt := []int{d.options.Intents / 3, d.options.Intents * 2 / 3}
	var way *headway // since everything is published
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-errs:
			if err != nil {
				return err
			}
		case <-published:
			published, way = nil, newHeadway(time.Now(), restMax)
		case <-tick.C:
			settled, err := d.settled(ctx)
			if err != nil {
				return err
			}
			progress.Set(settled)
			if way != nil && way.note(d.left(ctx, settled), time.Now()) {
				// What is still open now is a finding of the proof, not a reason to say nothing.
				progress.Note(fmt.Sprintf("nothing was settled or sent for %s; what is still open counts as lost", restMax))
				return d.rest(ctx, progress)
			}
			if len(killAt) > 0 && settled >= killAt[0] {
				killAt = killAt[1:]
				if err := d.killOne(ctx, progress); err != nil {
					return err
				}
			}
			if published == nil && len(killAt) == 0 {
				if d.atRest(ctx) {
					return d.rest(ctx, progress)
				}
			}
		}
	}
}

// rest ends the measured time.
func (d *demo) rest(ctx context.Context, progress *console.Progress) error {
	d.endedAt = time.Now()
	settled, err := d.settled(ctx)
	progress.Done(settled)
	return err
}

// killOne ends a worker with SIGKILL in the middle of its work, and starts another.
func (d *demo) killOne(ctx context.Context, progress *console.Progress) error {
	victim := d.workers[0]
	d.workers = slices.Delete(d.workers, 0, 1)
	victim.kill()
	d.killed++
	progress.Note(fmt.Sprintf("killed a worker process with SIGKILL (pid %d); another takes over", victim.command.Process.Pid))
	return d.startWorker(ctx)
}

// settled counts the payments that nobody has to act on any more.
func (d *demo) settled(ctx context.Context) (int, error) {
	counts, err := d.store.CountByStatus(ctx, demoTenant)
	if err != nil {
		return 0, err
	}
	n := 0
	for status, count := range counts {
		if settledStatus(status) {
			n += count
		}
	}
	return n, nil
}

// left counts what is left to do: payments to be settled, messages to be acked, events to be sent. What cannot be counted now is no headway.
func (d *demo) left(ctx context.Context, settled int) int64 {
	n, err := undone(ctx, d.js, d.store, d.settings)
	if err != nil {
		return math.MaxInt64
	}
	return n + int64(d.options.Intents-settled)
}

// atRest reports whether nothing is left to do anywhere, as far as can be seen.
func (d *demo) atRest(ctx context.Context) bool {
	left, err := leftToDo(ctx, d.js, d.store, d.settings)
	return left == "" && err == nil
}

func (d *demo) close() {
	stopAll(d.workers)
	if d.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.store.Close(ctx)
	}
	if d.js != nil {
		d.stopWatching()
		d.js.Conn().Close()
	}
	if d.stack != nil {
		d.stack.close()
	}
}

// Print shows the proof to a person.
func (p *Proof) Print(w io.Writer) {
	for _, line := range p.lines() {
		fmt.Fprintln(w, line)
	}
}
