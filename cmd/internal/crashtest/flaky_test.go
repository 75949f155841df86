package crashtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// flakiness cuts connections at random: one in so many chunks that a client sends is lost with its connection, and as many arrive while their
// answer is lost, so that a commit or a publish has happened and nobody knows.
type flakiness struct {
	oneIn int

	mu     sync.Mutex
	random *rand.Rand
	cuts   int
}

func newFlakiness(seed uint64, oneIn int) *flakiness {
	return &flakiness{oneIn: oneIn, random: rand.New(rand.NewPCG(seed, 7))}
}

func (f *flakiness) hook([]byte) devstacktest.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.random.IntN(f.oneIn) {
	case 0:
		f.cuts++
		return devstacktest.Cut
	case 1:
		f.cuts++
		return devstacktest.ForwardThenCut
	default:
		return devstacktest.Forward
	}
}

// TestLostAnswers runs three workers whose connections to PostgreSQL and NATS break all the time, at a Stripe that loses answers too.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	pace := short
	if scale > 1 { // a machine that stands for longer than a lease would look like a worker that died
		pace = outageTimes
	}
	w := newWorldOf(t, pace)
	for _, fault := range faults {
		rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: fault, Rate: 0.02}
		if err := w.sim.AddFault(rule); err != nil {
			t.Fatal(err)
		}
	}
	pg, broker := newFlakiness(1, 40), newFlakiness(2, 25)
	for i := range 3 {
		w.start(workerOptions{name: fmt.Sprintf("flaky %d", i), postgres: pg.hook, nats: broker.hook})
	}
	const intents = 300
	orders := w.publishMany("order", intents)
	w.publish(orders[:50]...) // and some of them again
	w.rest()
	for name, f := range map[string]*flakiness{"PostgreSQL": pg, "NATS": broker} {
		f.mu.Lock()
		if f.cuts < 5 {
			t.Errorf("only %d connections to %s were cut: the case shows little", f.cuts, name)
		}
		t.Logf("%d connections to %s were cut", f.cuts, name)
		f.mu.Unlock()
	}
	a := w.mustBeGood(0)
	if len(a.Charges) != intents {
		t.Errorf("%d charges, want %d", len(a.Charges), intents)
	}
}

// stall keeps what a client sends on its way, without a word, until it is let go; then all of it arrives.
type stall struct {
	mu    sync.Mutex
	until chan struct{} // nil: nothing is kept
	kept  int
}

func (s *stall) hook([]byte) devstacktest.Action {
	s.mu.Lock()
	until := s.until
	if until != nil {
		s.kept++
	}
	s.mu.Unlock()
	if until != nil {
		<-until
	}
	return devstacktest.Forward
}

func (s *stall) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = make(chan struct{})
}

func (s *stall) end() (kept int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until != nil {
		close(s.until)
		s.until = nil
	}
	return s.kept
}

// TestStalledConnections lets a worker's connections to PostgreSQL go silent while its payments are at Stripe, without any error, until another
// worker has recorded all of them. Then what was on its way arrives: commits of an owner that is none any more.
func TestStalledConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.sim.SetLimits(stripesim.Limits{LatencyMS: 150}); err != nil {
		t.Fatal(err)
	}
	wire := &stall{}
	w.start(workerOptions{name: "stalled", postgres: wire.hook})
	t.Cleanup(func() { wire.end() })
	before := w.sim.Summary().Requests
	const intents = 60
	orders := w.publishMany("order", intents)
	if err := w.sim.WaitRequests(t.Context(), before+intents/2); err != nil {
		t.Fatal(err)
	}
	wire.begin()
	w.start(workerOptions{name: "healthy"})
	w.mustHaveSettled(orders)
	if wire.end() == 0 {
		t.Error("nothing was kept on its way: the case shows nothing")
	}
	if a := w.mustBeGood(0); len(a.Charges) != intents {
		t.Errorf("%d charges, want %d", len(a.Charges), intents)
	}
}
