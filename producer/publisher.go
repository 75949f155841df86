package producer

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Defaults that New puts in the place of options that are zero or negative.
const (
	DefaultMaxInFlight = 1024
	DefaultAckTimeout  = 10 * time.Second
)

// Options are the limits of a Publisher. The zero value is usable.
type Options struct {
	// MaxInFlight is how many messages of this Publisher may wait for their
	// acknowledgement; who comes later waits for room. Each lane may have one batch
	// of at most as many messages, and of at most 1,000, beside them.
	MaxInFlight int
	// AckTimeout is how long an acknowledgement is waited for, unless the caller's
	// context ends first. Without one by then the outcome is Unknown.
	AckTimeout time.Duration
	// Traceparent finds the W3C trace context of a call, "" for none. It stands for
	// whatever tracing library the program uses.
	Traceparent func(context.Context) string
}

// Publisher puts intents on the lanes' streams. It is safe for concurrent use. It
// sets no Nats-Msg-Id for an intent: JetStream's duplicate window knows neither
// tenant nor body, and would drop the second tenant's order-1 with a friendly
// acknowledgement. What is published twice is sorted out by its key.
type Publisher struct {
	subjects schema.Subjects
	opts     Options
	pipe     *pipe
	slots    chan struct{} // one token per message in flight outside of batches

	interactive, bulk *publisherLane
}

// New returns a Publisher on a connection, which stays the caller's. Close it.
// The connection is best made with nats.ReconnectBufSize(-1), so that nothing
// waits in a buffer that its publisher has given up, and nats.MaxReconnects(-1).
func New(nc *nats.Conn, subjects schema.Subjects, opts Options) (*Publisher, error) {
	if err := subjects.Validate(); err != nil {
		return nil, err
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = DefaultMaxInFlight
	}
	if opts.AckTimeout <= 0 {
		opts.AckTimeout = DefaultAckTimeout
	}
	// Callers that gave up free their slots before their messages are answered;
	// four times as many may so be under way, for AckTimeout at most. A batch that
	// is refused as a batch goes out singly and needs room too.
	pipe, err := newPipe(nc, opts.AckTimeout, 4*opts.MaxInFlight+2*atomicMax)
	if err != nil {
		return nil, err
	}
	p := &Publisher{subjects: subjects, opts: opts, pipe: pipe, slots: make(chan struct{}, opts.MaxInFlight)}
	p.interactive, p.bulk = p.lane(), p.lane()
	return p, nil
}

// Close refuses further messages. What is in flight gets its answer. The client's
// bookkeeping goes on until the connection is closed, so make one Publisher for a
// connection and not one for a message.
func (p *Publisher) Close() { p.pipe.close() }

// Publish checks an intent, sends it and waits for the acknowledgement. The error
// is Result.Err: nil exactly when the message is stored. A ctx that ends before
// the message was handed to the connection gives NotStored, after it Unknown.
func (p *Publisher) Publish(ctx context.Context, m Message) (Result, error) {
	r := p.PublishAll(ctx, []Message{m})[0]
	return r, r.Err
}

// PublishAll sends all messages, many at a time, and returns when every one has
// its result: result i is message i's. One that is refused does not hold up the
// others. The order within a stream is the order given, but for what failed. From
// 20 messages of one lane on they travel in atomic batches, whose messages share
// one acknowledgement: all are stored, or for all of them the outcome is Unknown,
// or each gets an attempt of its own.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) []Result {
	results := make([]Result, len(messages))
	for from := 0; from < len(messages); from += atomicMax {
		to := min(from+atomicMax, len(messages))
		p.publishWindow(ctx, messages[from:to], results[from:to])
	}
	return results
}

// publishWindow prepares the messages and sends them lane by lane.
func (p *Publisher) publishWindow(ctx context.Context, messages []Message, results []Result) {
	lanes := [2]struct {
		lane *publisherLane
		out  []numberedMsg
	}{{lane: p.interactive}, {lane: p.bulk}}
	for i, m := range messages {
		out := p.prepare(ctx, m)
		results[i].PaymentID = out.id
		switch {
		case out.err != nil:
			results[i].settle(ack{}, out.err)
		case m.Lane == payments.LaneBulk:
			lanes[1].out = append(lanes[1].out, numberedMsg{i, out.msg})
		default:
			lanes[0].out = append(lanes[0].out, numberedMsg{i, out.msg})
		}
	}
	for _, l := range lanes {
		if len(l.out) >= atomicFrom && p.opts.MaxInFlight >= atomicFrom {
			p.together(ctx, l.lane, l.out, results)
		} else {
			p.apart(ctx, l.out, results)
		}
	}
}

// numberedMsg is a prepared message and the place of its result.
type numberedMsg struct {
	index int
	msg   *nats.Msg
}

// publisherLane is the one committer of a lane's batches: several side by side are
// no faster, and each waits longer.
type publisherLane struct {
	turn   chan struct{}
	sender groupSender
}

func (p *Publisher) lane() *publisherLane {
	return &publisherLane{
		turn:   make(chan struct{}, 1),
		sender: groupSender{pipe: p.pipe, atomicMax: min(atomicMax, p.opts.MaxInFlight)},
	}
}

// together sends the messages in batches once it is their turn.
func (p *Publisher) together(ctx context.Context, lane *publisherLane, out []numberedMsg, results []Result) {
	err := notSent(ctx)
	if ctx.Err() == nil {
		select {
		case lane.turn <- struct{}{}:
			err = nil
			defer func() { <-lane.turn }()
		case <-ctx.Done():
			err = notSent(ctx)
		}
	}
	if err != nil {
		for _, m := range out {
			results[m.index].settle(ack{}, err)
		}
		return
	}
	group := make([]*nats.Msg, len(out))
	for i, m := range out {
		group[i] = m.msg
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.AckTimeout)
	defer cancel()
	for i, f := range lane.sender.send(ctx, group) {
		results[out[i].index].settle(f.ack, f.err)
	}
}

// apart sends the messages one after another, as far ahead of their
// acknowledgements as there are slots.
func (p *Publisher) apart(ctx context.Context, out []numberedMsg, results []Result) {
	flying := make([]flight, 0, min(len(out), p.opts.MaxInFlight))
	landed := 0
	land := func() {
		f := flying[landed]
		landed++
		results[f.index].settle(f.wait(ctx))
		<-p.slots
	}
	for _, m := range out {
		if err := p.acquire(ctx, func() bool { return landed < len(flying) }, land); err != nil {
			results[m.index].settle(ack{}, err)
			continue
		}
		future, err := p.pipe.send(m.msg)
		if err != nil {
			<-p.slots
			results[m.index].settle(ack{}, err)
			continue
		}
		flying = append(flying, flight{index: m.index, future: future})
	}
	for landed < len(flying) {
		land()
	}
}

// acquire takes a slot. While there is none it waits for the caller's own oldest
// message, since nobody else will free that one's slot.
func (p *Publisher) acquire(ctx context.Context, flying func() bool, land func()) *Error {
	for {
		if err := ctx.Err(); err != nil {
			return notSent(ctx)
		}
		select {
		case p.slots <- struct{}{}:
			return nil
		default:
		}
		if flying() {
			land()
			continue
		}
		select {
		case p.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return notSent(ctx)
		}
	}
}

func notSent(ctx context.Context) *Error {
	return notStored(true, "the caller gave up before the message was sent: publish it again", context.Cause(ctx))
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
