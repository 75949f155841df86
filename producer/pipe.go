package producer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
	opts   []jetstream.PublishOpt
	closed atomic.Bool
}

// newPipe gives the pipe a JetStream context of its own: the bookkeeping of
// acknowledgements is per context, and so are its bounds.
func newPipe(nc *nats.Conn, timeout time.Duration, pending int, opts ...jetstream.PublishOpt) (*pipe, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(timeout), jetstream.WithPublishAsyncMaxPending(pending))
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &pipe{nc: nc, js: js, opts: opts}, nil
}

// close refuses further messages. The client's bookkeeping, a subscription and a
// goroutine, ends with the connection: CleanupPublisher of nats.go 1.55 would leave
// the goroutine behind for ever if it came before that had run for the first time.
func (p *pipe) close() { p.closed.Store(true) }

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
	future, err := p.js.PublishMsgAsync(m, p.opts...)
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
