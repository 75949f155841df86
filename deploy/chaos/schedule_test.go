package chaos_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
)

func scene() chaos.Scene {
	s := chaos.Scene{
		Workers: []string{"w-1", "w-2", "w-3"}, Doors: []string{"d-1", "d-2"}, Nodes: []string{"n-1", "n-2", "n-3"},
		Postgres: "postgres", Stripe: "stripe", Faults: []string{"reset_before", "html_502"}, Lease: 5 * time.Second,
		Pausable: []string{"everything", "tenant"}, Letters: "dead letters",
	}
	for _, w := range s.Workers {
		s.Links = append(s.Links, w+">postgres", w+">nats")
	}
	return s
}

// What happens is a function of the seed, the duration and the scene, and another one for another seed.
func TestScheduleIsItsSeeds(t *testing.T) {
	t.Parallel()
	seen := map[string]uint64{}
	for seed := range uint64(50) {
		one, two := chaos.Schedule(seed, time.Minute, scene()), chaos.Schedule(seed, time.Minute, scene())
		if !reflect.DeepEqual(one, two) {
			t.Fatalf("seed %d gives two schedules", seed)
		}
		if other, again := seen[fmt.Sprint(one)]; again {
			t.Errorf("seeds %d and %d give the same", seed, other)
		}
		seen[fmt.Sprint(one)] = seed
	}
}

// nodesDown is how many NATS nodes an event takes away at once.
func nodesDown(e chaos.Event) int {
	switch {
	case e.Kind == chaos.Quorum:
		return 2
	case strings.HasPrefix(e.Target, "n-"):
		return 1
	}
	return 0
}

// Nothing lasts beyond the duration, no target is hit by two events at once, and NATS loses its majority to Quorum alone.
func TestScheduleLeavesAWayOut(t *testing.T) {
	t.Parallel()
	kinds := map[chaos.Kind]int{}
	for seed := range uint64(200) {
		const duration = time.Minute
		events := chaos.Schedule(seed, duration, scene())
		if len(events) < 30 || len(events) > 120 {
			t.Errorf("seed %d: %d events in a minute", seed, len(events))
		}
		if !slices.IsSortedFunc(events, func(a, b chaos.Event) int { return int(a.At - b.At) }) {
			t.Errorf("seed %d: not in the order of time", seed)
		}
		for i, e := range events {
			kinds[e.Kind]++
			if e.At <= 0 || e.For < 0 || e.At+e.For > duration {
				t.Errorf("seed %d: %s is not within %s", seed, e, duration)
			}
			for _, later := range events[i+1:] {
				if later.At >= e.At+e.For {
					continue
				}
				if later.Target == e.Target {
					t.Errorf("seed %d: %s is hit again by %s", seed, e, later)
				}
				if down := nodesDown(e); down > 0 && nodesDown(later) > 0 {
					t.Errorf("seed %d: %s and %s take NATS away together", seed, e, later)
				}
			}
			if e.Kind == chaos.Stop && strings.HasPrefix(e.Target, "w-") && e.For > 5*time.Second {
				kinds["past the lease"]++
			}
		}
	}
	for _, k := range []chaos.Kind{
		chaos.Kill, chaos.Terminate, chaos.Stop, chaos.Quorum, chaos.Everyone, chaos.Cut, chaos.Stall, chaos.Slow, chaos.Snip, chaos.Half, chaos.Fault, chaos.Latency,
		chaos.Sessions, "past the lease", chaos.Pause, chaos.Replay,
	} {
		if kinds[k] < 50 {
			t.Errorf("%s happens %d times in 200 minutes", k, kinds[k])
		}
	}
}

func TestEventsReadAsOneLine(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]chaos.Event{
		"+  1.50s  kill      w-1                for 0.2 s":                     {At: 1500 * time.Millisecond, Kind: chaos.Kill, Target: "w-1", For: 200 * time.Millisecond},
		"+ 12.00s  fault     stripe             for 1.0 s: html_502, 7 of 100": {At: 12 * time.Second, Kind: chaos.Fault, Target: "stripe", For: time.Second, N: 7, What: "html_502"},
		"+  0.00s  slow      w-1>nats           for 1.0 s, 20 ms":              {Kind: chaos.Slow, Target: "w-1>nats", For: time.Second, N: 20},
		"+  0.00s  half      w-1>nats           for 1.0 s, 9 bytes":            {Kind: chaos.Half, Target: "w-1>nats", For: time.Second, N: 9},
		"+  0.00s  pause     everything         for 1.0 s, resumed":            {Kind: chaos.Pause, Target: "everything", For: time.Second, What: chaos.Resumed},
		strings.TrimRight("+  0.00s  sessions  postgres", " "):                 {Kind: chaos.Sessions, Target: "postgres"},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
