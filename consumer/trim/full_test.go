package trim

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Several times what the stream holds goes through it, all of it in a second, with three trimmers at once: no intent is refused for what is done.
func TestAckedHistoryNeverRefusesANewIntent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		maxBytes int64
		size     int
	}{"small": {mib, 600}, "large": {64 * mib, 60_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.maxBytes)
			ctx, stop := context.WithCancel(r.ctx)
			ended := make(chan error, 3)
			for _, trimmer := range []*Trimmer{r.Trimmer, r.another(), r.another()} {
				go func() { ended <- trimmer.Run(ctx) }()
			}
			total := 3 * int(c.maxBytes) / c.size
			due, each := time.Now(), time.Duration(float64(c.size)/float64(c.maxBytes)*float64(time.Second))
			acked := r.worker(int(c.maxBytes) / 20 / c.size)
			body := make([]byte, c.size)
			published := 0
			for ; published < total; published++ {
				switch early := time.Until(due); {
				case early > 10*time.Millisecond && !wait(r.ctx, early):
					t.Fatal(r.ctx.Err())
				case early < -10*time.Millisecond: // a machine that stood still hurries nobody afterwards
					due = time.Now()
				}
				due = due.Add(each)
				select { // as many unacked as make a twentieth of the stream
				case acked.room <- struct{}{}:
				case <-r.ctx.Done():
					t.Fatalf("after %d messages the worker has acked %d", published, acked.count.Load())
				}
				if _, err := r.js.Publish(r.ctx, fmt.Sprintf("%s.%d", r.stream, published%7), body); err != nil {
					t.Errorf("message %d of %d was refused for acked history: %v: %+v", published, total, err, r.state())
					break
				}
			}
			r.until(func() bool { return acked.count.Load() == int64(published) })
			stop()
			for range 3 {
				if err := <-ended; err != nil {
					t.Errorf("Run: %v", err)
				}
			}
			// A step that was cut off by the end is not counted.
			if s := r.state(); s.LastSeq != uint64(published) || r.seen.trimmed() > s.FirstSeq-1 || s.FirstSeq < uint64(published)/2 {
				t.Errorf("the stream has %d to %d, trimmed %d of %d", s.FirstSeq, s.LastSeq, r.seen.trimmed(), published)
			}
			for why := range r.seen.held {
				t.Errorf("held by %s: %s", why, r.log.text.String())
			}
		})
	}
}

// worker acks every message, and gives its room back.
type worker struct {
	count atomic.Int64
	room  chan struct{}
}

func (r *rig) worker(unacked int) *worker {
	r.t.Helper()
	w := &worker{room: make(chan struct{}, max(unacked, 2))}
	c, err := r.js.Consumer(r.ctx, r.stream, work)
	r.check(err)
	next := uint64(1)
	run, err := c.Consume(func(msg jetstream.Msg) {
		m, err := msg.Metadata()
		if err != nil || m.Sequence.Stream != next || m.NumDelivered != 1 {
			r.t.Errorf("message %+v, want sequence %d: %v", m, next, err)
		}
		next++
		if err := msg.Ack(); err != nil {
			r.t.Errorf("ack: %v", err)
		}
		w.count.Add(1)
		<-w.room
	}, jetstream.PullMaxMessages(64))
	r.check(err)
	r.t.Cleanup(func() { run.Stop(); <-run.Closed() })
	return w
}

// A stream that is full of work frees room as soon as it is done.
func TestAFullStreamTakesAgainAsSoonAsItsWorkIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(99, percent)
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.until(func() bool { return r.seen.heldBy(HeldBacklog) > 0 })
	got := r.take(work, 99)
	for i, msg := range got[:20] {
		r.ack(msg)
		began := time.Now()
		r.until(func() bool { return r.state().FirstSeq == uint64(i+2) })
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("room came %v after the ack", took)
		}
		r.publish(1, percent)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
