package dev

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// Whom an operator holds back.
const (
	holdAll     = "everything"
	holdTenant  = "tenant " + demoTenant
	holdAccount = "Stripe account"
)

// holdScopes are the pauses of these names.
var holdScopes = map[string]payments.Pause{
	holdAll: {}, holdTenant: {TenantID: demoTenant}, holdAccount: {AccountID: stripesim.DefaultAccount},
}

const operatorName = "chaos@oncepay-dev"

// span is a time in which nothing that came in it may have been sent: an operator had been told that it is held back.
type span struct{ from, to time.Time }

// operated is what operators did, as far as they know.
type operated struct {
	mu    sync.Mutex
	spans []span
}

func (o *operated) note(s span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans = append(o.spans, s)
}

// away reports whether an operator's command failed only because PostgreSQL was away: another event's doing. It may have been done all the same.
func away(err error) bool { return payments.ErrorCode(err) == payments.CodeUnavailable }

// insist repeats what an operator must have done in the end.
func insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !away(err) || !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// holdBack pauses, and resumes or lets the pause end.
func (c *chaosRun) holdBack(ctx context.Context, e chaos.Event) error {
	p := holdScopes[e.Target]
	p.Reason, p.Actor = "chaos", operatorName
	if e.What == chaos.Elapsed {
		p.Until = time.Now().Add(e.For)
	}
	_, err := c.store.Pause(ctx, p)
	held := span{from: time.Now()}
	switch {
	case payments.ErrorCode(err) == payments.CodeInvalid && e.What == chaos.Elapsed:
		return nil // PostgreSQL was so slow that it would be over already
	case err != nil && !away(err):
		return fmt.Errorf("pause: %w", err)
	}
	if e.What == chaos.Elapsed {
		held.to = p.Until
		pause(ctx, time.Until(p.Until))
	} else {
		pause(ctx, e.For)
		held.to = time.Now()
		if failed := c.resume(ctx, p); failed != nil {
			return failed
		}
	}
	if err == nil && held.to.After(held.from) {
		c.operated.note(held)
	}
	return nil
}

func (c *chaosRun) resume(ctx context.Context, p payments.Pause) error {
	err := insist(ctx, func() error {
		_, err := c.store.Resume(ctx, p, payments.Operation{Actor: operatorName, Reason: "chaos"})
		return err
	})
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// resumeAll ends whatever is paused still.
func (c *chaosRun) resumeAll(ctx context.Context) error {
	var list []payments.Pause
	err := insist(ctx, func() (err error) { list, err = c.store.Pauses(ctx); return err })
	for _, p := range list {
		if err == nil {
			err = c.resume(ctx, p)
		}
	}
	return err
}

// replayAll replays all open dead letters, as `oncepay dlq replay --all` does; whichever worker comes to it runs the job.
func (c *chaosRun) replayAll(ctx context.Context, e chaos.Event) error {
	op := payments.Operation{Actor: operatorName, Reason: "chaos"}
	request := payments.NewReplay{Rate: float64(e.N), Operation: op}
	var second sync.WaitGroup
	defer second.Wait()
	if e.What == chaos.Twice {
		second.Go(func() {
			if _, err := c.store.CreateReplay(ctx, request); err != nil && !away(err) {
				c.book.find("%s: %v", e, err)
			}
		})
	}
	r, err := c.store.CreateReplay(ctx, request)
	if err != nil {
		if away(err) {
			return nil
		}
		return err
	}
	move := map[string]func(context.Context, string, payments.Operation) (payments.Replay, error){
		chaos.Halted: c.store.PauseReplay, chaos.Canceled: c.store.CancelReplay,
	}[e.What]
	if move == nil {
		return nil
	}
	if e.What == chaos.Canceled {
		pause(ctx, e.For)
	}
	if _, err := move(ctx, r.ID, op); err != nil {
		return unlessOver(err)
	}
	if e.What == chaos.Halted {
		pause(ctx, e.For)
	}
	return nil
}

// unlessOver passes over what comes of changing a replay that is over, or of PostgreSQL that is away.
func unlessOver(err error) error {
	if away(err) || payments.ErrorCode(err) == payments.CodeInvalid {
		return nil
	}
	return err
}

// goOnWithReplays resumes the replays that are halted: by whoever halted them, or by a command whose answer was lost.
func (c *chaosRun) goOnWithReplays(ctx context.Context) error {
	list, err := c.replays(ctx)
	for _, r := range list {
		if err != nil || r.State != payments.ReplayPaused {
			continue
		}
		err = insist(ctx, func() error {
			_, err := c.store.ResumeReplay(ctx, r.ID, payments.Operation{Actor: operatorName, Reason: "chaos"})
			return err
		})
	}
	return err
}

// replays lists all of the run.
func (c *chaosRun) replays(ctx context.Context) (all []payments.Replay, err error) {
	for cursor := ""; ; {
		var page []payments.Replay
		var next string
		if err = insist(ctx, func() (err error) { page, next, err = c.store.Replays(ctx, payments.LimitMax, cursor); return err }); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}

// lastReplay takes up whatever is dead, once all is healed and at rest: what only crashes killed must come to its outcome now.
func (c *chaosRun) lastReplay(ctx context.Context) error {
	c.say("replaying all dead letters")
	return insist(ctx, func() error {
		_, err := c.store.CreateReplay(ctx, payments.NewReplay{Operation: payments.Operation{Actor: operatorName, Reason: "the end"}})
		return err
	})
}

// atWork says what workers have to do still, the operators' jobs included.
func (c *chaosRun) atWork(ctx context.Context) (string, error) {
	list, err := c.replays(ctx)
	if err != nil {
		return "", err
	}
	for _, r := range list {
		ended := 0
		for _, n := range r.Results {
			ended += n
		}
		// Of a replay that was canceled, what a runner held has its result once that runner's time is over.
		if r.State != payments.ReplayCompleted && (r.State != payments.ReplayCanceled || ended < r.Total) {
			return fmt.Sprintf("replay %s of %d is %s, with results %v", r.ID, r.Total, r.State, r.Results), nil
		}
	}
	return atWork(ctx, c.js, c.store, c.settings)
}

// left says what is left to do.
func (c *chaosRun) left(ctx context.Context) (string, error) {
	if left, err := c.atWork(ctx); err != nil || left != "" {
		return left, err
	}
	return leftToDo(ctx, c.js, c.store, c.settings)
}
