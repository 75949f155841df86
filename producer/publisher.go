package producer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	// acknowledgement; who comes later waits for room.
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
	slots    chan struct{} // one token per message in flight
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
	// four times as many may so be under way, for AckTimeout at most.
	pipe, err := newPipe(nc, opts.AckTimeout, 4*opts.MaxInFlight)
	if err != nil {
		return nil, err
	}
	return &Publisher{subjects: subjects, opts: opts, pipe: pipe, slots: make(chan struct{}, opts.MaxInFlight)}, nil
}

// Close lets go of the connection. Call it after the last Publish has returned;
// what is still in flight ends as Unknown.
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
// others. The order in the stream is the order given, but for what failed.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) []Result {
	results := make([]Result, len(messages))
	flying := make([]flight, 0, min(len(messages), p.opts.MaxInFlight))
	landed := 0
	land := func() {
		f := flying[landed]
		landed++
		results[f.index].settle(f.wait(ctx))
		<-p.slots
	}
	for i, m := range messages {
		out := p.prepare(ctx, m)
		results[i].PaymentID = out.id
		if out.err != nil {
			results[i].settle(ack{}, out.err)
			continue
		}
		if err := p.acquire(ctx, func() bool { return landed < len(flying) }, land); err != nil {
			results[i].settle(ack{}, err)
			continue
		}
		future, err := p.pipe.send(out.msg)
		if err != nil {
			<-p.slots
			results[i].settle(ack{}, err)
			continue
		}
		flying = append(flying, flight{index: i, future: future})
	}
	for landed < len(flying) {
		land()
	}
	return results
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

// ack is where a stored message stands.
type ack struct {
	stream    string
	sequence  uint64
	duplicate bool
}

// pipe sends messages without waiting for one before the next.
type pipe struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	closed atomic.Bool
}

// newPipe gives the pipe a JetStream context of its own: the bookkeeping of
// acknowledgements is per context, and close ends its goroutine.
func newPipe(nc *nats.Conn, timeout time.Duration, pending int) (*pipe, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(timeout), jetstream.WithPublishAsyncMaxPending(pending))
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &pipe{nc: nc, js: js}, nil
}

func (p *pipe) close() {
	p.closed.Store(true)
	p.js.CleanupPublisher()
}

// connected refuses to send while there is no connection: the client would keep
// the message and send it later, when its caller has long been told otherwise.
func (p *pipe) connected() *Error {
	if p.closed.Load() {
		return notStored(false, "the publisher is closed: make a new one", nil)
	}
	if p.nc.IsConnected() {
		return nil
	}
	return notStored(true, "there is no connection to NATS: publish it again", nats.ErrDisconnected)
}

// send hands one message to the connection.
func (p *pipe) send(m *nats.Msg) (jetstream.PubAckFuture, *Error) {
	if err := p.connected(); err != nil {
		return nil, err
	}
	future, err := p.js.PublishMsgAsync(m)
	if err != nil {
		return nil, refusedToSend(err)
	}
	return future, nil
}

// flight is a message that was sent.
type flight struct {
	index  int
	future jetstream.PubAckFuture
}

// wait returns what became of the message. An answer that is there already counts,
// even if ctx has ended.
func (f flight) wait(ctx context.Context) (ack, *Error) {
	select {
	case a := <-f.future.Ok():
		return accepted(a)
	case err := <-f.future.Err():
		return ack{}, refusedByServer(err)
	default:
	}
	select {
	case a := <-f.future.Ok():
		return accepted(a)
	case err := <-f.future.Err():
		return ack{}, refusedByServer(err)
	case <-ctx.Done():
		return ack{}, unknown("the caller stopped waiting for the acknowledgement: publish it again under the same key", context.Cause(ctx))
	}
}

func accepted(a *jetstream.PubAck) (ack, *Error) {
	return ack{stream: a.Stream, sequence: a.Sequence, duplicate: a.Duplicate}, nil
}
