package consumer

import (
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// unclaimed keeps count of the tickets of a lane that this process stored without getting them: messages whose account had no budget left, and
// what the scout brought. They wait in the store until somebody takes them. The lane pulls no more while many of its own wait, so that its
// backlog stays in the stream; the scout brings no more for a tenant that has enough waiting.
type unclaimed struct {
	mu      sync.Mutex
	serial  uint64
	tickets map[payments.ID]unclaimedTicket
	tenants map[string]*unclaimedTenant
	pulled  int // how many came by a pull
	// fewer is poked whenever pulled falls; scout, when a tenant has few enough left for the scout to bring more.
	fewer, scout chan struct{}
}

type unclaimedTicket struct {
	tenant string
	serial uint64
	pulled bool
}

type unclaimedTenant struct {
	tickets map[payments.ID]struct{}
	low     int // when so few are left the scout is told; -1: it need not be
	newest  payments.ID
	// asked says that newest was stored before the last round of questions: had it been taken in the usual time, it would not be here.
	asked payments.ID
}

func newUnclaimed() *unclaimed {
	return &unclaimed{
		tickets: map[payments.ID]unclaimedTicket{}, tenants: map[string]*unclaimedTenant{}, fewer: make(chan struct{}, 1), scout: make(chan struct{}, 1),
	}
}

// poke sends a signal that need not be counted.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add notes a ticket that was stored and not given.
func (u *unclaimed) add(tenant string, id payments.ID, pulled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.tickets[id]; there {
		return
	}
	u.serial++
	u.tickets[id] = unclaimedTicket{tenant: tenant, serial: u.serial, pulled: pulled}
	t := u.tenants[tenant]
	if t == nil {
		t = &unclaimedTenant{tickets: map[payments.ID]struct{}{}, low: -1}
		u.tenants[tenant] = t
	}
	t.tickets[id], t.newest = struct{}{}, id
	if pulled {
		u.pulled++
	}
}

// notify asks that the scout be told once no more than low tickets of the tenant wait.
func (u *unclaimed) notify(tenant string, low int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t := u.tenants[tenant]; t == nil {
		poke(u.scout)
	} else if t.low = low; len(t.tickets) <= low {
		t.low = -1
		poke(u.scout)
	}
}

// mark is the moment before a Take: all that was added before is in the store.
func (u *unclaimed) mark() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.serial
}

// taken removes tickets that were given out.
func (u *unclaimed) taken(claims []payments.Claim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range claims {
		u.removeLocked(c.Payment.ID)
	}
}

// cleared removes all tickets up to the mark: a Take found nothing more that is due.
func (u *unclaimed) cleared(mark uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, t := range u.tickets {
		if t.serial <= mark {
			u.removeLocked(id)
		}
	}
}

func (u *unclaimed) removeLocked(id payments.ID) {
	ticket, there := u.tickets[id]
	if !there {
		return
	}
	delete(u.tickets, id)
	if ticket.pulled {
		u.pulled--
		poke(u.fewer)
	}
	t := u.tenants[ticket.tenant]
	delete(t.tickets, id)
	if len(t.tickets) <= t.low {
		t.low = -1
		poke(u.scout)
	}
	if len(t.tickets) == 0 {
		delete(u.tenants, ticket.tenant)
	}
}

// forget removes all of a tenant's tickets.
func (u *unclaimed) forget(tenant string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t := u.tenants[tenant]; t != nil {
		for id := range t.tickets {
			u.removeLocked(id)
		}
	}
}

// pulledNow is how many of those that came by a pull wait.
func (u *unclaimed) pulledNow() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pulled
}

// of is how many tickets of the tenant wait.
func (u *unclaimed) of(tenant string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t := u.tenants[tenant]; t != nil {
		return len(t.tickets)
	}
	return 0
}

// has reports whether the ticket waits, as far as is known.
func (u *unclaimed) has(id payments.ID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, there := u.tickets[id]
	return there
}

// all is how many tickets wait.
func (u *unclaimed) all() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.tickets)
}

// doubtful names up to most tenants with their newest ticket, where that has not changed since it was named before: perhaps another process has
// taken it, and then all before it.
func (u *unclaimed) doubtful(most int) map[string]payments.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	named := map[string]payments.ID{}
	for tenant, t := range u.tenants {
		if t.asked != t.newest {
			t.asked = t.newest
		} else if len(named) < most {
			named[tenant] = t.newest
		}
	}
	return named
}
