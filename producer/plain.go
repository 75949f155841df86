package producer

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"
)

// blipPause is how long a message waits that no stream has taken, before it is
// tried again: a stream that changes its leader is away for a moment.
const blipPause = 250 * time.Millisecond

// inFlight stands in the place of the outcome of a message that was sent.
var inFlight = &Error{Message: "is in flight"}

// plain sends messages one after another and then waits for all of them.
func (g *groupSender) plain(ctx context.Context, group []*nats.Msg) []fate {
	fates := make([]fate, len(group))
	g.round(ctx, group, nil, fates)
	g.sendAway(ctx, group, fates)
	return fates
}

// lone sends a group of one. Its time counts once it is sent.
func (g *groupSender) lone(ctx context.Context, timeout time.Duration, group []*nats.Msg) []fate {
	g.watch.begin()
	g.inbox.begin()
	fates := []fate{{err: g.hand(ctx, group[0], 0)}}
	runtime.Gosched() // the connection's writer goes first, everything below can wait
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if fates[0].err == inFlight {
		g.collect(ctx, fates, 1)
	}
	g.sendAway(ctx, group, fates)
	return fates
}

// sendAway tries messages again that no stream has taken.
func (g *groupSender) sendAway(ctx context.Context, group []*nats.Msg, fates []fate) {
	for range g.blips {
		var away []int
		for i, f := range fates {
			if f.err != nil && errors.Is(f.err.Err, nats.ErrNoResponders) {
				away = append(away, i)
			}
		}
		if len(away) == 0 || !sleep(ctx, blipPause) {
			return
		}
		g.round(ctx, group, away, fates)
	}
}

// round sends the chosen messages, all where chosen is nil, and waits for all of
// them until ctx or the connection ends.
func (g *groupSender) round(ctx context.Context, group []*nats.Msg, chosen []int, fates []fate) {
	g.watch.begin()
	g.inbox.begin()
	n := len(group)
	if chosen != nil {
		n = len(chosen)
	}
	flying := 0
	for k := range n {
		i := k
		if chosen != nil {
			i = chosen[k]
		}
		fates[i] = fate{err: g.hand(ctx, group[i], i)}
		if fates[i].err == inFlight {
			flying++
		}
	}
	g.collect(ctx, fates, flying)
}

// hand gives one message to the connection and returns inFlight, or why not.
func (g *groupSender) hand(ctx context.Context, m *nats.Msg, i int) *Error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	if err := g.pipe.connected(); err != nil {
		return err
	}
	if g.watch.ended() {
		return notStored(true, "the connection to NATS was lost: publish it again", nats.ErrDisconnected)
	}
	m.Reply = g.inbox.reply(i)
	err := g.pipe.nc.PublishMsg(m)
	m.Reply = ""
	if err != nil {
		return refusedToSend(err)
	}
	return inFlight
}

// collect waits for the answers to the messages in flight.
func (g *groupSender) collect(ctx context.Context, fates []fate, flying int) {
	for flying > 0 {
		select {
		case m := <-g.inbox.arrived:
			flying -= g.settle(m, fates)
			continue
		default: // what has arrived counts, whatever else has happened
		}
		if g.watch.gone {
			giveUp(fates, "the connection was lost before the acknowledgement came: publish it again under the same key", nats.ErrDisconnected)
			return
		}
		select {
		case m := <-g.inbox.arrived:
			flying -= g.settle(m, fates)
		case <-g.watch.lost:
			g.watch.gone = true
		case <-ctx.Done():
			if len(g.inbox.arrived) == 0 {
				giveUp(fates, "no acknowledgement came in time: publish it again under the same key", context.Cause(ctx))
				return
			}
		}
	}
}

// settle notes what m says, and returns how many messages that settles: 0 for an
// answer that belongs to none.
func (g *groupSender) settle(m *nats.Msg, fates []fate) int {
	i, ok := g.inbox.index(m)
	if !ok || i < 0 || i >= len(fates) || fates[i].err != inFlight {
		return 0
	}
	a, err := read(m)
	if err != nil {
		fates[i] = fate{err: refusedByServer(err)}
		return 1
	}
	fates[i] = fate{ack: a}
	return 1
}

// giveUp makes unknown what is still in flight.
func giveUp(fates []fate, message string, cause error) {
	for i := range fates {
		if fates[i].err == inFlight {
			fates[i].err = unknown(message, cause)
		}
	}
}
