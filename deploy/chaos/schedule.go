package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is what happens.
type Kind string

// What can happen. The groups are about processes, links, Stripe, PostgreSQL, and what operators do meanwhile.
const (
	Kill      Kind = "kill"      // SIGKILL; it is started again after For
	Terminate Kind = "terminate" // SIGTERM; it drains, and is started again at once
	Stop      Kind = "stop"      // SIGSTOP, and SIGCONT after For
	Quorum    Kind = "quorum"    // SIGKILL of all but one of the NATS nodes, started again after For
	Everyone  Kind = "everyone"  // SIGKILL of all workers at once

	Cut   Kind = "cut"   // connections are reset and refused for For
	Stall Kind = "stall" // no byte passes for For
	Slow  Kind = "slow"  // each chunk is late by N ms, for For
	Snip  Kind = "snip"  // the next commit, publish or charge arrives, and its answer does not; waited for for For
	Half  Kind = "half"  // the connection that brings the N-th byte of an answer is cut, waited for for For

	Fault   Kind = "fault"   // Stripe does What to N of 100 requests, for For
	Latency Kind = "latency" // Stripe takes N ms, for For

	Sessions Kind = "sessions" // PostgreSQL ends every session

	Pause  Kind = "pause"  // an operator holds back Target for For, and then resumes it, or lets it end by itself
	Replay Kind = "replay" // an operator replays all dead letters, N a second (0: as fast as can be), and does What to that
)

// Event is one thing that happens.
type Event struct {
	At     time.Duration `json:"at"` // since the beginning of the faults
	Kind   Kind          `json:"kind"`
	Target string        `json:"target"`
	For    time.Duration `json:"for"`
	N      int           `json:"n,omitempty"`
	What   string        `json:"what,omitempty"`
}

// String is the event as one line.
func (e Event) String() string {
	text := fmt.Sprintf("+%6.2fs  %-9s %-18s", e.At.Seconds(), e.Kind, e.Target)
	if e.For > 0 {
		text += fmt.Sprintf(" for %.1f s", e.For.Seconds())
	}
	switch e.Kind {
	case Slow, Latency:
		text += fmt.Sprintf(", %d ms", e.N)
	case Half:
		text += fmt.Sprintf(", %d bytes", e.N)
	case Fault:
		text += fmt.Sprintf(": %s, %d of 100", e.What, e.N)
	case Pause, Replay:
		text += ", " + e.What
	}
	return strings.TrimRight(text, " ")
}

// Scene is what a schedule can be about.
type Scene struct {
	Workers, Doors, Nodes []string      // processes
	Links                 []string      // "worker-1>postgres"
	Postgres, Stripe      string        // names of the two
	Faults                []string      // of Stripe
	Lease                 time.Duration // of a payment: who is stopped for longer has lost it
	Pausable              []string      // whom an operator may hold back
	Letters               string        // what an operator may replay
}

// What an operator does: how a pause ends, and what becomes of a replay that is under way.
const (
	Resumed  = "resumed"
	Elapsed  = "elapsed"
	Followed = "followed"
	Twice    = "twice" // another operator replays the same at the same time
	Halted   = "halted"
	Canceled = "canceled"
)

var (
	pauseEnds = []string{Resumed, Resumed, Elapsed}
	replays   = []string{Followed, Followed, Twice, Halted, Canceled}
)

// How dense a schedule is.
const (
	gapMin  = 150 * time.Millisecond // between two beginnings
	gapMean = 700 * time.Millisecond
	respite = 1500 * time.Millisecond // before the same target is hit again
)

// Schedule draws what happens within duration from the seed: the same seed gives the same schedule. Nothing lasts beyond the duration, no target is
// hit twice at once, and only Quorum takes the majority of the NATS nodes away.
func Schedule(seed uint64, duration time.Duration, s Scene) []Event {
	d := drawing{random: rand.New(rand.NewPCG(seed, 0xc4a05)), scene: s, duration: duration, busy: map[string]time.Duration{}}
	for at := gapMean; at < duration; {
		d.at = at
		if e, ok := d.event(); ok {
			d.events = append(d.events, e)
		}
		at += gapMin + time.Duration(d.random.ExpFloat64()*float64(gapMean-gapMin))
		at = at.Round(10 * time.Millisecond)
	}
	return d.events
}

