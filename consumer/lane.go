package consumer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// The bounds of one pull. It stays open until it is filled or expires, holding the slots it was made for, so it asks for little where little
// has come lately.
const (
	pullMin    = 4
	pullMax    = 256
	pullExpiry = time.Second
	// infoTimeout bounds a question about a stream or a consumer.
	infoTimeout = 5 * time.Second
)

// lane pulls one stream's messages.
type lane struct {
	w      *Worker
	lane   payments.Lane
	stream string
	name   string // of the durable consumer
	want   int    // size of the next pull

	consumer jetstream.Consumer
	source   jetstream.Stream
	created  time.Time // the stream's: a re-created stream counts from 1 again
	remade   atomic.Bool

	flow   *flow
	rest   rest
	asking atomic.Bool // a pull is open
}

// rest is how many messages the newest delivered one left in the stream.
type rest struct {
	mu      sync.Mutex
	newest  uint64 // in the consumer's order
	pending uint64
}

// note takes in what a message says; messages come in any order.
func (r *rest) note(delivery, pending uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delivery > r.newest {
		r.newest, r.pending = delivery, pending
	}
}

// nothing notes that a pull found fewer messages than it asked for.
func (r *rest) nothing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = 0
}

// anew begins with another consumer.
func (r *rest) anew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest, r.pending = 0, 0
}

func (r *rest) some() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending > 0
}

// errRemade: the stream was deleted and made again since its created time was read.
var errRemade = errors.New("the stream was made anew")

// origin is the stream that the messages of one pull came from: they all come from the same, since a pull ends with its consumer.
type origin struct {
	stream  jetstream.Stream
	name    string
	created time.Time
	pull    *pull
	// confirm asks, once and after a message has come, whether created is still the stream's. Without it a dead letter of a re-created
	// stream could be taken for an old one of the same sequence, or an innocent message be erased.
	confirm func() error
}

func newLane(w *Worker, d *due, stream, name string) *lane {
	return &lane{w: w, lane: d.lane, stream: stream, name: name, want: pullMin, flow: newFlow(w.Clock, d.unclaimed, w.Concurrency)}
}

// behind reports whether there may be messages that the lane has not asked for.
func (l *lane) behind() bool { return !l.asking.Load() || l.rest.some() }

// pull asks for as many messages as there are slots for, until ctx ends.
func (l *lane) pull(ctx, work context.Context) {
	failures := 0
	for l.w.pauseWhileAway(ctx) {
		room := l.flow.room(ctx, func() { l.w.slots.setHungry(l.lane, forMessages, false) })
		if room == 0 {
			return
		}
		want := min(l.want, room)
		if l.w.away() {
			want = 1 // a probe: whatever fails now has to come back after AckWait
		}
		n := l.w.slots.acquire(ctx, l.lane, forMessages, want)
		if n == 0 {
			return
		}
		p := l.flow.begin(n, n == room, &l.rest)
		got, err := l.pullOnce(ctx, work, n, p)
		p.absent(n - got)
		l.w.slots.release(l.lane, forMessages, n-got)
		l.w.slots.setHungry(l.lane, forMessages, got == n)
		l.w.noteInFlight()
		l.want = min(max(2*got, pullMin), pullMax, max(1, l.w.Concurrency/4))
		if err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		failures++
		l.consumer = nil // the stream or the consumer may have been made anew
		l.w.Log.Warn("messages could not be pulled; it is tried again", "stream", l.stream, "consumer", l.name, "error", err)
		if !wait(ctx, min(time.Duration(failures)*250*time.Millisecond, 5*time.Second)) {
			return
		}
	}
}

// pullOnce pulls up to n messages and starts a goroutine for each; the goroutine gives its slot back. It returns how many it started. A pull
// does not end with ctx: what the server has sent by then would be lost to everybody until AckWait is over.
func (l *lane) pullOnce(ctx, work context.Context, n int, p *pull) (int, error) {
	if err := l.resolve(ctx); err != nil {
		return 0, err
	}
	l.asking.Store(true)
	defer l.asking.Store(false)
	batch, err := l.consumer.Fetch(n, jetstream.FetchMaxWait(pullExpiry))
	if err != nil {
		return 0, err
	}
	got := 0
	from := l.origin(p)
	for msg := range batch.Messages() {
		got++
		l.w.spawn(l.lane, forMessages, func(*slot) { l.w.handle(work, from, msg) })
	}
	if got < n {
		l.rest.nothing()
	}
	return got, batch.Error()
}

func (l *lane) origin(p *pull) *origin {
	o := &origin{stream: l.source, name: l.stream, created: l.created, pull: p}
	o.confirm = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
		defer cancel()
		now, err := l.w.JetStream.Stream(ctx, o.name)
		if err != nil {
			return err
		}
		if !now.CachedInfo().Created.Equal(o.created) {
			l.remade.Store(true)
			return errRemade
		}
		return nil
	})
	return o
}

// resolve binds to the lane's stream and durable consumer, which the operator's migrate step made.
func (l *lane) resolve(ctx context.Context) error {
	if l.consumer != nil && !l.remade.Swap(false) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	stream, err := l.w.JetStream.Stream(ctx, l.stream)
	if err != nil {
		return err
	}
	consumer, err := stream.Consumer(ctx, l.name)
	if err != nil {
		return err
	}
	l.rest.anew()
	l.source, l.created, l.consumer = stream, stream.CachedInfo().Created, consumer
	return nil
}
