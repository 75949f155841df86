package producer

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

const (
	// atomicFrom is the size from which an atomic batch is faster than as many
	// messages one after another: with every write synced to disk a batch costs
	// about 5 ms whatever its size, a message 0.3 ms.
	atomicFrom = 20
	// atomicMax is the largest batch that JetStream takes (10199 beyond).
	atomicMax = 1000
	// atomicHeaders is room for the headers that a batch adds to each message.
	atomicHeaders = 256
)

// fate is what became of one message of a group.
type fate struct {
	ack ack
	err *Error
}

// groupSender puts groups of messages on one stream and waits for them. Only one
// goroutine may use it: one committer a stream makes the groups large.
type groupSender struct {
	pipe *pipe
	// atomicMax is what this server takes, 0 where the stream takes no batches.
	atomicMax int
}

// send returns one fate per message. The messages' headers must not be nil: the
// batch publisher writes into them. ctx bounds the whole group.
func (g *groupSender) send(ctx context.Context, group []*nats.Msg) []fate {
	fates := make([]fate, 0, len(group))
	for len(group) > 0 {
		n := len(group)
		if n >= atomicFrom && g.atomicMax >= atomicFrom && g.fits(group) {
			n = min(n, g.atomicMax)
			fates = append(fates, g.atomic(ctx, group[:n])...)
		} else {
			fates = append(fates, g.plain(ctx, group)...)
		}
		group = group[n:]
	}
	return fates
}

// fits reports whether every message leaves room for a batch's headers. One that
// does not would take all others of its batch down with it.
func (g *groupSender) fits(group []*nats.Msg) bool {
	limit := g.pipe.nc.MaxPayload()
	for _, m := range group {
		if int64(m.Size()+atomicHeaders) > limit {
			return false
		}
	}
	return true
}

// plain sends the messages one after another and then waits for all of them.
func (g *groupSender) plain(ctx context.Context, group []*nats.Msg) []fate {
	fates := make([]fate, len(group))
	flying := make([]flight, 0, len(group))
	for i, m := range group {
		future, err := g.pipe.send(m)
		if err != nil {
			fates[i].err = err
			continue
		}
		flying = append(flying, flight{index: i, future: future})
	}
	for _, f := range flying {
		fates[f.index].ack, fates[f.index].err = f.wait(ctx)
	}
	return fates
}

// atomic sends the messages as one batch: all are stored, or none. Where the batch
// as a batch is refused, which is a proof that none is stored, they go out plain,
// so that one message's fault is not the others'.
func (g *groupSender) atomic(ctx context.Context, group []*nats.Msg) []fate {
	again := true
	for {
		a, err := g.batch(ctx, group)
		if err == nil {
			return numbered(len(group), a)
		}
		var known *Error
		if errors.As(err, &known) {
			return same(len(group), fate{err: known})
		}
		var api *jetstream.APIError
		if !errors.As(err, &api) {
			return same(len(group), fate{err: refusedByServer(err)})
		}
		switch api.ErrorCode {
		case codeAtomicIncomplete:
			// A message of the batch was lost, or too many batches are open on the
			// stream; those are given up within ten seconds.
			if again {
				again = false
				continue
			}
		case codeAtomicTooMany:
		case codeAtomicDisabled:
			g.atomicMax = 0
		case codeAtomicTooLarge:
			g.atomicMax = len(group) / 2
		case codeAtomicDuplicate:
			// Somebody else has just sent one of them; alone it is answered as a
			// repeat, and the others are stored.
		default:
			if refusedByStream(api).Outcome != NotStored {
				return same(len(group), fate{err: refusedByStream(api)})
			}
		}
		return g.plain(ctx, group)
	}
}

// batch publishes once. Unlike an asynchronous publish, a request is not told when
// its connection is lost; without a watch it would wait out its whole time.
func (g *groupSender) batch(ctx context.Context, group []*nats.Msg) (*jetstreamext.BatchAck, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nc := g.pipe.nc
	lost := nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	var watch sync.WaitGroup
	watch.Go(func() {
		<-lost
		cancel()
	})
	defer watch.Wait()
	defer nc.RemoveStatusListener(lost) // which closes it
	if err := g.pipe.connected(); err != nil {
		return nil, err
	}
	defer func() {
		for _, m := range group {
			stripBatch(m)
		}
	}()
	// No acknowledgement of the first message is asked for: it would tell too many
	// open batches (10210) from a lost message (10176), costs a round trip, and its
	// wait does not end with ctx. Either way the messages go out singly.
	return jetstreamext.PublishMsgBatch(ctx, g.pipe.js, group, jetstreamext.BatchFlowControl{AckFirst: false})
}

// stripBatch takes back what the batch publisher wrote into a message.
func stripBatch(m *nats.Msg) {
	m.Reply = ""
	m.Header.Del(jetstreamext.BatchIDHeader)
	m.Header.Del(jetstreamext.BatchSeqHeader)
	m.Header.Del(jetstreamext.BatchCommitHeader)
}

func same(n int, f fate) []fate {
	fates := make([]fate, n)
	for i := range fates {
		fates[i] = f
	}
	return fates
}

// numbered gives the messages of a batch their sequences: they are consecutive,
// and the acknowledgement names the last.
func numbered(n int, a *jetstreamext.BatchAck) []fate {
	fates := make([]fate, n)
	for i := range fates {
		fates[i].ack = ack{stream: a.Stream, sequence: a.Sequence - uint64(n-1-i)}
	}
	return fates
}
