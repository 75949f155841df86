package world

import (
	"flag"
	"math/rand/v2"
	"testing"
)

// givenSeed replays a run.
var givenSeed = flag.Uint64("seed", 0, "seed of the tests that do things at random; 0: a new one each time")

// SeedOf is a seed of its own for each run, which the log tells.
func SeedOf(t *testing.T) uint64 {
	t.Helper()
	seed := *givenSeed
	if seed == 0 {
		seed = rand.Uint64() | 1
	}
	t.Logf("replay: -run '^%s$' -seed %d", t.Name(), seed)
	return seed
}
