package producer

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Defaults that New puts in the place of options that are zero or negative.
const (
	DefaultMaxGroup      = atomicMax
	DefaultMaxQueue      = 8192
	DefaultMaxQueueBytes = 64 << 20
	DefaultAckTimeout    = 10 * time.Second
)

// Options are the limits of a Publisher. The zero value is usable.
type Options struct {
	// MaxGroup is the largest number of messages that leave together, at most 1,000.
	MaxGroup int
	// MaxQueue and MaxQueueBytes bound what a Publisher holds at a time, queued and
	// under way, in messages and in bytes; who comes later waits for room. Each call
	// of PublishAll prepares two further groups a lane at most while it waits.
	MaxQueue, MaxQueueBytes int
	// AckTimeout is how long a group may be under way, its repeats included. Without
	// an acknowledgement by then the outcome is Unknown. A server that has stopped to
	// read holds up a group for as long as the connection's writes may take
	// (nats.FlusherTimeout).
	AckTimeout time.Duration
	// Traceparent finds the W3C trace context of a call, "" for none. It stands for
	// whatever tracing library the program uses, and is called from several goroutines.
	Traceparent func(context.Context) string
}

func (o Options) withDefaults() Options {
	o.MaxQueue = positive(o.MaxQueue, DefaultMaxQueue)
	o.MaxQueueBytes = positive(o.MaxQueueBytes, DefaultMaxQueueBytes)
	o.MaxGroup = min(positive(o.MaxGroup, DefaultMaxGroup), atomicMax, o.MaxQueue)
	o.AckTimeout = positive(o.AckTimeout, DefaultAckTimeout)
	return o
}

// Publisher puts intents on the lanes' streams. It is safe for concurrent use, and
// the more its callers have in common, the faster: it has one committer a lane, and
// whatever is published while a group is under way leaves with the next one. From
// 20 messages on a group is one atomic batch, which costs one write to disk. So make
// one Publisher for a process, and publish from as many goroutines as you like.
//
// It sets no Nats-Msg-Id for an intent: JetStream's duplicate window knows neither
// tenant nor body, and would drop the second tenant's order-1 with a friendly
// acknowledgement. What is published twice is sorted out by its key. A batch has a
// random one, on its first and its last message, by which the stream recognises it
// should it have to be sent again.
type Publisher struct {
	subjects schema.Subjects
	opts     Options
	pipe     *pipe
	room     *room

	interactive, bulk *lane
	closing           chan struct{}
	close             sync.Once
}

// New returns a Publisher on a connection, which stays the caller's. Close it.
// The connection is best made with nats.ReconnectBufSize(-1), so that nothing
// waits in a buffer that its publisher has given up, and nats.MaxReconnects(-1).
func New(nc *nats.Conn, subjects schema.Subjects, opts Options) (*Publisher, error) {
	if err := subjects.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	pipe, err := newPipe(nc)
	if err != nil {
		return nil, err
	}
	p := &Publisher{subjects: subjects, opts: opts, pipe: pipe, closing: make(chan struct{})}
	p.room = newRoom(opts.MaxQueueBytes, opts.MaxQueue, p.closing)
	for stream, l := range map[string]**lane{subjects.StreamIntents(): &p.interactive, subjects.StreamBulk(): &p.bulk} {
		sender := &groupSender{
			jitter: mathrand.N[time.Duration], stamp: rand.Text, patience: max(opts.AckTimeout/2, 1), blips: 2, atomicMax: opts.MaxGroup,
		}
		if err := sender.attach(pipe); err != nil {
			return nil, err
		}
		*l = newLane(stream, sender, opts, p.closing)
	}
	return p, nil
}

// Close refuses further messages and those that still wait for room, and returns
// when all that is queued or under way has its answer: at once without a connection,
// and within AckTimeout for each thousand that are queued. It may be called again.
func (p *Publisher) Close() {
	p.close.Do(func() { close(p.closing) })
	p.interactive.close(context.Background())
	p.bulk.close(context.Background())
	p.pipe.close()
}

// Publish checks an intent, sends it and waits for the acknowledgement. The error
// is Result.Err: nil exactly when the message is stored.
//
// ctx counts until the message leaves the queue: when it ends before, the message is
// NotStored and ErrNotSent. Once the message is under way its caller gets the true
// answer, within AckTimeout, since a caller that left in the middle would not know
// what was done in its name.
func (p *Publisher) Publish(ctx context.Context, m Message) (Result, error) {
	var r [1]Result
	msg, err := p.prepare(ctx, m)
	if err != nil {
		r[0].settle(ack{}, err)
	} else {
		one := parcel{messages: []*nats.Msg{msg}, index: []int{0}, room: max(msg.Size(), p.room.least)}
		p.deliver(ctx, p.laneOf(m.Lane), one, r[:])
	}
	r[0].PaymentID = m.Intent.ID()
	return r[0], r[0].Err
}

func (p *Publisher) laneOf(l payments.Lane) *lane {
	if l == payments.LaneBulk {
		return p.bulk
	}
	return p.interactive
}

func notSent(ctx context.Context) *Error {
	return notStored(true, "the caller gave up before the message was sent: publish it again", context.Cause(ctx)).as(ErrNotSent)
}

// settle writes what became of the message.
func (r *Result) settle(a ack, err *Error) {
	if err != nil {
		r.Outcome, r.Err = err.Outcome, err
		return
	}
	if a.duplicate {
		// Only a Nats-Msg-Id can cause this, and we set none: whatever JetStream
		// holds under it, it need not be this message.
		r.Err = unknown("the stream took the message for a repeat of another: publish it again under the same key", nil)
		return
	}
	r.Outcome, r.Stream, r.Sequence = Stored, a.stream, a.sequence
}
