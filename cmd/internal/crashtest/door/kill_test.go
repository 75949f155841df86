package door

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

// kills is how often a process is killed at random points.
var kills = max(20/world.Scale, 8)

// posts are the requests of many clients that go on until they are told to stop: new ones, and old ones again.
type posts struct {
	*world.Caller
	seed uint64
	at   func() string

	mu       sync.Mutex
	made     []world.Parcel
	finished bool
	answers  int
	due      int           // the count of answers at which reached is closed
	reached  chan struct{} // nil: nobody waits
	replays  int
	unknown  int
}

// afterAnswers is closed once n more requests have been answered.
func (p *posts) afterAnswers(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due, p.reached = p.answers+n, make(chan struct{})
	return p.reached
}

func (p *posts) answered(t world.Tries) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unknown += t.Unknown
	if t.Replayed {
		p.replays++
	}
	if p.answers++; p.reached != nil && p.answers == p.due {
		close(p.reached)
		p.reached = nil
	}
}

// next is a new request, or in one of four cases an old one; false when it is over.
func (p *posts) next(random *rand.Rand) (world.Parcel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.made)
	switch {
	case p.finished:
		return world.Parcel{}, false
	case n > 0 && random.IntN(4) == 0:
		return p.made[random.IntN(n)], true
	case n%4 == 3:
		p.made = append(p.made, p.BatchOf(fmt.Sprintf("batch-%d", n), 2+n%9))
	default:
		p.made = append(p.made, p.Single(fmt.Sprintf("order-%d", n)))
	}
	return p.made[n], true
}

// run is the clients' whole life.
func (p *posts) run(clients int) (wait func()) {
	var group sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(p.seed, uint64(i)))
		group.Go(func() {
			for {
				next, more := p.next(random)
				if !more || p.Failed() {
					return
				}
				p.answered(p.Insist(next, "", p.at))
			}
		})
	}
	return group.Wait
}

func (p *posts) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
}

// TestDoorKilled ends a process of the API with its relay with SIGKILL at random points, again and again, while clients post payments and
// batches, new ones and old ones. In the end every one of them is paid once, and every batch told once.
func TestDoorKilled(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.NewOf(t, world.OutageTimes)
	watchCompletions(w)
	straggle(w, 5)
	w.Spawn(world.Script{}, "ONCEPAY_ROLES=worker")
	seed := world.SeedOf(t)
	random := rand.New(rand.NewPCG(seed, 1000))
	door := &world.House{}
	p := &posts{Caller: w.NewCaller(), seed: seed, at: door.At}
	api := w.SpawnDoor("ingress", "relay")
	door.Set(api.Address())
	wait := p.run(12)
	for range kills {
		n := 1 + random.IntN(24)
		select {
		case <-p.afterAnswers(n):
		case <-time.After(world.RestLimit):
			t.Error("nothing is answered any more")
		}
		kill(api)
		api = w.SpawnDoor("ingress", "relay")
		door.Set(api.Address())
	}
	p.finish()
	wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unknown == 0 || p.replays == 0 {
		t.Errorf("%d requests broke and %d were repeats: the case shows little", p.unknown, p.replays)
	}
	batches := 0
	for _, made := range p.made {
		if made.Batch() {
			batches++
		}
	}
	t.Logf("%d requests, %d answers, %d broken connections, %d repeats that were told so", len(p.made), p.answers, p.unknown, p.replays)
	mustPay(w, 0, p.made...)
	mustHaveWitnessed(w, batches)
}

// kill ends the process as nothing else does, and waits for its end.
func kill(p *world.Process) {
	p.World.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}
