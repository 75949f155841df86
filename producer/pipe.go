package producer

import (
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ack is where a stored message stands.
type ack struct {
	stream    string
	sequence  uint64
	duplicate bool
}

// pipe is a connection that takes only what it can send now.
type pipe struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	closed atomic.Bool
}

func newPipe(nc *nats.Conn) (*pipe, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &pipe{nc: nc, js: js}, nil
}

// close refuses further messages.
func (p *pipe) close() { p.closed.Store(true) }

// connected refuses to send while there is no connection: the client would keep
// the message and send it later, when its caller has long been told otherwise.
func (p *pipe) connected() *Error {
	if p.closed.Load() {
		return closedError()
	}
	if p.nc.IsConnected() {
		return nil
	}
	return notStored(true, "there is no connection to NATS: publish it again", nats.ErrDisconnected)
}

func closedError() *Error {
	return notStored(false, "the publisher is closed: make a new one", nil).as(ErrClosed)
}

// watch tells of the end of the connection. A message that waits for its answer is
// not told of it by the client, and would wait out its whole time.
type watch struct {
	nc   *nats.Conn
	lost chan nats.Status
	gone bool
}

func (p *pipe) watch() *watch {
	return &watch{nc: p.nc, lost: p.nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)}
}

// begin forgets what was before: it is the connection of now that counts. Who calls
// it checks connected afterwards.
func (w *watch) begin() {
	for {
		select {
		case <-w.lost:
			continue
		default:
		}
		break
	}
	w.gone = false
}

// ended reports whether the connection of the beginning has ended, even if there is
// a new one.
func (w *watch) ended() bool {
	select {
	case <-w.lost:
		w.gone = true
	default:
	}
	return w.gone
}

// close ends the watch.
func (w *watch) close() { w.nc.RemoveStatusListener(w.lost) }
