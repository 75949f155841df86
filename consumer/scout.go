package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The scout's pace and bounds.
const (
	// scoutEvery is how often it looks; scoutHeldEvery, while the lane pulls nothing; scoutGap is the least time between two looks.
	scoutEvery     = time.Second
	scoutHeldEvery = 250 * time.Millisecond
	scoutGap       = 50 * time.Millisecond
	// scoutSoon: a backlog that is gone so soon needs no scout.
	scoutSoon = time.Second
	// scoutRest is how much longer than a listing took the scout waits before the next one.
	scoutRest = 20
	// scoutTenantsMax is how many tenants a stream may have for the scout to list them: one page of the server's.
	scoutTenantsMax = 100_000
	// A look probes at most probesMax tenants and no longer than probeTime, so many at once.
	probesMax    = 2048
	probeTime    = 100 * time.Millisecond
	probeRest    = 10 // as scoutRest, for probes
	probesAtOnce = 8
	// setBack: a consumer that is so much further back than before was set back. By a message or two it goes back by itself.
	setBack = 1000
	// broughtLately: for so long a tenant counts as one that is served by tickets.
	broughtLately = 2 * time.Second
)

// scout makes a lane fair between tenants. A stream is worked off in its order, so behind 100,000 messages of one tenant another's single one
// would wait for all of them. The scout looks ahead of the lane's consumer for tenants that have less than their share in flight, and stores
// their next payments, unclaimed: Take serves tenants in turn. The message itself, when its turn comes, finds its row and is acked.
//
// The scout only accelerates, and nothing depends on it. It never acks, buries or erases, and leaves whatever is not a clean new intent to the
// lane; batches, which have subjects of their own, come in the stream's order. While there is no backlog, or only one tenant, it asks for next to nothing.
type scout struct {
	w     *Worker
	lane  *lane
	due   *due
	ahead ahead

	horizon horizon
	admits  chan struct{} // bounds the payments being stored at once
	seats   chan struct{} // and the tenants whose messages are being brought

	bringing  sync.WaitGroup
	underWay  atomic.Int64 // payments that are being brought
	readersMu sync.Mutex
	readers   map[*tenantAhead]bool // tenants whose readers are open

	delivered uint64 // at the last look
	from      uint64 // delivered when the pace was last measured
	measured  time.Time
	pace      float64        // messages delivered in a second, by all workers
	listed    time.Time      // when the tenants were last listed
	listRest  time.Duration  // and how long not again
	probing   time.Duration  // how long the last look probed
	tenants   int            // with work, at the last look; 0: not known
	came      map[string]int // whose messages came by themselves between the last two looks
	cameAll   int
}

func newScout(l *lane, d *due, a ahead) *scout {
	return &scout{w: l.w, lane: l, due: d, ahead: a, admits: make(chan struct{}, admitsAtOnce), seats: make(chan struct{}, tenantsAtOnce), readers: map[*tenantAhead]bool{}}
}

// run looks ahead until ctx ends. It begins late: a message that ends every process that reads it must not keep the lane from getting
// anywhere between two starts.
func (s *scout) run(ctx, work context.Context) {
	timer := time.NewTimer(s.spread(scoutEvery))
	defer timer.Stop()
	defer s.closeReaders(work, true)
	defer s.bringing.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.due.unclaimed.scout:
			if !wait(ctx, scoutGap) { // what is asked for meanwhile is brought together
				return
			}
			if s.tenants > 0 && !s.w.away() {
				s.bring(ctx, work)
			}
		case <-timer.C:
			timer.Reset(s.look(ctx, work))
		}
	}
}

// look looks once, if there is anything to see, and says when to look again.
func (s *scout) look(ctx, work context.Context) time.Duration {
	s.closeReaders(ctx, false)
	if !s.lane.behind() || s.w.away() {
		s.stand()
		return s.spread(scoutEvery)
	}
	began := s.w.Clock.Now()
	if !s.went(ctx, s.round(ctx, work)) {
		s.stand()
		return s.spread(5 * scoutEvery)
	}
	every := scoutEvery
	if s.lane.flow.isHolding() {
		every = scoutHeldEvery
	}
	return s.spread(max(every, s.w.Clock.Now().Sub(began), probeRest*s.probing))
}

// went tells, once in a while, of an error, and reports whether there was none.
func (s *scout) went(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() == nil && s.w.seldom.now("scout of "+s.lane.stream, s.w.Clock.Now()) {
		s.w.Log.Warn("the scout cannot look ahead; payments of a small tenant wait behind a large backlog, as in any queue", "stream", s.lane.stream, "error", err)
	}
	return err == nil
}

// spread is d, give or take a fifth, so that workers look at different times.
func (s *scout) spread(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(s.w.Random(int64(2*d/5)))
}

// stand ends what a look has set.
func (s *scout) stand() {
	s.tenants = 0
	s.w.tally.idle(s.lane.lane)
	s.w.slots.setShare(s.lane.lane, evenShare)
}

