package consumer

import (
	"slices"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/oncepay/oncepay/payments"
)

// When a breaker opens: at once when Stripe refuses the account's key; when at least half of the answers of the last breakerWindow, and at least
// breakerLeast, were bad; or when breakerRow in a row were, however long that took.
const (
	breakerWindow = 10 * time.Second
	breakerRate   = 0.5
	breakerLeast  = 10
	breakerRow    = 5
	// ownLuck is for how long a payment's bad answers count as one: what Stripe answers to one request again and again says nothing of others.
	ownLuck    = 2 * time.Minute
	ownLuckMax = 4096
	// oneListing is how close together failures to read Stripe's records are one failure: a listing is read for many payments at once.
	oneListing = time.Second
)

// How long it stays open: at first pauseFirst, then twice as long after each probe that fails, up to pauseMost, unless the back-off of payments is
// shorter. One that opens again soon after it was closed goes on from there.
const (
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// breakers are the circuit breakers of this process, one for each Stripe account. While one is open nothing is sent to its account but one probe at a
// time: messages are stored without a claim, and tickets are left to wait. So nothing is pulled into failure, and nobody else notices.
//
//	closed ──refused, or too many bad──▶ open ──pause──▶ half-open: one probe
//	   ▲                                  ▲  bad, pause doubled  │        │
//	   │                                  └──────────────────────┘        │
//	   └───────────────────────────────good───────────────────────────────┘
type breakers struct {
	first, most time.Duration
	patience    time.Duration // with a probe: then another is sent. No call lasts so long, but a listing may, and a handler may hang
	row         int
	clock       payments.Clock
	random      func(int64) int64
	events      breakerEvents

	mu      sync.Mutex
	stopped bool
	of      map[payments.Account]*breaker
}

// breakerEvents are told in order; they must not call back.
type breakerEvents struct {
	opened func(a payments.Account, o payments.Observation, pause time.Duration)
	failed func(a payments.Account, o payments.Observation, pause time.Duration) // a probe
	closed func(a payments.Account, after time.Duration)
}

// breaker is one account's.
type breaker struct {
	account payments.Account
	circuit circuitbreaker.CircuitBreaker[any]
	last    payments.Observation        // the last bad one that counted
	row     int                         // bad answers since the last good one
	unlucky map[payments.ID]time.Time   // payments whose bad answer has counted
	listing time.Time                   // when a listing last failed
	pause   time.Duration               // this one, or the last
	since   time.Time                   // when it opened
	until   time.Time                   // no probe before
	closed  time.Time                   // when it last was closed again
	probe   *pass                       // who probes
	slow    []*pass                     // probes that were followed by another before they ended
	asked   map[payments.Lane]time.Time // when a ticket for a probe was last looked for
}

// newBreakers returns breakers for payments that may have so many tries, with that back-off, and that lease.
func newBreakers(tries int, backoff payments.Backoff, lease time.Duration, clock payments.Clock, random func(int64) int64, events breakerEvents) *breakers {
	b := &breakers{
		first: pauseFirst, most: pauseMost, patience: lease, clock: clock, random: random, events: events, of: map[payments.Account]*breaker{},
		row: max(1, min(breakerRow, tries-1)), // opened before the first payment has spent its last try
	}
	if backoff.Max > 0 {
		b.first, b.most = min(b.first, backoff.Max/4+1), min(b.most, backoff.Max)
	}
	return b
}

// observed counts an answer.
func (b *breakers) observed(p payments.Payment, o payments.Observation) {
	health := o.Health()
	if health == payments.HealthNothing || o.Account.ID == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	now := b.clock.Now()
	c := b.ofLocked(o.Account)
	switch c.circuit.State() {
	case circuitbreaker.OpenState: // it was on its way when the breaker opened
	case circuitbreaker.HalfOpenState:
		// A listing can last much longer than a lease: where only that is due, nobody who probes would be answered as the last one.
		late := health == payments.HealthGood && slices.ContainsFunc(c.slow, func(s *pass) bool { return s.id == p.ID })
		if !late && (c.probe == nil || c.probe.id != p.ID) {
			return
		}
		c.probe = nil
		if health != payments.HealthGood {
			c.circuit.RecordFailure()
			b.holdLocked(c, 2*c.pause, now)
			b.events.failed(c.account, o, c.pause)
			return
		}
		c.circuit.RecordSuccess()
		c.row, c.unlucky, c.slow, c.closed = 0, nil, nil, now
		b.events.closed(c.account, now.Sub(c.since))
	default:
		b.countLocked(c, p.ID, o, health, now)
	}
}

// countLocked counts an answer while the breaker is closed.
func (b *breakers) countLocked(c *breaker, id payments.ID, o payments.Observation, health payments.Health, now time.Time) {
	switch {
	case health == payments.HealthGood:
		c.row = 0
		c.circuit.RecordSuccess() // which may be the tenth answer, and half of them were bad
		o = c.last
	case health == payments.HealthRefused:
		c.circuit.Open()
	case !c.counts(id, o, now):
		return
	default:
		c.last = o
		c.circuit.RecordFailure()
		if c.row++; c.row >= b.row {
			c.circuit.Open()
		}
	}
	if !c.circuit.IsOpen() {
		return
	}
	pause := b.first
	if !c.closed.IsZero() && now.Sub(c.closed) < 2*c.pause {
		pause = 2 * c.pause
	}
	c.since, c.asked = now, map[payments.Lane]time.Time{}
	b.holdLocked(c, pause, now)
	b.events.opened(c.account, o, c.pause)
}

// holdLocked lets nobody probe for the pause, or a little less: other processes have breakers too.
func (b *breakers) holdLocked(c *breaker, pause time.Duration, now time.Time) {
	c.pause = min(pause, b.most)
	c.until = now.Add(c.pause - time.Duration(b.random(int64(c.pause)/4+1)))
}

// counts reports whether a bad answer says something new of the account.
func (c *breaker) counts(id payments.ID, o payments.Observation, now time.Time) bool {
	switch o.Kind {
	case payments.ObservedNotSent:
		return true // whatever was to be sent
	case payments.ObservedNoRecords:
		if now.Sub(c.listing) < oneListing {
			return false
		}
		c.listing = now
	}
	if at, before := c.unlucky[id]; before && now.Sub(at) < ownLuck {
		return false
	}
	if c.unlucky == nil || len(c.unlucky) >= ownLuckMax {
		c.unlucky = map[payments.ID]time.Time{}
	}
	c.unlucky[id] = now
	return true
}

func (b *breakers) ofLocked(a payments.Account) *breaker {
	c := b.of[a]
	if c == nil {
		// Its delay is not used: it cannot grow. Who is to probe is our business as well, since a probe may end without an answer.
		c = &breaker{account: a, circuit: circuitbreaker.NewBuilder[any]().
			WithFailureRateThreshold(breakerRate, breakerLeast, breakerWindow).WithSuccessThreshold(1).Build()}
		b.of[a] = c
	}
	return c
}

// pass is the leave to probe an account. A nil pass is that of an account that works.
type pass struct {
	all   *breakers
	of    *breaker
	since time.Time
	id    payments.ID // what is sent
}

// enter asks for leave to send to the account. With its breaker open there is none; when its pause is over, for one at a time, who must end the pass.
func (b *breakers) enter(a payments.Account) (p *pass, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of[a]
	if c == nil || c.circuit.IsClosed() {
		return nil, true
	}
	now := b.clock.Now()
	if !c.readyLocked(now, b.patience) {
		return nil, false
	}
	c.circuit.HalfOpen()
	if c.probe != nil {
		c.slow = append(c.slow, c.probe)
	}
	c.probe = &pass{all: b, of: c, since: now}
	return c.probe, true
}

func (c *breaker) readyLocked(now time.Time, patience time.Duration) bool {
	if c.probe != nil {
		if probing := now.Sub(c.probe.since); probing >= 0 && probing <= patience {
			return false
		}
	}
	early := now.Before(c.until) && c.until.Sub(now) <= pauseMost // a clock that was set back keeps nobody waiting
	return !c.circuit.IsClosed() && !early
}

// with says which payment the probe is.
func (p *pass) with(id payments.ID) {
	if p != nil {
		p.all.mu.Lock()
		defer p.all.mu.Unlock()
		p.id = id
	}
}

// end gives the leave back. A probe that showed nothing is followed by the next.
func (p *pass) end() {
	if p != nil {
		p.all.mu.Lock()
		defer p.all.mu.Unlock()
		if p.of.probe == p {
			p.of.probe = nil
		}
		p.of.slow = slices.DeleteFunc(p.of.slow, func(s *pass) bool { return s == p })
	}
}

// holds reports whether nothing but probes is sent to the account.
func (b *breakers) holds(a payments.Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of[a]
	return c != nil && !c.circuit.IsClosed()
}

// held lists the accounts to which nothing is sent.
func (b *breakers) held() (accounts []payments.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, c := range b.of {
		if !c.circuit.IsClosed() {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// ready lists up to most accounts that may be probed, those first that the lane was not asked about for longest, and notes that it is asked now.
func (b *breakers) ready(l payments.Lane, most int) (accounts []payments.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	var list []*breaker
	for _, c := range b.of {
		if c.readyLocked(now, b.patience) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y *breaker) int { return x.asked[l].Compare(y.asked[l]) })
	for _, c := range list[:min(most, len(list))] {
		c.asked[l] = now
		accounts = append(accounts, c.account)
	}
	return accounts
}

// stop lets no answer count any more: what follows are calls that this process ends itself.
func (b *breakers) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
}
