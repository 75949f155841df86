package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// The bounds of what is brought at a look.
const (
	tenantsAtOnce = 16
	admitsAtOnce  = 64
	// waveMax messages of one tenant are read one after another and stored together; at most readsMax at a look.
	waveMax  = 32
	readsMax = 256
	// windowMin tickets of a tenant wait to be taken at least. A tenant that asks for more within refillSoon gets twice as many, one that does
	// not for refillLate half.
	windowMin  = 8
	refillSoon = 250 * time.Millisecond
	refillLate = 2 * time.Second
	// layoffTime is how long a tenant is left to another process that has been found to scout for it.
	layoffTime = time.Second
)

// fateScouted is the fate of a message whose payment was stored before its turn.
const fateScouted = "scouted"

// bring stores the next payments of tenants that have less than their share in flight.
func (s *scout) bring(ctx, work context.Context) error {
	now := s.w.Clock.Now()
	inFlight := s.w.tally.of(s.lane.lane)
	share := s.share(inFlight)
	room := s.w.slots.most(s.lane.lane) - s.due.unclaimed.all()
	var failed error
	var mu sync.Mutex
	var all sync.WaitGroup
	seats := make(chan struct{}, tenantsAtOnce)
	for _, t := range s.horizon.open {
		n := min(s.wanted(t, inFlight[t.tenant], share, now), room)
		if n <= 0 || ctx.Err() != nil {
			continue
		}
		room -= n
		seats <- struct{}{}
		all.Go(func() {
			defer func() { <-seats }()
			if err := s.bringTenant(ctx, work, t, n); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	all.Wait()
	s.setShares(now)
	return failed
}

// wanted is how many payments of the tenant are to be stored now.
func (s *scout) wanted(t *tenantAhead, inFlight, share int, now time.Time) int {
	if t.empty() || !t.known || t.laidOff(now) {
		return 0
	}
	lately := now.Sub(t.brought) < broughtLately
	if !lately {
		// Who is near its share is left alone: in a stream that is well mixed it is now a little above it, now a little below.
		share = (share + 1) / 2
	}
	if inFlight >= share {
		return 0
	}
	waiting := s.due.unclaimed.of(t.tenant)
	if waiting > t.window/2 {
		return 0
	}
	switch waited := now.Sub(t.refill); {
	case t.window == 0 || waited > refillLate || waited < 0:
		t.window = max(windowMin, t.window/2)
	case waited < refillSoon:
		t.window *= 2
	}
	t.window = min(t.window, max(1, share))
	return t.window - waiting
}

// bringTenant stores up to n of the tenant's next payments.
func (s *scout) bringTenant(ctx, work context.Context, t *tenantAhead, n int) error {
	t.refill = s.w.Clock.Now()
	stored := 0
	for reads := 0; stored < n && reads < readsMax && !t.empty(); {
		w := &wave{}
		err := s.sendWave(ctx, work, t, w, min(n-stored, waveMax))
		w.handlers.Wait()
		reads += w.reads
		stored += w.stored
		if w.stored > 0 {
			t.brought = s.w.Clock.Now()
			s.w.slots.setHungry(s.lane.lane, forTickets, true)
			s.due.wakeUp()
		}
		if w.failedAt > 0 {
			t.low, t.known = min(t.low, w.failedAt), false
			return nil // the store is away; noteStore has it
		}
		if w.unknown {
			t.nothing() // whatever it sends is refused, in its turn
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
		if w.others > 0 && w.stored == 0 {
			t.layoff = s.w.Clock.Now().Add(s.spread(layoffTime))
			return nil
		}
	}
	if !t.empty() {
		s.due.unclaimed.notify(t.tenant, t.window/2)
	}
	return nil
}

// wave is some messages of one tenant that are stored together.
type wave struct {
	handlers sync.WaitGroup
	reads    int

	mu       sync.Mutex
	stored   int    // new tickets
	others   int    // tickets that wait and were stored by somebody else
	failedAt uint64 // the first that could not be stored
	unknown  bool   // there is no such tenant
}

// sendWave reads up to n messages and begins to store their payments.
func (s *scout) sendWave(ctx, work context.Context, t *tenantAhead, w *wave, n int) error {
	for w.reads < n && !t.empty() && ctx.Err() == nil {
		m, err := s.ahead.next(ctx, t.tenant, t.low)
		if err != nil {
			return err
		}
		if m == nil {
			t.nothing()
			return nil
		}
		w.reads++
		t.low, t.known, t.high = m.Sequence+1, m.Sequence < t.high, max(t.high, m.Sequence)
		s.admits <- struct{}{}
		w.handlers.Go(func() {
			defer func() { <-s.admits }()
			s.admit(work, m, w)
		})
	}
	return nil
}

// admit stores the payment of one message without claiming it. Whatever is not a clean new intent is left to the lane.
func (s *scout) admit(ctx context.Context, m *jetstream.RawStreamMsg, w *wave) {
	if !s.w.gate.enter(ctx, 1) {
		return
	}
	defer s.w.gate.leave(1)
	defer s.w.survive()
	r := read(s.w.Subjects, message{subject: m.Subject, headers: m.Header, data: m.Data})
	if r.refusal != nil || r.refused != nil || r.existingOnly || r.lane != s.lane.lane {
		return
	}
	id := r.intent.ID()
	s.w.step(payments.StepBeforeAdmit, id)
	a, err := s.w.Store.Admit(ctx, payments.AdmitRequest{Intent: r.intent, Lane: r.lane})
	s.w.noteAdmit(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case payments.Retryable(err):
		if w.failedAt == 0 || m.Sequence < w.failedAt {
			w.failedAt = m.Sequence
		}
	case err != nil:
	case a.Verdict == payments.VerdictStored:
		s.w.step(payments.StepAfterAdmit, id)
		w.stored++
		s.due.unclaimed.add(r.tenant, id, false)
		s.w.message(r.lane, fateScouted)
	case a.Verdict == payments.VerdictTenantUnknown:
		w.unknown = true
	case a.Verdict == payments.VerdictExists && s.w.isDue(a.Payment) && !s.due.unclaimed.has(id):
		w.others++
	}
}
