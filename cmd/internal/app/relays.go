package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
)

// relays empty the store's outboxes: one for events and dead letters, one for the intents of each lane. Each has a queue of its own, so that a lane
// whose stream is full holds up neither the other nor any outcome.
type relays struct {
	all map[payments.OutboxKind]map[payments.Lane]*producer.Relay
	set []*producer.Relay
}

// copiesGather is how long a busy relay lets copies of intents gather. Nobody waits for them, since the tickets are due already, and each group costs
// the disk several syncs, which accepting more payments then waits for.
const copiesGather = 150 * time.Millisecond

// newRelays makes the relays on a connection; options are the same for all, but for the lane.
func newRelays(store *postgres.Store, nc *nats.Conn, subjects schema.Subjects, options producer.RelayOptions) (*relays, error) {
	r := &relays{all: map[payments.OutboxKind]map[payments.Lane]*producer.Relay{}}
	add := func(outbox payments.Outbox, kinds []payments.OutboxKind, lane payments.Lane) error {
		if options.Lane = lane; lane != 0 {
			options.Gather = copiesGather
		}
		one, err := producer.NewRelay(outbox, nc, subjects, options)
		if err != nil {
			return err
		}
		r.set = append(r.set, one)
		for _, kind := range kinds {
			if r.all[kind] == nil {
				r.all[kind] = map[payments.Lane]*producer.Relay{}
			}
			r.all[kind][lane] = one
		}
		return nil
	}
	err := errors.Join(
		add(store, []payments.OutboxKind{payments.OutboxEvent, payments.OutboxDeadLetter}, 0),
		add(store.Intents(payments.LaneInteractive), []payments.OutboxKind{payments.OutboxIntent}, payments.LaneInteractive),
		add(store.Intents(payments.LaneBulk), []payments.OutboxKind{payments.OutboxIntent}, payments.LaneBulk),
	)
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// offer hands each item to the relay of its outbox.
func (r *relays) offer(items []payments.OutboxItem) {
	for from := 0; from < len(items); {
		to, of := from+1, r.of(items[from])
		for to < len(items) && r.of(items[to]) == of {
			to++
		}
		if of != nil {
			of.Offer(items[from:to])
		}
		from = to
	}
}

func (r *relays) of(item payments.OutboxItem) *producer.Relay {
	lane := payments.Lane(0)
	if item.Kind == payments.OutboxIntent {
		lane = item.Lane
	}
	return r.all[item.Kind][lane]
}

// Run relays until ctx ends, all of them.
func (r *relays) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // one that ends by itself ends them all
	errs := make([]error, len(r.set))
	var all sync.WaitGroup
	for i, one := range r.set {
		all.Go(func() {
			defer cancel()
			errs[i] = one.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close refuses what still comes; call it after Run has returned.
func (r *relays) Close() {
	for _, one := range r.set {
		one.Close()
	}
}

// receiver is where committed items go: nowhere until the relays are there.
type receiver struct{ to atomic.Pointer[relays] }

func (r *receiver) offer(items []payments.OutboxItem) {
	if to := r.to.Load(); to != nil {
		to.offer(items)
	}
}

// relayOptions are the same for all relays of the process.
func (v *service) relayOptions() producer.RelayOptions {
	return producer.RelayOptions{Observer: producer.RelayObserver{
		Sent: func(_ string, n int, _ time.Duration) {
			v.metrics.eventsSent.Add(float64(n))
			if v.options.Relayed != nil {
				v.options.Relayed(n)
			}
		},
		Failed: func(_ string, n int, _ error) { v.metrics.eventsFailed.Add(float64(n)) },
		Stuck: func(stream string, err error) {
			if err != nil {
				v.log.Warn("a stream takes nothing; what is to be published on it waits in PostgreSQL", "stream", stream, "error", err)
				return
			}
			v.log.Info("a stream takes messages again", "stream", stream)
		},
	}}
}

// depth reads how many rows of a table of the outbox are left, for a gauge.
func depth(count func(context.Context) (int64, error)) func() (float64, bool) {
	return func() (float64, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		n, err := count(ctx)
		return float64(n), err == nil
	}
}