// round asks where the lane is, who has messages ahead, and brings those of tenants that have less than their share.
func (s *scout) round(ctx, work context.Context) error {
	p, err := s.ahead.position(ctx)
	if err != nil {
		return err
	}
	if h := &s.horizon; !h.created.Equal(p.created) || p.delivered+setBack < s.delivered {
		s.bringing.Wait()
		s.closeReaders(ctx, true)
		h.reset(p.created)
		s.measured, s.pace, s.listed, s.tenants = time.Time{}, 0, time.Time{}, 0
	}
	s.delivered, s.probing = p.delivered, 0
	s.measure()
	switch {
	case p.pending == 0, p.subjects < 2, float64(p.pending) < s.pace*scoutSoon.Seconds():
		s.stand()
		return nil
	case p.subjects > scoutTenantsMax:
		if s.w.seldom.now("tenants of "+s.lane.stream, s.w.Clock.Now()) {
			s.w.Log.Warn("the stream has more tenants than the scout looks through; their payments come in the stream's order", "stream", s.lane.stream, "tenants", p.subjects)
		}
		s.stand()
		return nil
	}
	now := s.w.Clock.Now()
	if rested := now.Sub(s.listed); s.listed.IsZero() || rested < 0 || rested >= s.listRest {
		if err := s.list(ctx, p); err != nil {
			return err
		}
		s.listed, s.listRest = now, max(scoutHeldEvery/2, scoutRest*s.since(now))
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	s.came, s.cameAll = s.w.tally.came(s.lane.lane), 0
	for _, n := range s.came {
		s.cameAll += n
	}
	s.bring(ctx, work)
	return nil
}

// since is the time since then, if the clock was not set back.
func (s *scout) since(then time.Time) time.Duration { return max(0, s.w.Clock.Now().Sub(then)) }

// measure keeps the pace at which the lane's consumer delivers, over at least half a second.
func (s *scout) measure() {
	now := s.w.Clock.Now()
	span := now.Sub(s.measured)
	if !s.measured.IsZero() && span >= 0 {
		if span < scoutEvery/2 {
			return
		}
		s.pace = max(0, float64(s.delivered)-float64(s.from)) / span.Seconds()
	}
	s.from, s.measured = s.delivered, now
}

func (s *scout) list(ctx context.Context, before position) error {
	counts, err := s.ahead.tenants(ctx)
	if err != nil {
		return err
	}
	after, err := s.ahead.position(ctx)
	if err != nil {
		return err
	}
	if after.created.Equal(before.created) {
		s.horizon.list(before, after, counts)
	}
	return nil
}

// probe finds the next message of tenants that may have one. Those that have enough in flight are not asked for.
func (s *scout) probe(ctx context.Context) error {
	inFlight := s.w.tally.of(s.lane.lane)
	enough := max(1, s.w.slots.most(s.lane.lane)/max(1, s.tenants)/2)
	var list []*tenantAhead
	for _, t := range s.horizon.open {
		if t.busy.Load() {
			continue
		}
		if t.advance(s.delivered); t.empty() || t.known || s.tenants > 0 && inFlight[t.tenant] >= enough {
			continue
		}
		if list = append(list, t); len(list) == probesMax {
			break
		}
	}
	began := s.w.Clock.Now()
	var mu sync.Mutex
	var failed error
	next := func() *tenantAhead {
		mu.Lock()
		defer mu.Unlock()
		if len(list) == 0 || failed != nil || s.since(began) > probeTime {
			return nil // the rest has its turn at the next look
		}
		t := list[0]
		list = list[1:]
		return t
	}
	var all sync.WaitGroup
	for range min(probesAtOnce, len(list)) {
		all.Go(func() {
			for t := next(); t != nil; t = next() {
				if err := s.find(ctx, t); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	s.probing = s.since(began)
	return failed
}

// find finds the tenant's next message.
func (s *scout) find(ctx context.Context, t *tenantAhead) error {
	if !t.swept {
		last, err := s.ahead.last(ctx, t.tenant)
		if err != nil {
			return err
		}
		t.high, t.swept = last, true
		if t.empty() {
			return nil
		}
	}
	m, err := s.ahead.next(ctx, t.tenant, t.low)
	switch {
	case err != nil:
		return err
	case m == nil:
		t.nothing()
	default:
		t.low, t.known = m.Sequence, true
		t.high = max(t.high, m.Sequence)
	}
	return nil
}

// share says how many slots each tenant with work may have, and notes how many tenants there are.
func (s *scout) share(inFlight map[string]int) int {
	tenants := len(inFlight)
	for _, t := range s.horizon.open {
		if inFlight[t.tenant] == 0 && (t.busy.Load() || t.known && !t.empty()) {
			tenants++
		}
	}
	s.tenants = max(1, tenants)
	return max(1, s.w.slots.most(s.lane.lane)/s.tenants)
}

// setShares gives tenants that are served by tickets the slots that messages would take, and the others' messages theirs.
func (s *scout) setShares(now time.Time) {
	served := 0
	for _, t := range s.horizon.open {
		if t.busy.Load() || now.Sub(t.brought) < broughtLately || t.laidOff(now) {
			served++
		}
	}
	messages := evenShare
	if served > 0 {
		messages = float64(max(1, s.tenants-served)) / float64(max(2, s.tenants))
	}
	s.w.slots.setShare(s.lane.lane, messages)
}
