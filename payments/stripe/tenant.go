package stripe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// tenant is what a process knows of a tenant's way.
type tenant struct {
	id      string
	way     Way
	current atomic.Pointer[Gateway] // nil while the account is not known
	tried   chan struct{}           // closed when the account has been asked for once

	mu         sync.Mutex
	connecting bool
	problem    error         // of the last attempt; nil: none has failed
	wait       time.Duration // until the next attempt
}

func newTenant(id string, w Way) *tenant { return &tenant{id: id, way: w, tried: make(chan struct{})} }

// why is the reason that the account is not known.
func (t *tenant) why() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.problem != nil {
		return t.problem
	}
	return &payments.Error{Code: payments.CodeUnavailable, Field: "tenant " + t.id, Message: errConnecting.Error()}
}

// pause is how long the account will not be asked for again; 0 while it is.
func (t *tenant) pause() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait
}

func (t *tenant) broken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem != nil
}

// pauses are the waits between attempts to read an account: they double up to the greatest, which is longer for what only a person can mend.
type pauses struct{ first, unavailable, invalid time.Duration }

var defaultPauses = pauses{first: time.Second, unavailable: 15 * time.Second, invalid: time.Minute}

func (p pauses) after(attempt int, err error) time.Duration {
	most := p.invalid
	if payments.Retryable(err) {
		most = p.unavailable
	}
	return min(p.first<<min(attempt-1, 16), most)
}

// begin sees to it that the tenant's account is being read.
func (a *Accounts) begin(t *tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.connecting && t.current.Load() == nil {
		t.connecting = a.spawn(func() { a.connect(t) })
	}
}

// connect asks for the tenant's account until it is known.
func (a *Accounts) connect(t *tenant) {
	for attempt := 1; ; attempt++ {
		select {
		case a.slots <- struct{}{}:
		case <-a.base.Done():
			return
		}
		g, err := a.open(t)
		<-a.slots
		if a.base.Err() != nil {
			return
		}
		if err == nil {
			a.connected(t, g)
			return
		}
		pause := a.failed(t, err, attempt)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.base.Done():
			timer.Stop()
			return
		}
	}
}

// connected publishes the gateway: from now on the tenant's payments go.
func (a *Accounts) connected(t *tenant, g *Gateway) {
	t.mu.Lock()
	mended := t.problem != nil
	t.problem, t.wait, t.connecting = nil, 0, false
	t.current.Store(g)
	t.triedLocked()
	t.mu.Unlock()
	if mended {
		a.own.log.Info("a tenant's Stripe account is known now; its payments go on", "tenant", t.id, "account", g.account.ID)
	}
}

// remindEvery is every how many attempts the log is told once more of the same trouble.
const remindEvery = 10

// failed notes why the account could not be read and returns the pause before the next attempt.
func (a *Accounts) failed(t *tenant, err error, attempt int) time.Duration {
	pause := a.pauses.after(attempt, err)
	t.mu.Lock()
	news := t.problem == nil || t.problem.Error() != err.Error()
	t.problem, t.wait = err, pause
	t.triedLocked()
	t.mu.Unlock()
	if news || attempt%remindEvery == 0 {
		a.own.log.Error("a tenant's Stripe account cannot be used; its payments wait, and it is tried again", "tenant", t.id, "error", err)
	}
	return pause
}

func (t *tenant) triedLocked() {
	select {
	case <-t.tried:
	default:
		close(t.tried)
	}
}