// drawing is a schedule that is being made.
type drawing struct {
	random   *rand.Rand
	scene    Scene
	duration time.Duration
	at       time.Duration
	busy     map[string]time.Duration // until when a target is to be left alone
	events   []Event
}

// choice is a kind of event with its weight, the targets it may hit, and how long it lasts.
type choice struct {
	weight    int
	kind      Kind
	targets   []string
	least, to time.Duration
	groups    []string // are held with the target
}

// nodesHeld stands for all NATS nodes: one of them is down at a time.
const nodesHeld = "all nodes"

func (s Scene) choices() []choice {
	ms := time.Millisecond
	past := s.Lease + 500*ms
	return []choice{
		{12, Kill, s.Workers, 100 * ms, 2000 * ms, nil},
		{4, Kill, s.Doors, 100 * ms, 2000 * ms, nil},
		{7, Kill, s.Nodes, 100 * ms, 3000 * ms, []string{nodesHeld}},
		{4, Kill, []string{s.Postgres}, 0, 1000 * ms, nil},
		{4, Kill, []string{s.Stripe}, 100 * ms, 2000 * ms, nil},
		{6, Stop, s.Workers, past, past + 2500*ms, nil},
		{2, Stop, s.Workers, 200 * ms, 3000 * ms, nil},
		{3, Stop, s.Doors, 500 * ms, 6000 * ms, nil},
		{4, Stop, s.Nodes, 500 * ms, 6000 * ms, []string{nodesHeld}},
		{5, Terminate, slices.Concat(s.Workers, s.Doors), 0, 0, nil},
		{2, Quorum, []string{nodesHeld}, 200 * ms, 2000 * ms, nil},
		{2, Everyone, []string{"all workers"}, 100 * ms, 1000 * ms, s.Workers},
		{10, Cut, s.Links, 50 * ms, 2500 * ms, nil},
		{7, Stall, s.Links, 200 * ms, 6000 * ms, nil},
		{5, Slow, s.Links, 1000 * ms, 5000 * ms, nil},
		{14, Snip, s.Links, 2000 * ms, 2000 * ms, nil},
		{8, Half, s.Links, 2000 * ms, 2000 * ms, nil},
		{16, Fault, []string{"stripe: faults"}, 500 * ms, 4000 * ms, nil},
		{3, Latency, []string{"stripe: latency"}, 500 * ms, 4000 * ms, nil},
		{3, Sessions, []string{s.Postgres}, 0, 0, nil},
		{8, Pause, s.Pausable, 300 * ms, 3000 * ms, nil},
		{12, Replay, s.letters(), 200 * ms, 1500 * ms, nil},
	}
}

func (s Scene) letters() []string {
	if s.Letters == "" {
		return nil
	}
	return []string{s.Letters}
}

// event draws one; false when what was drawn is busy.
func (d *drawing) event() (Event, bool) {
	choices := d.scene.choices()
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := d.random.IntN(total)
	var c choice
	for _, c = range choices {
		if n -= c.weight; n < 0 {
			break
		}
	}
	if len(c.targets) == 0 {
		return Event{}, false
	}
	e := Event{At: d.at, Kind: c.kind, Target: c.targets[d.random.IntN(len(c.targets))], For: c.least}
	if c.to > c.least {
		e.For += time.Duration(d.random.Int64N(int64(c.to - c.least)))
	}
	e.For = e.For.Round(10 * time.Millisecond)
	d.numbers(&e)
	held := append([]string{e.Target}, c.groups...)
	if e.At+e.For > d.duration || slices.ContainsFunc(held, func(t string) bool { return d.busy[t] > d.at }) {
		return Event{}, false
	}
	for _, t := range held {
		d.busy[t] = d.at + e.For + respite
	}
	return e, true
}

// numbers draws what a kind needs beside its time.
func (d *drawing) numbers(e *Event) {
	switch e.Kind {
	case Slow:
		e.N = 20 + d.random.IntN(280)
	case Half:
		e.N = 1 + d.random.IntN(4000)
	case Latency:
		e.N = 50 + d.random.IntN(1500)
	case Fault:
		e.N = 5 + d.random.IntN(60)
		e.What = d.scene.Faults[d.random.IntN(len(d.scene.Faults))]
	case Pause:
		e.What = pauseEnds[d.random.IntN(len(pauseEnds))]
	case Replay:
		e.N = 10 * d.random.IntN(4)
		e.What = replays[d.random.IntN(len(replays))]
	}
}
