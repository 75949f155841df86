package stripe

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

func anonymous(i int) payments.Payment {
	return inDoubt(func(p *payments.Payment) { p.IdempotencyKey, p.Customer = fmt.Sprintf("order-%d", i), "" })
}

// waiting waits until so many have a seat in the next round.
func (g *Gateway) waiting(t *testing.T, n int) {
	t.Helper()
	g.board.waiting(t, n)
}

func (b *board) waiting(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		b.mu.Lock()
		seats := 0
		if b.next != nil {
			seats = len(b.next.seats)
		}
		b.mu.Unlock()
		if seats == n {
			return
		}
	}
	t.Fatalf("not %d look-ups wait", n)
}

// heldListing answers the first listing, which is empty, when it is freed, and later ones at once with every payment of the test.
func heldListing(n int) (answer answerer, free chan struct{}) {
	free = make(chan struct{})
	var items []string
	for i := range n {
		items = append(items, withID(intentJSON(anonymous(i), "succeeded"), fmt.Sprintf("pi_%d", i)))
	}
	var asked atomic.Int32
	return func(_ int, c net.Conn, r request) bool {
		if r.URL.Path == eventsPath {
			io.WriteString(c, reply(200, listJSON(false)))
		} else if asked.Add(1) == 1 {
			<-free
			io.WriteString(c, reply(200, listJSON(false)))
		} else {
			io.WriteString(c, reply(200, listJSON(false, items...)))
		}
		return false
	}, free
}

// After a worker was killed everything that it had in flight is looked up at once: all of it in one listing.
func TestLooksShareTheNextListing(t *testing.T) {
	t.Parallel()
	const n = 600
	answer, free := heldListing(n)
	s := newRawServer(t, answer)
	g := gatewayTo(t, options(s.url))
	var wg sync.WaitGroup
	var extended atomic.Int32
	look := func(i int) payments.Observation {
		return g.Look(context.Background(), anonymous(i), func() error { extended.Add(1); return nil })
	}
	wg.Go(func() {
		if o := look(0); o.Kind != payments.ObservedRecords || len(o.Found) != 0 {
			t.Errorf("the first: %+v", o)
		}
	})
	<-s.arrived
	for i := 1; i < n; i++ {
		wg.Go(func() {
			if o := look(i); o.Kind != payments.ObservedRecords || len(o.Found) != 1 || o.Found[0].ID != fmt.Sprintf("pi_%d", i) {
				t.Errorf("look-up %d shows %+v", i, o)
			}
		})
	}
	g.waiting(t, n-1)
	close(free)
	wg.Wait()
	if s.gets.Load() != 2 || extended.Load() != n {
		t.Errorf("%d listings, %d extensions", s.gets.Load(), extended.Load())
	}
	if o := look(3); o.Kind != payments.ObservedRecords || len(o.Found) != 1 || g.board.busy || g.board.next != nil {
		t.Errorf("afterwards: %+v", o)
	}
}

// One whose ticket is lost, and one that leaves, hold nobody up.
func TestSharedLookWithoutSomeOfThem(t *testing.T) {
	t.Parallel()
	answer, free := heldListing(5)
	s := newRawServer(t, answer)
	g := gatewayTo(t, options(s.url))
	var wg sync.WaitGroup
	look := func(ctx context.Context, i int, progress func() error, want payments.ObservationKind, found int) {
		wg.Go(func() {
			if o := g.Look(ctx, anonymous(i), progress); o.Kind != want || len(o.Found) != found {
				t.Errorf("look-up %d shows %+v", i, o)
			}
		})
	}
	look(context.Background(), 0, nil, payments.ObservedRecords, 0)
	<-s.arrived
	ctx, cancel := context.WithCancel(context.Background())
	look(ctx, 1, nil, payments.ObservedNoRecords, 0)
	g.waiting(t, 1)
	look(context.Background(), 2, func() error { return errNotNow }, payments.ObservedNoRecords, 0)
	g.waiting(t, 2)
	look(context.Background(), 3, nil, payments.ObservedRecords, 1)
	g.waiting(t, 3)
	cancel()
	for !func() bool { // the one that would have been told first has left
		first := g.board.next.seats[0]
		first.mu.Lock()
		defer first.mu.Unlock()
		return first.left
	}() {
		runtime.Gosched()
	}
	close(free)
	wg.Wait()
	if s.gets.Load() != 2 || g.board.busy {
		t.Errorf("%d listings, busy %t", s.gets.Load(), g.board.busy)
	}
}

func TestWaitingLookExtendsItsTicket(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(reply(200, listJSON(false))))
	opts := options(s.url)
	opts.Timeout = time.Second
	g := gatewayTo(t, opts)
	started, extended := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		g.Look(context.Background(), anonymous(0), func() error { close(started); <-extended; return nil })
	})
	<-started
	var once sync.Once
	o := g.Look(context.Background(), anonymous(1), func() error { once.Do(func() { close(extended) }); return nil })
	wg.Wait()
	if o.Kind != payments.ObservedRecords {
		t.Errorf("%+v", o)
	}
}

