package door

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

// The ambiguities that keys exist for. Whoever does not know what has become of a request repeats it under its key, and there is one payment,
// one charge, one id and one sequence of events; and of a batch, one completion.

// ambiguous is a world with two processes, each with all roles, and a client.
type ambiguous struct {
	*world.Caller
	first, second string
	random        *rand.Rand
}

func newAmbiguous(t *testing.T) *ambiguous {
	t.Helper()
	w := world.NewOf(t, world.Unhurried)
	watchCompletions(w)
	first, second := w.SpawnDoor(), w.SpawnDoor()
	return &ambiguous{w.NewCaller(), first.Address(), second.Address(), rand.New(rand.NewPCG(world.SeedOf(t), 0))}
}

// inBoth runs a test for payments and for batches.
func inBoth(t *testing.T, payments, batches int, do func(t *testing.T, a *ambiguous, parcels []world.Parcel)) {
	t.Parallel()
	t.Run("payments", func(t *testing.T) {
		t.Parallel()
		world.TakeTurn(t)
		a := newAmbiguous(t)
		var list []world.Parcel
		for i := range payments {
			list = append(list, a.Single(fmt.Sprint("order-", i)))
		}
		do(t, a, list)
		a.mustBeOneEach(list)
	})
	t.Run("batches", func(t *testing.T) {
		t.Parallel()
		world.TakeTurn(t)
		a := newAmbiguous(t)
		var list []world.Parcel
		for i := range batches {
			list = append(list, a.BatchOf(fmt.Sprint("batch-", i), 1+i%7))
		}
		do(t, a, list)
		a.mustBeOneEach(list)
	})
}

// mustBeOneEach wants each request to be there once, whoever asks about it and where.
func (a *ambiguous) mustBeOneEach(parcels []world.Parcel) {
	a.Helper()
	for i, p := range parcels {
		addr := a.first
		if i%2 == 0 {
			addr = a.second
		}
		if t := a.Insist(p, "", func() string { return addr }); !t.Replayed {
			a.Errorf("%s was new at its last repeat", p.Key)
		}
	}
	account := mustPay(a.Caller.World, 0, parcels...)
	batches := 0
	for _, p := range parcels {
		if p.Batch() {
			batches++
		}
	}
	mustHaveWitnessed(a.Caller.World, batches)
	events := map[string]bool{}
	for _, e := range account.Events {
		events[e.ID] = true
	}
	if n := len(account.Charges); len(events) != n || account.Summary.Posts != n {
		a.Errorf("%d different events and %d requests at Stripe for %d charges", len(events), account.Summary.Posts, n)
	}
}

// patience is that of one client with one request.
type patience struct {
	once      sync.Once
	committed chan struct{} // closed when the answer is on its way
	gone      chan struct{} // closed when nobody waits for it any more
}

func (p *patience) hold([]byte) int {
	p.once.Do(func() { close(p.committed) })
	<-p.gone
	return 0
}

// TestRequestTimedOut: the client gives up before it has its answer. In one of two cases the request is committed by then, in the others it may
// or may not be. The client repeats it, at another process, and knows.
func TestRequestTimedOut(t *testing.T) {
	inBoth(t, 40, 20, func(t *testing.T, a *ambiguous, parcels []world.Parcel) {
		for i, p := range parcels {
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			one := &patience{committed: make(chan struct{}), gone: make(chan struct{})}
			wire := wireTo(t, a.first, one.hold)
			a.ExpectParcel(p)
			ended := make(chan error, 1)
			go func() {
				_, err := a.Send(ctx, wire.addr(), p, "")
				ended <- err
			}()
			committed := i%2 == 0
			if committed {
				select {
				case <-one.committed:
				case <-time.After(world.RestLimit):
					t.Errorf("%s: no answer came", p.Key)
				}
			} else {
				world.Await(ctx, time.Duration(a.random.Int64N(int64(8*time.Millisecond)))) // somewhere between its first byte and its answer
			}
			giveUp()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s was answered: %v", p.Key, err)
			}
			close(one.gone)
			got := a.Insist(p, "", func() string { return a.second })
			if committed && !got.Replayed {
				t.Errorf("%s was answered before, and is new", p.Key)
			}
		}
	})
}

