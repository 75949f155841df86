package ingress

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	lookEvery   = 50 * time.Millisecond
	lookMax     = 1000 // payments that are read at once
	lookTimeout = 5 * time.Second
	// lookShare is the part of one connection's time that looking may take: after a look that took d it rests for at least d times this.
	lookShare = 4
)

// waitingRoom is where requests wait for their payments. One goroutine looks for all of them.
type waitingRoom struct {
	reader payments.Reader
	clock  payments.Clock
	most   int
	wake   chan struct{}

	mu      sync.Mutex
	ran     bool
	ending  <-chan struct{} // closed when nobody may wait any more; nil: nobody looks
	count   int             // requests that wait
	watched map[watchedID]*watch
}

type watchedID struct {
	tenant string
	id     payments.ID
}

// watch is one payment that somebody waits for.
type watch struct {
	waiters int
	latest  payments.Payment
	seen    bool
	settled chan struct{} // closed when latest is what they wait for
}

func newWaitingRoom(reader payments.Reader, clock payments.Clock, most int) *waitingRoom {
	return &waitingRoom{reader: reader, clock: clock, most: most, wake: make(chan struct{}, 1), watched: map[watchedID]*watch{}}
}

// settled reports whether a payment is where Prefer: wait waits for.
func settled(p payments.Payment) bool {
	switch p.Status {
	case payments.StatusRequiresCapture, payments.StatusRequiresAction, payments.StatusPending:
		return true
	}
	return p.Status.Final()
}

// await returns the payment once it is settled, or as it stands when the time is over, the request has ended, or nobody may wait any more. waited
// says that the preference was kept. left is called before the wait, if there is any.
func (w *waitingRoom) await(ctx context.Context, p payments.Payment, d time.Duration, left func()) (now payments.Payment, waited bool) {
	if settled(p) || d == 0 {
		return p, true
	}
	at := watchedID{p.TenantID, p.ID}
	v, ending := w.enter(at)
	if v == nil {
		return p, false
	}
	left()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-v.settled:
		waited = true
	case <-timer.C:
		waited = true
	case <-ctx.Done():
	case <-ending:
	}
	if latest, seen := w.leave(at, v); seen {
		p = latest
	}
	return p, waited || settled(p)
}

// enter returns nil if nobody looks, or too many wait.
func (w *waitingRoom) enter(at watchedID) (*watch, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending == nil || w.count >= w.most {
		return nil, nil
	}
	v := w.watched[at]
	if v == nil {
		v = &watch{settled: make(chan struct{})}
		w.watched[at] = v
	}
	v.waiters++
	if w.count++; w.count == 1 {
		select {
		case w.wake <- struct{}{}:
		default: // it is awake
		}
	}
	return v, w.ending
}

func (w *waitingRoom) leave(at watchedID, v *watch) (latest payments.Payment, seen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count--
	if v.waiters--; v.waiters == 0 && w.watched[at] == v {
		delete(w.watched, at)
	}
	return v.latest, v.seen
}

func (w *waitingRoom) run(ctx context.Context) error {
	w.mu.Lock()
	if w.ran {
		w.mu.Unlock()
		return errors.New("ingress: Run was called before")
	}
	w.ran, w.ending = true, ctx.Done()
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ending = nil
	}()
	rest := time.NewTimer(lookEvery)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
		for pause := lookEvery; w.anybody(); {
			rest.Reset(pause)
			select {
			case <-ctx.Done():
				return nil
			case <-rest.C:
			}
			begun := w.clock.Now()
			w.look(ctx)
			pause = max(lookEvery, min(lookShare*w.clock.Now().Sub(begun), lookTimeout))
		}
	}
}

func (w *waitingRoom) anybody() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count > 0
}

// look reads all payments that are waited for. PostgreSQL away: they go on waiting.
func (w *waitingRoom) look(ctx context.Context) {
	tenants, ids := w.list()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for len(ids) > 0 {
		n := min(len(ids), lookMax)
		found, err := w.reader.FindMany(ctx, tenants[:n], ids[:n])
		if err != nil {
			return
		}
		w.tell(found)
		tenants, ids = tenants[n:], ids[n:]
	}
}

func (w *waitingRoom) list() (tenants []string, ids []payments.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.watched {
		tenants, ids = append(tenants, at.tenant), append(ids, at.id)
	}
	return tenants, ids
}

func (w *waitingRoom) tell(found []payments.Payment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range found {
		at := watchedID{p.TenantID, p.ID}
		v := w.watched[at]
		if v == nil {
			continue
		}
		if v.latest, v.seen = p, true; settled(p) {
			delete(w.watched, at)
			close(v.settled)
		}
	}
}