// A waiting look-up ends with its ticket, and with nobody else waiting the board is free again.
func TestWaitingLookEndsWithItsTicket(t *testing.T) {
	t.Parallel()
	answer, free := heldListing(3)
	s := newRawServer(t, answer)
	opts := options(s.url)
	g := gatewayTo(t, opts)
	var wg sync.WaitGroup
	wg.Go(func() { g.Look(context.Background(), anonymous(0), nil) })
	<-s.arrived
	g.timeout = 20 * time.Millisecond // the first call has its own by now
	if o := g.Look(context.Background(), anonymous(1), func() error { return errNotNow }); o.Kind != payments.ObservedNoRecords {
		t.Errorf("%+v", o)
	}
	g.timeout = opts.Timeout
	close(free)
	wg.Wait()
	if o := g.Look(context.Background(), anonymous(2), nil); o.Kind != payments.ObservedRecords || len(o.Found) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestRoundsKeepToTheirWindow(t *testing.T) {
	t.Parallel()
	window := func(from, to time.Duration) listing { return listing{from: sentAt.Add(from), to: sentAt.Add(to)} }
	r := &round{}
	steps := []struct {
		l     listing
		joins bool
	}{
		{window(0, time.Hour), true}, {window(20*time.Minute, 80*time.Minute), true}, {window(-10*time.Minute, 50*time.Minute), true},
		{window(-11*time.Minute, 49*time.Minute), false}, {window(20*time.Hour, 21*time.Hour), false}, {window(-20*time.Hour, -19*time.Hour), false},
		{window(0, 20*time.Hour), false}, {listing{}, false}, {window(5*time.Minute, 6*time.Minute), false}, {window(0, time.Hour), true},
	}
	for i, s := range steps {
		if got := r.join(s.l, &seat{}); got != s.joins {
			t.Errorf("step %d: joins %t", i, got)
		}
	}
	if !r.l.from.Equal(sentAt.Add(-10*time.Minute)) || !r.l.to.Equal(sentAt.Add(80*time.Minute)) || len(r.seats) != 4 {
		t.Errorf("%+v", r)
	}
	if open := (&round{}); !open.join(listing{}, &seat{}) || open.join(window(0, time.Hour), &seat{}) {
		t.Error("a listing without a window is read alone")
	}
}

func TestDistantLookIsReadAlone(t *testing.T) {
	t.Parallel()
	answer, free := heldListing(3)
	s := newRawServer(t, answer)
	g := gatewayTo(t, options(s.url))
	var wg sync.WaitGroup
	wg.Go(func() { g.Look(context.Background(), anonymous(0), nil) })
	<-s.arrived
	wg.Go(func() { g.Look(context.Background(), anonymous(1), nil) })
	g.waiting(t, 1)
	far := anonymous(2)
	far.FirstSubmitAt, far.LastSubmitAt = sentAt.Add(-20*time.Hour), sentAt.Add(-20*time.Hour)
	if o := g.Look(context.Background(), far, nil); o.Kind != payments.ObservedRecords || len(o.Found) != 1 {
		t.Errorf("%+v", o)
	}
	close(free)
	wg.Wait()
}

// Many look-ups, some of which are cut short: each that ends with records has found exactly its own.
func TestSimulatorSharedLooks(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	var wg sync.WaitGroup
	for i := range 60 {
		p := s.payment(func(p *payments.Payment) { p.IdempotencyKey, p.Customer = fmt.Sprintf("order-%d", i), "" })
		wg.Go(func() {
			sent := s.Submit(context.Background(), submission(p))
			for n := range 5 {
				ctx, cancel := context.WithCancel(context.Background())
				progress := func() error { return nil }
				switch (i + n) % 4 {
				case 0:
					time.AfterFunc(time.Duration(i*50)*time.Microsecond, cancel)
				case 1:
					progress = func() error { return errNotNow }
				}
				o := s.Look(ctx, p, progress)
				cancel()
				if o.Kind == payments.ObservedRecords && (len(o.Found) != 1 || o.Found[0].ID != sent.Object.ID) {
					t.Errorf("found %+v", o.Found)
				}
				// Another's context may have ended the listing; alone with its own it must not have failed otherwise.
				if o.Kind != payments.ObservedRecords && !strings.Contains(o.Detail, "ended") {
					t.Errorf("%s: %s", o.Kind, o.Detail)
				}
			}
		})
	}
	wg.Wait()
	if s.board.busy || s.board.next != nil {
		t.Error("the board is not free")
	}
}

// Who is told to read the listing at the very moment of leaving has either read it or told somebody else.
func TestToldWhileLeaving(t *testing.T) {
	t.Parallel()
	g := gatewayTo(t, options("http://127.0.0.1:1"))
	led, left := 0, 0
	for n := 0; n < 1000 && (led == 0 || left == 0); n++ {
		me, other := newSeat(anonymous(0), nil), newSeat(anonymous(1), nil)
		r := &round{seats: []*seat{me, other}}
		g.board.busy = true
		if !me.tell(r) {
			t.Fatal("the seat is taken")
		}
		g.await(canceled(), &g.board, anonymous(0), me)
		select {
		case <-other.done:
			led++
		case <-other.turn:
			left++
		default:
			t.Fatal("the round is lost")
		}
	}
	if led == 0 || left == 0 {
		t.Errorf("read %d times, left %d times", led, left)
	}
}
