package producer

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// answer is what came of one attempt to store a group as one atomic batch. Exactly
// one of its first four fields is set.
type answer struct {
	// stored: all of it, and this is where the last message stands.
	stored *jetstreamext.BatchAck
	// refused: none of it, and the stream says why.
	refused *jetstream.APIError
	// unsent: none of it, for the batch was not ended.
	unsent *Error
	// doubt: all of it or none; nobody knows.
	doubt error

	begun bool // something was handed to the connection
}

// attempt sends a batch once. ctx bounds it.
func (g *groupSender) attempt(ctx context.Context, group []*nats.Msg) answer {
	g.watch.begin()
	if err := g.pipe.connected(); err != nil {
		return answer{unsent: err}
	}
	// No acknowledgement is waited for but the last, since each costs a round trip.
	batch, err := jetstreamext.NewBatchPublisher(g.pipe.js, jetstreamext.BatchFlowControl{AckFirst: false})
	if err != nil {
		return answer{unsent: notStored(false, "the batch cannot be begun", err)}
	}
	// The first message asks for one all the same, to be read only if the batch
	// fails: the stream tells the first message alone that too many batches are open.
	g.inbox.begin()
	group[0].Reply = g.inbox.reply(0)
	defer strip(group)
	last := len(group) - 1
	for i, m := range group[:last] {
		if g.watch.ended() {
			return answer{unsent: lostInBatch(nats.ErrDisconnected), begun: i > 0}
		}
		if err := batch.AddMsg(m); err != nil {
			return answer{unsent: unsentBatch(err), begun: i > 0}
		}
	}
	if g.watch.ended() {
		return answer{unsent: lostInBatch(nats.ErrDisconnected), begun: true}
	}
	committed, err := g.commit(ctx, batch, group[last])
	if err == nil {
		return answer{stored: committed}
	}
	return g.uncommitted(err)
}

// commit ends the batch with its last message and waits for the answer, or for the
// end of the connection.
func (g *groupSender) commit(ctx context.Context, batch jetstreamext.BatchPublisher, last *nats.Msg) (*jetstreamext.BatchAck, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	answered := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		select {
		case <-g.watch.lost:
			cancel(nats.ErrDisconnected)
		case <-answered:
		}
	})
	committed, err := batch.CommitMsg(ctx, last)
	close(answered)
	looking.Wait()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
		g.watch.gone = cause == nats.ErrDisconnected
	}
	cancel(nil)
	return committed, err
}

// uncommitted sorts the errors of a commit.
func (g *groupSender) uncommitted(err error) answer {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		if first := g.firstRefusal(); api.ErrorCode == codeAtomicIncomplete && first != nil {
			api = first // why there was nothing to end
		}
		return answer{refused: api, begun: true}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrConnectionDraining):
		return answer{unsent: unsentBatch(err), begun: true}
	default:
		return answer{doubt: err, begun: true}
	}
}

// firstRefusal is what the stream said to the batch's first message. Its answer
// comes before that to the last one.
func (g *groupSender) firstRefusal() *jetstream.APIError {
	for {
		select {
		case m := <-g.inbox.arrived:
			if _, ok := g.inbox.index(m); !ok || len(m.Data) == 0 {
				continue // of another round, or an empty one: it was taken
			}
			var api *jetstream.APIError
			if _, err := read(m); errors.As(err, &api) {
				return api
			}
		default:
			return nil
		}
	}
}

// unsentBatch is an error of a batch whose last message did not reach the stream:
// whatever went ahead of it is never stored.
func unsentBatch(err error) *Error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return refusedByServer(err)
	case errors.Is(err, nats.ErrMaxPayload):
		return refusedToSend(err)
	default:
		return lostInBatch(err)
	}
}

func lostInBatch(err error) *Error {
	return notStored(true, "the connection to NATS was lost before the batch was complete: publish it again", err)
}

// strip takes back what the batch publisher wrote into messages.
func strip(group []*nats.Msg) {
	for _, m := range group {
		m.Reply = ""
		m.Header.Del(jetstreamext.BatchIDHeader)
		m.Header.Del(jetstreamext.BatchSeqHeader)
		m.Header.Del(jetstreamext.BatchCommitHeader)
	}
}

// numbered gives the messages of a batch their sequences, which are consecutive.
func numbered(n int, stream string, first uint64) []fate {
	fates := make([]fate, n)
	for i := range fates {
		fates[i].ack = ack{stream: stream, sequence: first + uint64(i)}
	}
	return fates
}

func same(n int, f fate) []fate {
	fates := make([]fate, n)
	for i := range fates {
		fates[i] = f
	}
	return fates
}
