package outages

import (
	"fmt"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestLostAnswers runs three workers whose connections to PostgreSQL and NATS break all the time, at a Stripe that loses answers too.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	pace := world.Short
	if world.Scale > 1 { // a machine that stands for longer than a lease would look like a worker that died
		pace = world.OutageTimes
	}
	w := world.NewOf(t, pace)
	for _, fault := range world.Faults {
		rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: fault, Rate: 0.02}
		if err := w.Sim.AddFault(rule); err != nil {
			t.Fatal(err)
		}
	}
	pg, broker := world.NewFlakiness(1, 40), world.NewFlakiness(2, 25)
	for i := range 3 {
		w.Start(world.WorkerOptions{Name: fmt.Sprintf("flaky %d", i), Postgres: pg.Hook, NATS: broker.Hook})
	}
	const intents = 300
	orders := w.PublishMany("order", intents)
	w.Publish(orders[:50]...) // and some of them again
	w.Rest()
	for name, f := range map[string]*world.Flakiness{"PostgreSQL": pg, "NATS": broker} {
		if f.Cuts() < 5 {
			t.Errorf("only %d connections to %s were cut: the case shows little", f.Cuts(), name)
		}
		t.Logf("%d connections to %s were cut", f.Cuts(), name)
	}
	a := w.MustBeGood(0)
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
	w := world.New(t)
	if err := w.Sim.SetLimits(stripesim.Limits{LatencyMS: 150}); err != nil {
		t.Fatal(err)
	}
	wire := &stall{}
	w.Start(world.WorkerOptions{Name: "stalled", Postgres: wire.hook})
	t.Cleanup(func() { wire.end() })
	before := w.Sim.Summary().Requests
	const intents = 60
	orders := w.PublishMany("order", intents)
	if err := w.Sim.WaitRequests(t.Context(), before+intents/2); err != nil {
		t.Fatal(err)
	}
	wire.begin()
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.MustHaveSettled(orders)
	if wire.end() == 0 {
		t.Error("nothing was kept on its way: the case shows nothing")
	}
	if a := w.MustBeGood(0); len(a.Charges) != intents {
		t.Errorf("%d charges, want %d", len(a.Charges), intents)
	}
}
