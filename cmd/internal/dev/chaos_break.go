package dev

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// breakThings lets each event happen at its time, and returns when all are over.
func (c *chaosRun) breakThings(ctx context.Context, events []chaos.Event, began time.Time) error {
	var happening sync.WaitGroup
	defer happening.Wait()
	for _, e := range events {
		if !pause(ctx, time.Until(began.Add(e.At))) {
			return ctx.Err()
		}
		c.say("%s", e)
		happening.Go(func() {
			if err := c.happen(ctx, e); err != nil && ctx.Err() == nil {
				c.book.find("%s: %v", e, err)
			}
		})
	}
	if !pause(ctx, time.Until(began.Add(c.o.Duration))) {
		return ctx.Err()
	}
	return nil
}

// happen lets one event happen, and ends it.
func (c *chaosRun) happen(ctx context.Context, e chaos.Event) error {
	switch e.Kind {
	case chaos.Kill, chaos.Quorum, chaos.Everyone:
		if e.Target == namePostgres {
			return c.killPostgres(ctx, e.For)
		}
		return c.killFor(ctx, c.victims(e), e.For)
	case chaos.Terminate:
		c.processes[e.Target].Terminate(endWithin)
		return c.startAgain(ctx, []string{e.Target})
	case chaos.Stop:
		if err := c.processes[e.Target].Stop(); err != nil {
			return nil // it is down by another event's doing
		}
		pause(ctx, e.For)
		c.processes[e.Target].Continue()
		return nil
	case chaos.Fault:
		rule := stripesim.Rule{Fault: e.What, Rate: float64(e.N) / 100} // of any POST, so of cancels, too
		return c.sim.during(ctx, e.For, c.sim.setRule, &rule)
	case chaos.Latency:
		return c.sim.during(ctx, e.For, func(ctx context.Context, rule *stripesim.Rule) error {
			if rule == nil {
				return c.sim.setLatency(ctx, 0)
			}
			return c.sim.setLatency(ctx, e.N)
		}, &stripesim.Rule{})
	case chaos.Sessions:
		return c.endSessions(ctx)
	case chaos.Pause:
		return c.holdBack(ctx, e)
	case chaos.Replay:
		return c.replayAll(ctx, e)
	}
	return c.breakLink(ctx, e)
}

// victims are the processes that an event kills.
func (c *chaosRun) victims(e chaos.Event) []string {
	switch e.Kind {
	case chaos.Quorum:
		spared := int(e.For.Milliseconds()) % len(chaosNodes)
		return slices.Delete(slices.Clone(chaosNodes), spared, spared+1)
	case chaos.Everyone:
		return chaosWorkers
	}
	return []string{e.Target}
}

func (c *chaosRun) killFor(ctx context.Context, names []string, d time.Duration) error {
	for _, name := range names {
		c.processes[name].Kill()
	}
	pause(ctx, d)
	return c.startAgain(ctx, names)
}

// startAgain starts processes without waiting for them to be ready: what they need may be broken for as long as the faults last.
func (c *chaosRun) startAgain(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := c.processes[name].Launch(); err != nil {
			return err
		}
	}
	if !slices.Contains(names, nameStripe) {
		return nil
	}
	life := c.processes[nameStripe].Exited()
	if err := c.startAll(ctx, names); errors.Is(err, chaos.ErrEnded) {
		return nil // by another event, which starts it again
	} else if err != nil {
		return err
	}
	return c.sim.applyTo(ctx, life) // it has forgotten what it was told to do wrong
}

// killPostgres kills PostgreSQL and starts it again; it comes up by replaying its log.
func (c *chaosRun) killPostgres(ctx context.Context, d time.Duration) error {
	if err := c.postgres.Kill(ctx); err != nil {
		return err
	}
	pause(ctx, d)
	return c.postgres.Restart(context.WithoutCancel(ctx))
}

// endSessions is what an operator does who has enough of them.
func (c *chaosRun) endSessions(ctx context.Context) error {
	connection, err := c.connect(ctx)
	if err != nil {
		return nil // PostgreSQL is down by another event's doing
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	_, _ = connection.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'oncepay' AND pid <> pg_backend_pid()")
	return nil
}

// commitName is the name of the prepared statement by which a transaction is committed, as it stands in the message that runs it.
var commitName = func() []byte {
	sum := sha256.Sum256([]byte("commit"))
	return []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
}()

// lastWords are what a client says when it asks for what matters: its answer is worth cutting.
func lastWords(link string) []byte {
	switch {
	case strings.HasSuffix(link, toPostgres):
		return commitName
	case strings.HasSuffix(link, toNATS):
		return []byte("PUB payments.")
	case strings.HasSuffix(link, toStripe):
		return []byte("POST /v1/payment_intents ")
	}
	return []byte("POST /v1/")
}

func (c *chaosRun) breakLink(ctx context.Context, e chaos.Event) error {
	list := c.links[e.Target]
	if len(list) == 0 {
		return fmt.Errorf("there is no %s", e.Target)
	}
	for _, l := range list {
		switch e.Kind {
		case chaos.Cut:
			l.Cut()
		case chaos.Stall:
			l.Stall()
		case chaos.Slow:
			l.Slow(time.Duration(e.N) * time.Millisecond)
		case chaos.Snip:
			l.Snip(lastWords(e.Target))
		case chaos.Half:
			l.CutAfter(e.N)
		}
	}
	pause(ctx, e.For)
	for _, l := range list {
		l.Heal()
	}
	return nil
}
