package consumer

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// The bounds of what is brought at a look.
const (
	tenantsAtOnce = 16
	admitsAtOnce  = 256
	readsMax      = 1024 // of one tenant
	readMax       = 128  // with one question
	barrenMax     = 256  // without anything new among them
	// Up to readOneByOne messages of a tenant are asked for one by one; for more there are at most readersMax readers.
	readOneByOne = windowMin
	readersMax   = 8
	// windowMin tickets of a tenant are brought at first. When half of them are taken the next are; windowGrowth times as many if none was left
	// by then, and half as many if that took longer than refillLate.
	windowMin    = 8
	windowGrowth = 4
	refillLate   = 2 * time.Second
	// ticketsPerSlot times as many tickets as there are slots wait at most, so that the next ones are there when those are done.
	ticketsPerSlot = 2
	// layoffTime is how long a tenant is left to another process that has been found to scout for it.
	layoffTime = time.Second
)

// fateScouted is the fate of a message whose payment was stored before its turn.
const fateScouted = "scouted"

// bring begins to store the next payments of tenants that have less than their share in flight.
func (s *scout) bring(ctx, work context.Context) {
	now := s.w.Clock.Now()
	inFlight := s.w.tally.of(s.lane.lane)
	share := s.share(inFlight)
	for _, t := range s.horizon.open {
		if t.busy.Load() {
			continue
		}
		room := s.ticketsMax() - s.due.unclaimed.all() - int(s.underWay.Load())
		n := min(s.wanted(t, inFlight[t.tenant], share, now), room)
		if n <= 0 || ctx.Err() != nil {
			continue
		}
		select {
		case s.seats <- struct{}{}:
		default:
			continue // at the next look
		}
		t.busy.Store(true)
		t.window, t.refill = n+s.due.unclaimed.of(t.tenant), now
		s.underWay.Add(int64(n))
		s.bringing.Go(func() {
			defer func() {
				s.underWay.Add(int64(-n))
				t.busy.Store(false)
				<-s.seats
			}()
			s.went(ctx, s.bringTenant(ctx, work, t, n))
		})
	}
	s.setShares(now)
}

// ticketsMax is how many tickets of the lane may wait before nothing more is brought.
func (s *scout) ticketsMax() int { return ticketsPerSlot * s.w.slots.most(s.lane.lane) }

// comes reports whether the tenant's messages come by themselves, as many as it has a right to or nearly: in a stream that is well mixed a tenant
// is now a little above its share, now a little below.
func (s *scout) comes(tenant string, inFlight int) bool {
	if s.came == nil { // not known at the first look
		return inFlight > 0
	}
	return s.came[tenant] > 0 && 2*s.tenants*s.came[tenant] >= s.cameAll
}

// wanted is how many payments of the tenant are to be stored now.
func (s *scout) wanted(t *tenantAhead, inFlight, share int, now time.Time) (n int) {
	if t.empty() || !t.known || t.laidOff(now) || s.comes(t.tenant, inFlight) {
		return 0
	}
	// Who is being served by tickets has its share of them, and goes on having it.
	enough := (share + 1) / 2
	if now.Sub(t.brought) < broughtLately {
		enough = 2 * share
	}
	if inFlight >= enough {
		return 0
	}
	waiting := s.due.unclaimed.of(t.tenant)
	if waiting > t.window/2 {
		return 0
	}
	window := t.window
	switch waited := now.Sub(t.refill); {
	case window == 0:
		window = min(windowMin, share)
	case waiting == 0 && waited >= 0 && waited < refillLate:
		window *= windowGrowth
	case waited > refillLate:
		window = max(min(windowMin, share), window/2)
	}
	return max(0, min(window, s.ticketsMax())-waiting)
}

// bringTenant stores up to n of the tenant's next payments.
func (s *scout) bringTenant(ctx, work context.Context, t *tenantAhead, n int) error {
	reads, barren := 0, 0
	for n > 0 && reads < readsMax && barren < barrenMax && !t.empty() {
		// Where everything is there already, as with a tenant that repeats itself, more is read at once.
		list, err := s.next(ctx, t, max(n, min(barren, readMax)))
		w := s.storeAll(work, list)
		reads += len(list)
		n -= w.stored
		if barren += len(list); w.stored > 0 {
			t.brought, barren = s.w.Clock.Now(), 0
		}
		if w.stored+w.others > 0 {
			s.w.slots.setHungry(s.lane.lane, forTickets, true)
			s.due.wakeUp()
		}
		switch {
		case w.failedAt > 0:
			s.back(ctx, t, w.failedAt)
			return nil // the store is away, and noteStore has it
		case w.unknown:
			t.nothing() // whatever it sends is refused, in its turn
			return nil
		case err != nil || ctx.Err() != nil:
			return err
		case w.others > 0 && w.stored == 0:
			t.layoff = s.w.Clock.Now().Add(s.spread(layoffTime))
			return nil
		case len(list) == 0:
			return nil
		}
	}
	if !t.empty() {
		s.due.unclaimed.notify(t.tenant, t.window/2)
	}
	return nil
}

