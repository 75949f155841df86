package producer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const (
	// relayPatience is how often an item that fails beside others that do not is
	// tried again at once. After that it is left to the outbox's hold.
	relayPatience = 3
	// relayProbe is how many items ask a stream that took none whether it does now:
	// several, since where a long one finds no room a short one may.
	relayProbe = 8
)

// relayLane is the one committer of one stream: a stream in trouble does not hold
// up the other.
type relayLane struct {
	relay  *Relay
	stream string
	wake   chan struct{}
	flying atomic.Pointer[time.Time] // since when the oldest item in hand is here

	busy   bool       // the last group was large: gather the next
	mu     sync.Mutex // held while a group is under way
	sender groupSender
	// stuck: the last group met a stream that is full or away, whatever the item.
	stuck bool
}

func (l *relayLane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends group after group until ctx ends. A group that is under way by then is
// finished.
func (l *relayLane) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		if l.relay.queue.empty(l) {
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		runtime.Gosched() // let those who commit right now offer first: larger groups
		if l.busy {
			l.gather(ctx)
		}
		settled, err := l.pass(ctx, true)
		l.busy = settled >= relayBusy
		if err != nil {
			failures++
			sleep(ctx, l.relay.opts.pause(failures))
			continue
		}
		failures = 0
	}
}

// gather waits a moment for a group to fill: an atomic batch costs the server the
// same whatever its size. Only a busy relay waits, so that a lone event leaves at
// once.
func (l *relayLane) gather(ctx context.Context) {
	timer := time.NewTimer(l.relay.opts.Gather)
	defer timer.Stop()
	for l.relay.queue.len(l) < l.relay.opts.MaxGroup {
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-l.wake:
		}
	}
}

// blocked reports whether the stream takes nothing for now.
func (l *relayLane) blocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck
}

// pass sends one group and settles what is stored. With keep, what failed is
// queued again, unless it keeps failing beside others that do not: that is left to
// the outbox, so that it holds up nobody; err then says that nothing got through.
// Without keep all that failed is left to the outbox, and err says why.
func (l *relayLane) pass(ctx context.Context, keep bool) (settled int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.relay
	most := r.opts.MaxGroup
	if l.stuck {
		most = min(most, relayProbe)
	}
	group := r.queue.take(l, most)
	if len(group) == 0 {
		return 0, nil
	}
	began := r.opts.Now()
	l.flying.Store(&group[0].since)
	defer func() {
		l.flying.Store(nil)
		r.observeDepth()
	}()

	p := l.publish(ctx, group)
	err = p.first
	if err != nil {
		r.observeFailed(l.stream, len(group)-len(p.stored), err)
	}
	r.queue.release(p.refused)
	l.setStuck(len(p.stored)+len(p.again) == 0 && len(p.blocked) > 0, keep, p)
	if len(p.stored) == 0 && keep {
		if len(p.again)+len(p.blocked) == 0 {
			return 0, nil // nothing here will ever be taken; no reason to pause
		}
		r.queue.putBack(l, append(p.blocked, p.again...))
		if l.stuck {
			r.queue.expire(l, began.Add(-r.opts.Hold), relayProbe)
		}
		return 0, err
	}
	if keep {
		p.again = r.retry(l, p.again)
		r.queue.putBack(l, p.blocked)
		p.blocked = nil
	}
	r.queue.release(append(p.again, p.blocked...))
	if len(p.stored) == 0 {
		return 0, err
	}
	if settleErr := l.settle(ctx, p.stored, keep); settleErr != nil {
		return 0, errors.Join(err, settleErr)
	}
	if r.opts.Observer.Sent != nil {
		r.opts.Observer.Sent(l.stream, len(p.stored), r.opts.Now().Sub(began))
	}
	if keep {
		err = nil // something got through: go on at once
	}
	return len(p.stored), err
}

// setStuck notes whether the stream takes nothing, and tells of a change. Without
// keep nothing stays in memory, and nothing keeps the outbox from being polled.
func (l *relayLane) setStuck(stuck, keep bool, p published) {
	if told := l.relay.opts.Observer.Stuck; told != nil && stuck != l.stuck {
		if stuck {
			told(l.stream, p.first)
		} else {
			told(l.stream, nil)
		}
	}
	if stuck || l.stuck {
		l.relay.queue.setStill(l, stuck && keep, p.away)
	}
	l.stuck = stuck
}

// retry queues again what has not failed too often, and returns the rest.
func (r *Relay) retry(l *relayLane, failed []waiting) (tooOften []waiting) {
	var again []waiting
	for _, w := range failed {
		if w.tries++; w.tries < relayPatience {
			again = append(again, w)
		} else {
			tooOften = append(tooOften, w)
		}
	}
	r.queue.putBack(l, again)
	return tooOften
}

