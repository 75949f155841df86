package producer

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// atomicFrom is the size from which an atomic batch is faster than as many
	// messages one after another. With every write synced to disk a batch costs 2 to
	// 7 ms whatever its size, since the server makes files for it, and a message 0.15
	// to 0.3 ms: measured, the two meet between 14 and 45 messages, mostly at 20.
	atomicFrom = 20
	// atomicMax is the largest batch that JetStream takes (10199 beyond).
	atomicMax = 1000
	// atomicHeaders is room for the headers that a batch adds to each message.
	atomicHeaders = 256
	// atomicBytes bounds a batch: a stream takes in no more than 128 MiB at a time,
	// and a batch of which one message is dropped is lost. A larger message goes alone.
	atomicBytes = 8 << 20
)

// fate is what became of one message of a group.
type fate struct {
	ack ack
	err *Error
}

// groupSender puts groups of messages on one stream and waits for them. Only one
// goroutine may use it at a time: one committer a stream makes the groups large.
type groupSender struct {
	pipe  *pipe
	inbox *inbox
	watch *watch

	jitter func(limit time.Duration) time.Duration
	// stamp makes a Nats-Msg-Id for a batch, so that sending it again is safe. It is
	// nil where the messages have their own.
	stamp func() string
	// patience is how long one attempt waits for its answer.
	patience time.Duration
	// blips is how often a message that no stream takes is tried again.
	blips int

	// atomicMax is what this server takes.
	atomicMax int
	// skip is for how many groups no batch is tried, because the stream took none.
	skip int
	// crowded counts the groups in a row that found too many batches open.
	crowded int
	// full: the last group found the stream full. It is asked message by message
	// then, since a batch that is refused whole costs as much as one that is stored.
	full bool
}

// attach gives the sender its ends of the connection.
func (g *groupSender) attach(p *pipe) (err error) {
	if g.inbox, err = newInbox(p.nc); err != nil {
		return err
	}
	g.pipe, g.watch = p, p.watch()
	return nil
}

// detach takes them away; nothing can be sent any more.
func (g *groupSender) detach() {
	g.inbox.close()
	g.watch.close()
}

// send returns one fate per message. The messages' headers must not be nil. ctx
// bounds the whole group.
func (g *groupSender) send(ctx context.Context, group []*nats.Msg) []fate {
	if len(group) < atomicFrom {
		return g.plain(ctx, group)
	}
	batches := g.skip == 0 && !g.full
	g.skip, g.full = max(g.skip-1, 0), false
	fates := make([]fate, 0, len(group))
	for len(group) > 0 {
		n, batch := g.cut(group, batches)
		if batch {
			fates = append(fates, g.atomic(ctx, group[:n])...)
		} else {
			fates = append(fates, g.plain(ctx, group[:n])...)
		}
		group = group[n:]
	}
	for _, f := range fates {
		g.full = g.full || f.err != nil && f.err.kind == ErrStreamFull
	}
	return fates
}

// cut returns how many messages leave next, and whether as one batch.
func (g *groupSender) cut(group []*nats.Msg, batches bool) (n int, batch bool) {
	if !batches || g.atomicMax < atomicFrom {
		return len(group), false
	}
	if n = g.batchable(group, g.atomicMax); n >= atomicFrom {
		return n, true
	}
	for n = max(n, 1); n < len(group) && g.batchable(group[n:], atomicFrom) < atomicFrom; {
		n++
	}
	return n, false
}

// batchable is how many messages at the head can be one batch. One that leaves no
// room for a batch's headers would take all others down with it.
func (g *groupSender) batchable(group []*nats.Msg, limit int) int {
	limit = min(limit, len(group))
	payload, bytes := g.pipe.nc.MaxPayload(), 0
	for i, m := range group[:limit] {
		size := m.Size() + atomicHeaders
		bytes += size
		if int64(size) > payload || bytes > atomicBytes {
			return i
		}
	}
	return limit
}
