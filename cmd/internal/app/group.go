package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/oklog/run"
)

// group is a run.Group whose interrupts wait: they are called one after another in the order of Add, so the order of Add is the order of
// draining, and each actor has a budget of its own.
type group struct {
	run   run.Group
	log   *slog.Logger
	total time.Duration
	stage chan string    // names of the actors that are being stopped, in order
	exit  func(code int) // os.Exit
}

func newGroup(log *slog.Logger) *group {
	return &group{log: log, stage: make(chan string, 16), exit: os.Exit}
}

// add adds an actor: it runs until its context ends, and has so long to return. One that returns earlier ends the group, and that is an error.
func (g *group) add(name string, budget time.Duration, f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	g.total += budget
	g.run.Add(func() error {
		defer close(done)
		err := f(ctx)
		switch {
		case ctx.Err() == nil && err == nil:
			return fmt.Errorf("%s ended by itself", name)
		case ctx.Err() == nil:
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			g.log.Warn("a part stopped with an error", "part", name, "error", err)
		}
		return err
	}, func(error) {
		g.stage <- name
		cancel()
		timer := time.NewTimer(budget)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			g.log.Error("a part did not stop within its budget", "part", name, "budget", budget.String())
		}
	})
}

// serve runs all actors until ctx ends or one of them returns. The group itself would wait for ever for an actor that hangs, so a watchdog
// ends the process at the sum of the budgets, naming the part.
func (g *group) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.run.Add(func() error { <-ctx.Done(); return nil }, func(error) { cancel() })
	finished := make(chan struct{})
	defer close(finished)
	go g.watch(finished)
	return g.run.Run()
}

func (g *group) watch(finished chan struct{}) {
	var stopping string
	select {
	case <-finished:
		return
	case stopping = <-g.stage:
	}
	deadline := time.NewTimer(g.total + time.Second)
	defer deadline.Stop()
	for {
		select {
		case <-finished:
			return
		case stopping = <-g.stage:
		case <-deadline.C:
			g.log.Error("the process did not stop in time and ends now; tickets bring back what was in flight", "part", stopping)
			g.exit(1)
			return
		}
	}
}
