package producer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/schema"
)

const (
	// crowdedTries is how often a batch is tried again while others have too many
	// open (10210), after pauses of up to crowdedPause, twice that, and so on.
	crowdedTries = 4
	crowdedPause = 10 * time.Millisecond
	// crowdedSkip is the largest number of groups that then go without a batch;
	// batches that somebody has begun and left are given up after ten seconds.
	crowdedSkip = 64
	// disabledSkip is how many groups go without a batch where a stream takes none.
	disabledSkip = 1000
	// doubtTries is how often a batch is sent again whose answer was lost.
	doubtTries = 3
)

// course is what happened to a batch so far.
type course struct {
	// doubt is set once an attempt may have been stored: from then on no refusal
	// proves that the messages are not in the stream.
	doubt error
	// lost counts attempts without an answer, incomplete those that lost a message
	// on the way, crowded those that met too many open batches.
	lost, incomplete, crowded int
	// begun: a message was handed to the connection. What is begun is brought to its
	// end where that is possible; without a connection nothing is begun.
	begun bool
}

// step is what to do after an attempt.
type step int

const (
	stepEnd    step = iota // it is known, or will not be known: report
	stepAgain              // send the batch again, connected
	stepPause              // send it again after a pause
	stepSingly             // send the messages one by one
	stepSplit              // send smaller batches
	stepFind               // it is stored: find out where
)

// next decides what to do after an attempt. stamped says that the stream recognises
// the batch.
func (c *course) next(a answer, stamped bool) step {
	c.begun = c.begun || a.begun
	switch {
	case a.stored != nil:
		return stepEnd
	case a.refused != nil:
		return c.refused(a.refused.ErrorCode, refusedByStream(a.refused).Outcome == NotStored)
	case a.unsent != nil:
		switch {
		case !a.unsent.Again, a.unsent.kind == errNoStream:
			return stepSingly
		case !stamped || !c.begun:
			return stepEnd
		}
	default:
		c.doubt = a.doubt
		if !stamped {
			return stepEnd
		}
	}
	if c.lost++; c.lost > doubtTries {
		return stepEnd
	}
	return stepAgain
}

// refused decides what to do after the stream has refused a batch as a whole, by
// the code it gave. Each message then gets an attempt of its own, so that one
// message's fault, or the last one's for which there is no room, is not the others'.
func (c *course) refused(code jetstream.ErrorCode, definite bool) step {
	switch code {
	case codeAtomicIncomplete:
		if c.incomplete++; c.incomplete == 1 {
			return stepAgain
		}
		return stepSingly
	case codeAtomicTooMany, codeTooManyRequests, codeDuplicateInProcess:
		if c.crowded++; c.crowded <= crowdedTries {
			return stepPause
		}
		return stepSingly
	case codeAtomicDuplicate:
		if c.doubt != nil {
			return stepFind
		}
		// Not by an attempt of ours: somebody else has just sent one of the messages.
		// Alone it is answered as a repeat, and the others are stored.
		return stepSingly
	case codeAtomicTooLarge:
		return stepSplit
	case codeAtomicDisabled:
		return stepSingly
	default:
		if definite {
			return stepSingly
		}
		return stepEnd
	}
}

// atomic sends the messages as one batch, all of them or none, until it is known
// what became of them, or cannot be known within ctx.
func (g *groupSender) atomic(ctx context.Context, group []*nats.Msg) []fate {
	id := g.mark(group)
	defer g.unmark(group)
	c := course{}
	for {
		attempt, cancel := context.WithTimeout(ctx, g.patience)
		a := g.attempt(attempt, group)
		cancel()
		next := c.next(a, g.stamp != nil)
		g.learn(a, next, len(group))
		switch next {
		case stepAgain:
			if a.refused == nil {
				g.notice(ctx)
			}
			if g.reconnected(ctx) {
				continue
			}
		case stepPause:
			if sleep(ctx, g.jitter(crowdedPause<<(c.crowded-1))) {
				continue
			}
		case stepSingly, stepSplit:
			g.unmark(group)
			return c.soften(g.further(ctx, group, next))
		case stepFind:
			first, forgotten, err := g.find(ctx, group, id)
			if err == nil {
				return numbered(len(group), first.stream, first.sequence)
			}
			if forgotten {
				id = g.mark(group)
			}
			if c.lost++; c.lost <= doubtTries && g.reconnected(ctx) {
				continue
			}
			a = answer{doubt: err}
		}
		return c.soften(report(a, len(group)))
	}
}

// further sends what was refused as one batch.
func (g *groupSender) further(ctx context.Context, group []*nats.Msg, how step) []fate {
	if how == stepSplit {
		return g.send(ctx, group)
	}
	return g.plain(ctx, group)
}

