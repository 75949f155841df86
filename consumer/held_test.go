package consumer

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// holding is a hold that the test lifts.
type holding struct{ on atomic.Bool }

func (h *holding) reason() string {
	if h.on.Load() {
		return "held"
	}
	return ""
}

func (h *holding) config(c *Config) { c.Held = h.reason }

// A message that was pulled before the hold is left without a word, and nothing of it is stored: it comes back.
func TestHeldMessageIsLeft(t *testing.T) {
	t.Parallel()
	h := &holding{}
	h.on.Store(true)
	r := newRig(t, h.config)
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if calls, _ := r.gateway.calls(); msg.acks() != 0 || calls != 0 || r.store.count("admit") != 0 {
		t.Fatalf("held: %d acks, %d calls, %d admits", msg.acks(), calls, r.store.count("admit"))
	}
	h.on.Store(false)
	r.handle(context.Background(), r.from, msg)
	if calls, _ := r.gateway.calls(); msg.acks() != 1 || calls != 1 {
		t.Errorf("let go: %d acks, %d calls", msg.acks(), calls)
	}
}

// Due tickets stay where they are, and are taken once the hold is over.
func TestHeldTakesNothing(t *testing.T) {
	t.Parallel()
	h := &holding{}
	h.on.Store(true)
	r := newRig(t, h.config)
	r.store.insert(testIntent("k"), payments.LaneInteractive, 0)
	if more, room, err := r.dues[0].take(context.Background(), context.Background()); more || room != 0 || err != nil || r.store.count("take") != 0 {
		t.Fatalf("held: more %v, room %v, %v, %d takes", more, room, err, r.store.count("take"))
	}
	h.on.Store(false)
	r.runDue(func() bool { return r.store.outcomes() == 1 }, "the outcome")
}

// A hold that begins while tickets are worked on alone, one after another, ends that: the next one is not taken.
func TestHeldTakesNothingAlone(t *testing.T) {
	t.Parallel()
	h := &holding{}
	r := newRig(t, h.config)
	for i := range 3 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.LaneInteractive, payments.AbandonedAlone)
	}
	r.store.setBefore(func(v string, _ payments.ID) error {
		h.on.Store(h.on.Load() || v == "take alone") // as the first one is given out
		return nil
	})
	r.dues[0].stint(context.Background(), context.Background())
	if takes, left := r.store.count("take alone"), 3-r.store.outcomes(); takes != 1 || left != 2 {
		t.Errorf("held: %d takes, %d are left", takes, left)
	}
	r.store.setBefore(nil)
	h.on.Store(false)
	r.runDue(func() bool { return r.store.outcomes() == 3 }, "the outcomes")
}

// While the process is held nothing is pulled; the message is there for others, or for later.
func TestHeldPullsNothing(t *testing.T) {
	t.Parallel()
	h := &holding{}
	h.on.Store(true)
	asked := make(chan struct{})
	var once sync.Once
	var times atomic.Int64
	f := newField(t, func(c *Config) {
		c.Held = func() string {
			if times.Add(1) == 60 { // the lanes have come by often
				once.Do(func() { close(asked) })
			}
			return h.reason()
		}
	})
	f.publish(payments.LaneInteractive, intentJSON("k"))
	f.run()
	<-asked
	if i := f.info(payments.LaneInteractive); i.NumPending != 1 || i.NumWaiting != 0 || i.Delivered.Consumer != 0 {
		t.Errorf("held: %d pulls are open, %d messages delivered", i.NumWaiting, i.Delivered.Consumer)
	}
	h.on.Store(false)
	waitFor(t, "the outcome", func() bool { return f.store.outcomes() == 1 })
}