// TestResponseLost: the answer is cut off on its way, at any byte. The client repeats, and is answered as if it were the first time.
func TestResponseLost(t *testing.T) {
	inBoth(t, 60, 30, func(t *testing.T, a *ambiguous, parcels []world.Parcel) {
		var losses atomic.Int64
		var mu sync.Mutex
		wire := wireTo(t, a.first, func(answer []byte) int {
			mu.Lock()
			defer mu.Unlock()
			if losses.Load() <= 0 {
				return -1
			}
			losses.Add(-1)
			return a.random.IntN(len(answer)) // never all of it
		})
		for i, p := range parcels {
			lost := 1 + i%3
			losses.Store(int64(lost))
			got := a.Insist(p, "", wire.addr)
			if got.Unknown < lost || !got.Replayed {
				t.Errorf("%s: %d answers were lost, want %d; a repeat: %t", p.Key, got.Unknown, lost, got.Replayed)
			}
		}
	})
}

// TestClientReplaysItsQueue: a client crashes with its queue half sent and its answers unread. It starts again and replays the whole queue, in
// another order and partly in another layout; and once more.
func TestClientReplaysItsQueue(t *testing.T) {
	inBoth(t, 150, 60, func(t *testing.T, a *ambiguous, parcels []world.Parcel) {
		ctx, crash := context.WithCancel(t.Context())
		defer crash()
		var group sync.WaitGroup
		var answers atomic.Int64
		addrs := []string{a.first, a.second}
		next := make(chan world.Parcel)
		for i := range 8 {
			group.Go(func() {
				for p := range next {
					a.ExpectParcel(p)
					if answer, err := a.Send(ctx, addrs[i%2], p, ""); err == nil {
						a.Check(p, answer)
					}
					if answers.Add(1) == int64(len(parcels)/2) {
						crash() // with all that is on its way
					}
				}
			})
		}
		for _, p := range parcels {
			next <- p
		}
		close(next)
		group.Wait()
		a.Client.CloseIdleConnections()
		for replay := range 2 {
			again := a.CallerWith(a.Secret)
			queue := append([]world.Parcel(nil), parcels...)
			a.random.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
			repeats := 0
			for i, p := range queue {
				if i%2 == 0 {
					p = p.Relaid(a.World)
				}
				if again.Insist(p, "", func() string { return addrs[(i+replay)%2] }).Replayed {
					repeats++
				}
			}
			if repeats == 0 || replay == 1 && repeats != len(parcels) {
				t.Errorf("replay %d: %d of %d were repeats", replay, repeats, len(parcels))
			}
		}
	})
}

// TestBalancerDeliversTwice: the same request arrives at two processes at once, hundreds of times. One of them is the first.
func TestBalancerDeliversTwice(t *testing.T) {
	inBoth(t, 400/world.Scale, 150/world.Scale, func(t *testing.T, a *ambiguous, parcels []world.Parcel) {
		work := make(chan world.Parcel)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for p := range work {
					a.twice(p)
				}
			})
		}
		for _, p := range parcels {
			work <- p
		}
		close(work)
		group.Wait()
	})
}

// twice delivers a request to both processes at once.
func (a *ambiguous) twice(p world.Parcel) {
	start := make(chan struct{})
	var got [2]world.Tries
	var both sync.WaitGroup
	for i, addr := range []string{a.first, a.second} {
		both.Go(func() {
			<-start
			got[i] = a.Insist(p, "", func() string { return addr })
		})
	}
	close(start)
	both.Wait()
	if got[0].Replayed == got[1].Replayed || got[0].Unknown+got[1].Unknown+got[0].Refused+got[1].Refused > 0 {
		a.Errorf("%s: both deliveries were new, or none, or one was not answered: %+v", p.Key, got)
	}
	if got[0].Document.ID != got[1].Document.ID {
		a.Errorf("%s is %s and %s", p.Key, got[0].Document.ID, got[1].Document.ID)
	}
}