// learn notes what an attempt has told about the stream.
func (g *groupSender) learn(a answer, next step, n int) {
	switch {
	case a.stored != nil:
		g.crowded = 0
	case a.refused == nil:
	case a.refused.ErrorCode == codeAtomicDisabled:
		g.skip = disabledSkip
	case a.refused.ErrorCode == codeAtomicTooLarge:
		g.atomicMax = n / 2
	case a.refused.ErrorCode == codeAtomicTooMany && next == stepSingly:
		g.skip = min(1<<min(g.crowded, 16), crowdedSkip)
		g.crowded++
	}
}

// report is what the last attempt says of the messages.
func report(a answer, n int) []fate {
	switch {
	case a.stored != nil:
		return numbered(n, a.stored.Stream, a.stored.Sequence-uint64(n-1))
	case a.refused != nil:
		return same(n, fate{err: refusedByStream(a.refused)})
	case a.unsent != nil:
		return same(n, fate{err: a.unsent})
	default:
		return same(n, fate{err: unknown("no acknowledgement of the batch came: publish it again under the same key", a.doubt)})
	}
}

// soften takes back proofs that an earlier attempt makes worthless.
func (c *course) soften(fates []fate) []fate {
	if c.doubt == nil {
		return fates
	}
	for i, f := range fates {
		if f.err != nil && f.err.Outcome == NotStored {
			// Not f.err as the cause: whoever finds ErrStreamFull takes it for a proof.
			fates[i].err = unknown("an acknowledgement was lost, and a repeat was refused ("+f.err.Message+"): publish it again under the same key", c.doubt)
		}
	}
	return fates
}

// mark gives the batch a Nats-Msg-Id of its own, on the first message and, as a
// second one, on the last, and returns it.
func (g *groupSender) mark(group []*nats.Msg) (id string) {
	if g.stamp == nil {
		return ""
	}
	id = g.stamp()
	group[0].Header.Set(schema.HeaderMsgID, id)
	group[len(group)-1].Header.Set(schema.HeaderMsgID, lastID(id))
	return id
}

func lastID(id string) string { return id + "-last" }

func (g *groupSender) unmark(group []*nats.Msg) {
	if g.stamp != nil {
		group[0].Header.Del(schema.HeaderMsgID)
		group[len(group)-1].Header.Del(schema.HeaderMsgID)
	}
}

// find asks the stream where the batch stands that it calls a repeat. The answer to
// a repeat of the first message names its sequence, that to one of the last proves
// that the batch was stored to its end. Neither can be stored by that: each expects
// a last message that there never was, which is looked at after the repeats.
// forgotten says that the stream does not call it a repeat any more.
func (g *groupSender) find(ctx context.Context, group []*nats.Msg, id string) (first ack, forgotten bool, err error) {
	last := len(group) - 1
	probes := []*nats.Msg{probe(group[0], id), probe(group[last], lastID(id))}
	fates := make([]fate, len(probes))
	g.round(ctx, probes, nil, fates)
	for _, f := range fates {
		if f.err != nil {
			var api *jetstream.APIError
			return ack{}, errors.As(f.err, &api), f.err
		}
	}
	first, end := fates[0].ack, fates[1].ack
	if !first.duplicate || !end.duplicate || first.stream != end.stream || end.sequence != first.sequence+uint64(last) {
		return ack{}, true, errNotWhole
	}
	return first, false, nil
}

// errNotWhole: the stream holds the first message of a batch and not the last. It
// cannot, unless its disk failed.
var errNotWhole = errors.New("the stream holds a part of the batch")

func probe(m *nats.Msg, id string) *nats.Msg {
	p := nats.NewMsg(m.Subject)
	p.Data = m.Data
	p.Header.Set(jetstream.ExpectedStreamHeader, m.Header.Get(jetstream.ExpectedStreamHeader))
	p.Header.Set(schema.HeaderMsgID, id)
	p.Header.Set(jetstream.ExpectedLastMsgIDHeader, id+"-never")
	return p
}

// noticeWithin is how long the client may need to notice that its connection is
// gone, after a write has failed.
const noticeWithin = 20 * time.Millisecond

// notice waits until the client knows of the end of the connection, if it has ended.
func (g *groupSender) notice(ctx context.Context) {
	if g.watch.ended() {
		return
	}
	timer := time.NewTimer(noticeWithin)
	defer timer.Stop()
	select {
	case <-g.watch.lost:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reconnected waits for a connection, and reports whether there is one before ctx
// ends.
func (g *groupSender) reconnected(ctx context.Context) bool {
	nc := g.pipe.nc
	changed := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(changed)
	for !nc.IsConnected() {
		if nc.IsClosed() {
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}
