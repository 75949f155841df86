package producer

import (
	"context"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// parcel is what one call puts into a lane's queue at a time.
type parcel struct {
	messages []*nats.Msg
	index    []int // of each message's result
	bytes    int
	room     int // what it takes of the Publisher's room
}

// add puts a message in; least is the room that the smallest message takes.
func (p *parcel) add(index int, m *nats.Msg, least int) {
	p.messages, p.index = append(p.messages, m), append(p.index, index)
	p.bytes += m.Size()
	p.room += max(m.Size(), least)
}

// takes reports whether one more message fits.
func (p *parcel) takes(m *nats.Msg, most int) bool {
	return len(p.messages) < most && p.bytes+m.Size()+atomicHeaders*(len(p.messages)+1) <= atomicBytes
}

// PublishAll sends all messages, many at a time and both lanes at once, and returns
// when every one has its result: result i is message i's. One that is refused does
// not hold up the others. The order within a stream is the order given, but for what
// failed. When ctx ends, what is not under way by then is NotStored.
//
// Messages of one batch share its acknowledgement. Where the stream refuses a batch
// as a whole, as one that is full refuses a batch whose last message does not fit,
// each message gets an attempt of its own: what still fits is stored, and the others
// are refused one by one, which costs the stream no write.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) []Result {
	results := make([]Result, len(messages))
	var lanes sync.WaitGroup
	for _, l := range []*lane{p.bulk, p.interactive} {
		if slices.ContainsFunc(messages, func(m Message) bool { return p.laneOf(m.Lane) == l }) {
			lanes.Go(func() { p.publishLane(ctx, l, messages, results) })
		}
	}
	lanes.Wait()
	return results
}

// publishLane sends the messages of one lane, parcel by parcel: while one is under
// way, the next is prepared.
func (p *Publisher) publishLane(ctx context.Context, l *lane, messages []Message, results []Result) {
	ready := make(chan parcel)
	var sending sync.WaitGroup
	sending.Go(func() {
		for one := range ready {
			p.deliver(ctx, l, one, results)
		}
	})
	var next parcel
	for i, m := range messages {
		if p.laneOf(m.Lane) != l {
			continue
		}
		results[i].PaymentID = m.Intent.ID()
		msg, err := p.prepare(ctx, m)
		if err != nil {
			results[i].settle(ack{}, err)
			continue
		}
		if !next.takes(msg, p.opts.MaxGroup) && len(next.messages) > 0 {
			ready <- next
			next = parcel{}
		}
		next.add(i, msg, p.room.least)
	}
	if len(next.messages) > 0 {
		ready <- next
	}
	close(ready)
	sending.Wait()
}

// deliver sends one parcel and writes its results.
func (p *Publisher) deliver(ctx context.Context, l *lane, one parcel, results []Result) {
	taken, err := p.room.take(ctx, one.room)
	if err != nil {
		for _, i := range one.index {
			results[i].settle(ack{}, err)
		}
		return
	}
	defer p.room.give(taken)
	for k, f := range l.do(ctx, one.messages) {
		results[one.index[k]].settle(f.ack, f.err)
	}
}
