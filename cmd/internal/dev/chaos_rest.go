package dev

import (
	"context"
	"math"
	"time"
)

// headway tells a run that works off its backlog, however long that takes, from one that stands still.
type headway struct {
	patience time.Duration
	least    int64     // that was ever left to do
	since    time.Time // nothing less has been
}

func newHeadway(now time.Time, patience time.Duration) *headway {
	return &headway{patience: patience, least: math.MaxInt64, since: now}
}

// note takes what is left to do, and reports whether it has not become less for too long.
func (h *headway) note(left int64, now time.Time) (stuck bool) {
	if left < h.least {
		h.least, h.since = left, now
	}
	return now.Sub(h.since) > h.patience
}

// sayEvery is how often a run that waits tells how far it is.
const sayEvery = 10 * time.Second

// awaitEnd waits for the producers: those who want a PubAck send until they have one. It takes as long as they get anything accepted.
func (c *chaosRun) awaitEnd(ctx context.Context, produced <-chan struct{}) error {
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for way := newHeadway(time.Now(), settleMax); ; {
		select {
		case <-produced:
			return nil
		case now := <-tick.C:
			left := c.work.deliveries() - c.delivered.Load()
			if way.note(left, now) {
				return nil // what they miss is theirs to say
			}
			c.say("producers have %d messages and requests left to send", left)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitRest returns once nothing is left to do, twice in a row. What is left when there was no headway for settleMax is a finding.
func (c *chaosRun) awaitRest(ctx context.Context, leftToDo func(context.Context) (string, error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	way, said := newHeadway(time.Now(), settleMax), time.Now()
	calm, last := 0, ""
	for calm < 2 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		left, err := leftToDo(ctx)
		if err != nil {
			left = err.Error()
		}
		if calm++; left != "" {
			calm, last = 0, left
		}
		if time.Since(said) < sayEvery {
			continue
		}
		said = time.Now()
		n, err := undone(ctx, c.js, c.store, c.settings)
		if err != nil {
			n = math.MaxInt64 // no headway
		} else {
			c.say("%d messages, payments and events are left to work on", n)
		}
		if way.note(n, said) {
			c.book.find("no headway for %s: %s", settleMax, last)
			return nil
		}
	}
	return nil
}