// published is what became of a group.
type published struct {
	stored  []waiting
	again   []waiting // may be taken later
	blocked []waiting // as well, and the reason is the stream's or the connection's, not the item's
	refused []waiting // never will be taken as they are
	away    bool      // some are blocked for want of a connection
	first   error
}

// publish sends a group, on a context of its own: what is under way when the
// program ends is still finished, within AckTimeout.
func (l *relayLane) publish(ctx context.Context, group []waiting) (p published) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.relay.opts.AckTimeout)
	defer cancel()
	messages := make([]*nats.Msg, 0, len(group))
	sent := make([]waiting, 0, len(group))
	for _, w := range group {
		m, err := l.message(w.item)
		if err != nil {
			p.refused = append(p.refused, w)
			p.first = firstError(p.first, fmt.Errorf("%s: %w", w.item.Place(), err))
			continue
		}
		messages, sent = append(messages, m), append(sent, w)
	}
	for i, f := range l.sender.send(ctx, messages) {
		switch {
		case f.err == nil: // a duplicate too: the event id is in the stream
			p.stored = append(p.stored, sent[i])
		case f.err.Again && f.err.standstill():
			p.blocked = append(p.blocked, sent[i])
			p.away = p.away || errors.Is(f.err, nats.ErrDisconnected)
		case f.err.Again:
			p.again = append(p.again, sent[i])
		default:
			p.refused = append(p.refused, sent[i])
		}
		if f.err != nil {
			p.first = firstError(p.first, fmt.Errorf("%s: %w", sent[i].item.Place(), f.err))
		}
	}
	return p
}

// message is an outbox item as it goes on the stream.
//
// An event carries its id as Nats-Msg-Id, which drops a second copy that another
// process sends in the same moment. For intents that would be wrong, since the
// duplicate window knows neither tenant nor body; here it is right: an event's id
// belongs to one transition of one payment of one tenant, and whatever is sent
// under it is the same bytes. A dead letter's copy carries none: the same dead
// letter is copied again when a replay fails again. An intent's body names its key;
// a copy that comes twice, or after its payment is settled, finds the row.
func (l *relayLane) message(item payments.OutboxItem) (*nats.Msg, error) {
	var (
		subject string
		err     error
	)
	lane := l.relay.opts.Lane
	switch {
	case item.Kind == payments.OutboxIntent && lane != 0:
		switch {
		case item.Lane != lane:
			err = fmt.Errorf("it is of the lane %s, and this relay is of the lane %s", item.Lane, lane)
		case lane == payments.LaneBulk:
			subject, err = l.relay.subjects.Bulk(item.TenantID)
		default:
			subject, err = l.relay.subjects.Intent(item.TenantID)
		}
	case lane != 0:
		err = errors.New("its kind is not intent, and this relay sends the intents of a lane alone")
	case item.Kind == payments.OutboxEvent:
		subject, err = l.relay.subjects.Event(item.TenantID, item.EventType)
	case item.Kind == payments.OutboxDeadLetter:
		// The tenant comes from a message that nobody could make sense of.
		tenant := item.TenantID
		if !schema.ValidTenant(tenant) {
			tenant = schema.UnknownTenant
		}
		subject, err = l.relay.subjects.Dead(tenant)
	default:
		err = errors.New("its kind is neither event nor dead_letter")
	}
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject)
	m.Data = item.Body
	m.Header.Set(jetstream.ExpectedStreamHeader, l.stream)
	if item.Kind == payments.OutboxEvent && item.EventID != "" {
		m.Header.Set(schema.HeaderMsgID, item.EventID)
	}
	return m, nil
}

// settle deletes stored items from the outbox in one go. While the outbox is
// unavailable it goes on trying, if keep is set, until ctx ends: with nothing to
// poll there is nothing better to do, and each further try may save a second
// sending. Whatever cannot be settled is sent again when its hold has run out.
func (l *relayLane) settle(ctx context.Context, stored []waiting, keep bool) error {
	r := l.relay
	defer r.queue.release(stored)
	ids := make([]int64, len(stored))
	for i, w := range stored {
		ids[i] = w.item.ID
	}
	for failures := 1; ; failures++ {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.AckTimeout)
		err := r.outbox.Sent(attempt, ids)
		cancel()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("settle %d sent items: %w", len(ids), err)
		r.observeFailed(l.stream, len(ids), err)
		if !keep || !payments.Retryable(err) || !sleep(ctx, r.opts.pause(failures)) {
			return err
		}
	}
}

func firstError(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
