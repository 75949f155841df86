package world

import (
	"math/rand/v2"
	"sync"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// Flakiness cuts connections at random: one in so many chunks that a client sends is lost with its connection, and as many arrive while their
// answer is lost, so that a commit or a publish has happened and nobody knows.
type Flakiness struct {
	oneIn int

	mu     sync.Mutex
	random *rand.Rand
	cuts   int
}

// NewFlakiness cuts twice in oneIn chunks, as the seed says.
func NewFlakiness(seed uint64, oneIn int) *Flakiness {
	return &Flakiness{oneIn: oneIn, random: rand.New(rand.NewPCG(seed, 7))}
}

// Hook is asked about each chunk that a client sends.
func (f *Flakiness) Hook([]byte) devstacktest.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.random.IntN(f.oneIn) {
	case 0:
		f.cuts++
		return devstacktest.Cut
	case 1:
		f.cuts++
		return devstacktest.ForwardThenCut
	default:
		return devstacktest.Forward
	}
}

// Cuts is how many connections it has cut.
func (f *Flakiness) Cuts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cuts
}
