package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Relay empties one outbox: it sends events and copies of dead letters to their
// streams, or the intents of one lane to the lane's (RelayOptions.Lane), and
// deletes them from the outbox once they are stored there. It sends at least once:
// who crashes between the two sends again, an event under the same id, an intent
// under the same key. The order of one payment's events is not promised, their
// sequence tells it.
//
// What a process has just committed comes by Offer, everything else by polling. A
// copy of a dead letter whose tenant is not known, or could not be one, goes to
// the subject of schema.UnknownTenant.
//
// A stream that is full or cannot be reached may stay so for hours. The relay then
// asks it with a few messages at a time, after pauses of up to RetryCap, and leaves
// the outbox alone: no poll could find anything that may leave. What it has held
// for longer than Hold it lets go of. Once the stream takes something the relay
// polls again and goes on.
type Relay struct {
	outbox   payments.Outbox
	subjects schema.Subjects
	opts     RelayOptions
	pipe     *pipe
	queue    *relayQueue
	lanes    []*relayLane  // events and dead letters, or one lane's intents alone
	poll     chan struct{} // wakes the poll
	running  atomic.Bool
}

// NewRelay returns a relay of one outbox on a connection, which stays the caller's.
// Close it after Run has returned. See New for the connection's options. A process
// that empties several outboxes has a relay for each.
func NewRelay(outbox payments.Outbox, nc *nats.Conn, subjects schema.Subjects, opts RelayOptions) (*Relay, error) {
	if err := subjects.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	pipe, err := newPipe(nc)
	if err != nil {
		return nil, err
	}
	r := &Relay{
		outbox: outbox, subjects: subjects, opts: opts, pipe: pipe,
		queue: newRelayQueue(opts.MaxQueue, opts.Now), poll: make(chan struct{}, 1),
	}
	for _, stream := range r.streams() {
		l, err := r.lane(stream)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.lanes = append(r.lanes, l)
	}
	r.queue.committers = len(r.lanes)
	return r, nil
}

// streams are those that the relay's items go to; see route.
func (r *Relay) streams() []string {
	switch r.opts.Lane {
	case 0:
		return []string{r.subjects.StreamEvents(), r.subjects.StreamDead()}
	case payments.LaneBulk:
		return []string{r.subjects.StreamBulk()}
	default:
		return []string{r.subjects.StreamIntents()}
	}
}

func (r *Relay) lane(stream string) (*relayLane, error) {
	l := &relayLane{relay: r, stream: stream, wake: make(chan struct{}, 1)}
	// No item is tried again here when no stream takes it, for the rest of its group
	// would wait; and no batch whose answer was lost, for the items go back into the
	// queue, and have ids of their own to be recognised by.
	l.sender = groupSender{jitter: r.opts.Jitter, patience: r.opts.AckTimeout, atomicMax: atomicMax}
	return l, l.sender.attach(r.pipe)
}

// Close refuses further messages; call it after Run has returned.
func (r *Relay) Close() {
	r.pipe.close()
	for _, l := range r.lanes {
		l.sender.detach()
	}
}

// Offer hands over items that the caller has just committed, so that they leave
// now and not with the next poll. It never blocks: what finds no room is polled
// later. It may be called before Run and by many goroutines.
func (r *Relay) Offer(items []payments.OutboxItem) {
	if !r.queue.add(r.route, items, false) {
		r.wakePoll()
	}
}

func (r *Relay) route(item payments.OutboxItem) *relayLane {
	if item.Kind == payments.OutboxDeadLetter {
		return r.lanes[len(r.lanes)-1]
	}
	return r.lanes[0]
}

func (r *Relay) wakePoll() {
	select {
	case r.poll <- struct{}{}:
	default:
	}
}

// Run relays until ctx ends, then sends what is left in a final pass of at most
// FinalTimeout, and returns nil; what the final pass could not send stays in the
// outbox. With NATS or PostgreSQL away it waits and goes on by itself. Only one
// Run at a time.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("relay: is already running")
	}
	defer r.running.Store(false)
	var all sync.WaitGroup
	for _, l := range r.lanes {
		all.Go(func() { l.run(ctx) })
	}
	all.Go(func() { r.pollLoop(ctx) })
	all.Wait()
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.FinalTimeout)
	defer cancel()
	_, _ = r.RunOnce(final) // its failures are observed, and cost nothing but time
	return nil
}

// pollLoop fetches what nobody offered: at once while there is more than a limit's
// worth, else after a pause that grows while there is nothing that may leave.
func (r *Relay) pollLoop(ctx context.Context) {
	idle, failures := r.opts.IdleMin, 0
	for ctx.Err() == nil {
		r.queue.waitRoom(ctx)
		found, full, err := r.fetch(ctx)
		r.observeDepth()
		pause := idle
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause = r.opts.pause(failures)
		case full:
			failures, idle = 0, r.opts.IdleMin
			continue
		case found > 0:
			failures, idle = 0, r.opts.IdleMin
			pause = idle
		default:
			failures = 0
			idle = min(2*idle, r.opts.IdleMax)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.poll:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// fetch polls the outbox once and returns how many items it found for streams that
// take any. full says that there may be more.
func (r *Relay) fetch(ctx context.Context) (found int, full bool, err error) {
	limit := min(r.opts.MaxGroup, r.queue.room())
	if limit == 0 {
		return 0, true, nil
	}
	overflows := r.queue.polling()
	items, err := r.outbox.Pending(ctx, limit, r.opts.Hold)
	if err != nil {
		err = fmt.Errorf("poll the outbox: %w", err)
		if ctx.Err() == nil {
			r.observeFailed("", 0, err)
		}
		return 0, false, err
	}
	r.queue.add(r.route, items, true)
	r.queue.polled(overflows, len(items) >= limit)
	found = r.queue.moving(r.route, items)
	return found, len(items) >= limit && found > 0, nil
}

// RunOnce sends what is queued and what the outbox has, until both are empty or
// something fails, and returns how many items were sent and settled. What failed
// stays in the outbox and is due again when its hold has run out.
func (r *Relay) RunOnce(ctx context.Context) (sent int, err error) {
	for {
		_, full, fetchErr := r.fetch(ctx)
		err = errors.Join(err, fetchErr)
		moved := 0
		for _, l := range r.lanes {
			for ctx.Err() == nil && !r.queue.empty(l) {
				n, passErr := l.pass(ctx, false)
				err = errors.Join(err, passErr)
				sent += n
				moved += n
				if l.blocked() {
					r.queue.drop(l) // it would take none of the others either
				}
			}
		}
		if ctx.Err() != nil {
			return sent, errors.Join(err, ctx.Err())
		}
		if !full || moved == 0 {
			return sent, err
		}
	}
}

// Idle reports whether this relay holds no item, the last Sent included, and the
// last poll left none in the outbox.
func (r *Relay) Idle() bool {
	idle, _ := r.queue.idle()
	return idle
}

// WaitEmpty returns when the relay is Idle, or with ctx's error.
func (r *Relay) WaitEmpty(ctx context.Context) error {
	for {
		idle, changed := r.queue.idle()
		if idle {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// observeFailed tells the observer; stream is "" where the outbox failed.
func (r *Relay) observeFailed(stream string, items int, err error) {
	if r.opts.Observer.Failed != nil {
		r.opts.Observer.Failed(stream, items, err)
	}
}

func (r *Relay) observeDepth() {
	if r.opts.Observer.Depth != nil {
		r.opts.Observer.Depth(r.queue.depth())
	}
}
