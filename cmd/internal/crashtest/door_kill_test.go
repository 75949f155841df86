package crashtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
)

// givenSeed replays a run.
var givenSeed = flag.Uint64("seed", 0, "seed of the tests that do things at random; 0: a new one each time")

// kills is how often a process is killed at random points.
var kills = max(20/scale, 8)

// posts are the requests of many clients that go on until they are told to stop: new ones, and old ones again.
type posts struct {
	*caller
	seed uint64
	at   func() string

	mu       sync.Mutex
	made     []parcel
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

func (p *posts) answered(t tries) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unknown += t.unknown
	if t.replayed {
		p.replays++
	}
	if p.answers++; p.reached != nil && p.answers == p.due {
		close(p.reached)
		p.reached = nil
	}
}

// next is a new request, or in one of four cases an old one; false when it is over.
func (p *posts) next(random *rand.Rand) (parcel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.made)
	switch {
	case p.finished:
		return parcel{}, false
	case n > 0 && random.IntN(4) == 0:
		return p.made[random.IntN(n)], true
	case n%4 == 3:
		p.made = append(p.made, p.batchOf(fmt.Sprintf("batch-%d", n), 2+n%9))
	default:
		p.made = append(p.made, p.single(fmt.Sprintf("order-%d", n)))
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
				p.answered(p.insist(next, "", p.at))
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
	takeTurn(t)
	w := newWorldOf(t, outageTimes)
	w.watchCompletions()
	w.straggle(5)
	w.spawn(script{}, "ONCEPAY_ROLES=worker")
	seed := seedOf(t)
	random := rand.New(rand.NewPCG(seed, 1000))
	door := &house{}
	p := &posts{caller: w.newCaller(), seed: seed, at: door.at}
	api := w.spawnDoor("ingress", "relay")
	door.set(api.address())
	wait := p.run(12)
	for range kills {
		n := 1 + random.IntN(24)
		select {
		case <-p.afterAnswers(n):
		case <-time.After(restLimit):
			t.Error("nothing is answered any more")
		}
		api.kill()
		api = w.spawnDoor("ingress", "relay")
		door.set(api.address())
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
		if made.batch() {
			batches++
		}
	}
	t.Logf("%d requests, %d answers, %d broken connections, %d repeats that were told so", len(p.made), p.answers, p.unknown, p.replays)
	w.mustPay(0, p.made...)
	w.mustHaveWitnessed(batches)
}

// kill ends the process as nothing else does, and waits for its end.
func (p *process) kill() {
	p.world.Helper()
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// seedOf is a seed of its own for each run, which the log tells.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := *givenSeed
	if seed == 0 {
		seed = rand.Uint64() | 1
	}
	t.Logf("replay: -run '^%s$' -seed %d", t.Name(), seed)
	return seed
}
