package dev

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
)

// Chaos breaks real processes and their connections while producers send, and proves that each payment was charged once. It returns an error only
// when it could not run; proof tells whether it holds.
func Chaos(ctx context.Context, o ChaosOptions, stderr *os.File) (proof *ChaosProof, err error) {
	began := time.Now()
	c := &chaosRun{
		o: o, book: newBook(), logs: map[string]*os.File{}, processes: map[string]*chaos.Process{}, links: map[string][]*chaos.Link{}, ports: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: chaosInFlight}},
		say: func(format string, args ...any) {
			fmt.Fprintf(stderr, "%6.2fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		},
	}
	defer func() {
		if err == nil && !proof.Holds || err != nil && ctx.Err() == nil {
			c.keepLogs()
		}
		c.close()
	}()
	c.say("seed %d; the same again: %s", o.Seed, o.command())
	c.say("starting three NATS servers (synced, three replicas), PostgreSQL, the simulator, %d workers, %d APIs ...", len(chaosWorkers), len(chaosDoors))
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	subjects, _ := c.settings.Streams()
	if c.work, err = newChaosWork(o.Seed, max(1, int(o.Duration.Seconds()*float64(o.Rate))), o.Duration, subjects); err != nil {
		return nil, err
	}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	c.say("checking Stripe's ledger, payments, dead letters and events ...")
	return c.prove(ctx)
}

// keepLogs moves the logs to where they outlive the run.
func (c *chaosRun) keepLogs() {
	kept, err := os.MkdirTemp("", fmt.Sprintf("oncepay-chaos-%d-logs-", c.o.Seed))
	if err == nil {
		err = os.Rename(filepath.Join(c.dir, "logs"), filepath.Join(kept, "logs"))
	}
	if err == nil {
		c.say("the processes' logs are in %s", kept)
	}
}

// run breaks things while producers send, then heals everything and waits for rest.
func (c *chaosRun) run(ctx context.Context) error {
	events := c.o.schedule()
	c.say("breaking %d things within %s while producers send %d payments", len(events), c.o.Duration, len(c.work.intents))
	began := time.Now()
	producing, enough := context.WithCancel(ctx)
	defer enough()
	produced := make(chan struct{})
	go func() { c.produceAll(producing, began); close(produced) }()
	defer func() { enough(); <-produced }()
	if err := c.breakThings(ctx, events, began); err != nil {
		return err
	}
	if err := c.heal(ctx); err != nil {
		return err
	}
	healed := time.Now()
	c.took = healed.Sub(began)
	c.say("all is healed; waiting for rest, as long as less and less is left to do")
	if err := c.awaitEnd(ctx, produced); err != nil {
		return err
	}
	enough()
	<-produced
	err := c.awaitRest(ctx, c.atWork) // batches with payments that were given up are not complete yet
	c.rested = time.Since(healed)
	if err != nil {
		return err
	}
	if len(c.book.findings) > 0 {
		return nil // it does not hold anyway
	}
	if err := c.lastReplay(ctx); err != nil {
		return err
	}
	return c.awaitRest(ctx, c.left)
}

// heal lets everything go on.
func (c *chaosRun) heal(ctx context.Context) error {
	for _, list := range c.links {
		for _, l := range list {
			l.Heal()
		}
	}
	for _, p := range c.processes {
		p.Continue()
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	if c.postgres.Pid() == 0 {
		if err := c.postgres.Restart(ctx); err != nil {
			return err
		}
	}
	err := c.startAll(ctx, slices.Concat(chaosNodes, []string{nameStripe}, chaosWorkers, chaosDoors))
	return errors.Join(err, c.sim.heal(ctx), c.resumeAll(ctx), c.goOnWithReplays(ctx))
}