// next reads up to n of the tenant's next messages.
func (s *scout) next(ctx context.Context, t *tenantAhead, n int) (list []*jetstream.RawStreamMsg, err error) {
	if n > readOneByOne {
		if err := s.openReader(ctx, t); err != nil {
			return nil, err
		}
	}
	if t.reader == nil {
		return s.nextOneByOne(ctx, t, min(n, readOneByOne))
	}
	all, err := t.reader.more(min(n, readMax))
	for _, m := range all {
		if m.Sequence >= t.low { // not delivered meanwhile
			list = append(list, m)
			t.pass(m.Sequence)
		}
	}
	if err != nil || len(all) == 0 {
		s.closeReader(ctx, t)
	}
	if err == nil && len(all) == 0 { // a slow server is silent, too
		return s.nextOneByOne(ctx, t, 1)
	}
	return list, err
}

func (s *scout) nextOneByOne(ctx context.Context, t *tenantAhead, n int) (list []*jetstream.RawStreamMsg, err error) {
	for len(list) < n && !t.empty() && ctx.Err() == nil {
		m, err := s.ahead.next(ctx, t.tenant, t.low)
		if err != nil {
			return list, err
		}
		if m == nil {
			t.nothing()
			break
		}
		list = append(list, m)
		t.pass(m.Sequence)
	}
	return list, nil
}

// openReader gives the tenant a reader, unless too many others have one.
func (s *scout) openReader(ctx context.Context, t *tenantAhead) (err error) {
	s.readersMu.Lock()
	free := t.reader == nil && len(s.readers) < readersMax
	if free {
		s.readers[t] = true
	}
	s.readersMu.Unlock()
	if !free {
		return nil
	}
	if t.reader, err = s.ahead.read(ctx, t.tenant, t.low); err != nil {
		s.forgetReader(t)
	}
	return err
}

func (s *scout) closeReader(ctx context.Context, t *tenantAhead) {
	if t.reader != nil {
		t.reader.close(ctx)
		s.forgetReader(t)
	}
}

func (s *scout) forgetReader(t *tenantAhead) {
	t.reader = nil
	s.readersMu.Lock()
	defer s.readersMu.Unlock()
	delete(s.readers, t)
}

// closeReaders closes those that have had nothing to do for a while, or all.
func (s *scout) closeReaders(ctx context.Context, all bool) {
	now := s.w.Clock.Now()
	s.readersMu.Lock()
	open := maps.Clone(s.readers)
	s.readersMu.Unlock()
	for t := range open {
		if t.busy.Load() {
			continue
		}
		if all || t.empty() || now.Sub(t.refill).Abs() > readerIdle/2 {
			s.closeReader(ctx, t)
		}
	}
}

// back lets the scout have the tenant's messages again, from a sequence on.
func (s *scout) back(ctx context.Context, t *tenantAhead, from uint64) {
	s.closeReader(ctx, t)
	t.low, t.known = min(t.low, from), false
}

// wave is some messages of one tenant that are stored together.
type wave struct {
	mu       sync.Mutex
	stored   int    // new tickets
	others   int    // tickets that wait and were stored by somebody else
	failedAt uint64 // the first that could not be stored
	unknown  bool   // there is no such tenant
}

// storeAll stores the payments of messages.
func (s *scout) storeAll(ctx context.Context, list []*jetstream.RawStreamMsg) *wave {
	w := &wave{}
	var all sync.WaitGroup
	for _, m := range list {
		s.admits <- struct{}{}
		all.Go(func() {
			defer func() { <-s.admits }()
			s.admit(ctx, m, w)
		})
	}
	all.Wait()
	return w
}

// admit stores the payment of one message without claiming it. Whatever is not a clean new intent is left to the lane.
func (s *scout) admit(ctx context.Context, m *jetstream.RawStreamMsg, w *wave) {
	if !s.w.gate.enter(ctx, 1) {
		return
	}
	defer s.w.gate.leave(1)
	defer s.w.survive()
	r := read(s.w.Subjects, message{subject: m.Subject, headers: m.Header, data: m.Data})
	if r.refusal != nil || r.refused != nil || r.existingOnly || r.batch != nil || r.lane != s.lane.lane {
		return
	}
	id := r.id
	s.w.step(payments.StepBeforeAdmit, id)
	verdict, stored, err := s.admitOne(ctx, r)
	s.w.noteAdmit(err)
	if err == nil {
		s.w.step(payments.StepAfterAdmit, id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case payments.Retryable(err):
		if w.failedAt == 0 || m.Sequence < w.failedAt {
			w.failedAt = m.Sequence
		}
	case err != nil:
	case verdict == payments.VerdictStored:
		w.stored++
		s.due.unclaimed.add(r.tenant, id, false)
		s.w.message(r.lane, fateScouted)
	case verdict == payments.VerdictTenantUnknown:
		w.unknown = true
	case verdict == payments.VerdictExists && s.w.isDue(stored) && !s.due.unclaimed.has(id):
		w.others++
	}
}

// admitOne stores the payment, or the follow-up: one that is not accepted is left to the lane, which buries it.
func (s *scout) admitOne(ctx context.Context, r reading) (payments.Verdict, payments.Payment, error) {
	if r.followUp() {
		a, err := s.w.storeFollowUp(ctx, payments.FollowUpRequest{Intent: r.intent, Lane: r.lane})
		return a.Verdict, a.FollowUp.Payment, err
	}
	a, err := s.w.Store.Admit(ctx, payments.AdmitRequest{Intent: r.intent, Lane: r.lane})
	return a.Verdict, a.Payment, err
}
