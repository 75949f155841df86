package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Config is what a Runner needs. Store, FollowUps, Batches, Replays, Clock and Subjects are required.
type Config struct {
	Store     payments.Store
	FollowUps payments.FollowUps
	Batches   payments.Batches
	Replays   payments.Replays
	Clock     payments.Clock
	Subjects  schema.Subjects
	Log       *slog.Logger

	// Hold is how long items are held that are about to be issued; default 30 s.
	Hold time.Duration
	// AtOnce is how many items are held at once; default 64.
	AtOnce int
	// Poll is how often results are looked for while a replay runs, and Idle how often replays are looked for while none does; defaults 250 ms and 2 s.
	Poll, Idle time.Duration
	// OnStep, when set, is told of every step of every item; tests stop the runner in it.
	OnStep func(step Step, letterID string)
}

// Step is a step of an item's way.
type Step string

// The steps.
const (
	StepClaimed  Step = "claimed"  // it is held
	StepIssued   Step = "issued"   // its payment's ticket is due
	StepStarted  Step = "started"  // of a message: its beginning is committed
	StepRead     Step = "read"     // of a message: it was read
	StepAdmitted Step = "admitted" // of a message: its payment is stored
	StepFinished Step = "finished" // of a message: it is issued, or has its result
)

// Runner runs replays.
type Runner struct {
	Config
	running atomic.Bool

	watched time.Time     // when results were last looked for
	took    time.Duration // and how long that took
}

// New returns a Runner; Run starts it.
func New(c Config) (*Runner, error) {
	if c.Store == nil || c.FollowUps == nil || c.Batches == nil || c.Replays == nil || c.Clock == nil || c.Subjects.Validate() != nil {
		return nil, &payments.Error{Code: payments.CodeInvalid, Field: "deadletter", Message: "Store, FollowUps, Batches, Replays, Clock and Subjects are required"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.AtOnce <= 0 {
		c.AtOnce = 64
	}
	for _, d := range []struct {
		setting   *time.Duration
		otherwise time.Duration
	}{{&c.Hold, 30 * time.Second}, {&c.Poll, 250 * time.Millisecond}, {&c.Idle, 2 * time.Second}} {
		if *d.setting <= 0 {
			*d.setting = d.otherwise
		}
	}
	return &Runner{Config: c}, nil
}

// Run runs replays until ctx ends, and returns nil. What fails is told and tried again. Only one Run at a time.
func (r *Runner) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("deadletter: is already running")
	}
	defer r.running.Store(false)
	failures := 0
	for pause := time.Duration(0); wait(ctx, pause); {
		var err error
		pause, err = r.round(ctx, false)
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			failures++
			pause = min(time.Duration(failures)*r.Poll, 5*time.Second)
			r.Log.Warn("replays could not go on; they are tried again", "error", err)
		}
	}
	return nil
}

// RunOnce issues what may be issued now, looks for results, and returns whether any replay has items without a result left.
func (r *Runner) RunOnce(ctx context.Context) (open bool, err error) {
	pause, err := r.round(ctx, true)
	return pause < r.Idle, err
}

// leastPause keeps replays with a rate from asking for one item at a time; results are looked for at least every watchMax, however long the last look
// took, since a process that was stopped meanwhile, or a clock that was set, makes it seem hours.
const (
	leastPause = 100 * time.Millisecond
	watchMax   = 10 * time.Second
)

// round is one look, and how long the next one may wait.
func (r *Runner) round(ctx context.Context, watch bool) (pause time.Duration, err error) {
	claims, err := r.Replays.ClaimReplayItems(ctx, r.AtOnce, r.Hold)
	failed := r.issue(ctx, claims.Work)
	if err = errors.Join(err, failed); err != nil {
		return r.Poll, err
	}
	if !claims.Open {
		return r.Idle, nil
	}
	// Looking through many items costs PostgreSQL something, so that it is done the less often.
	if began := r.Clock.Now(); watch || began.Before(r.watched) || began.Sub(r.watched) >= max(r.Poll, min(10*r.took, watchMax)) {
		_, err = r.Replays.WatchReplays(ctx)
		r.watched, r.took = began, r.Clock.Now().Sub(began)
	}
	switch {
	case len(claims.Work) > 0:
		return 0, err
	case claims.Wait > 0:
		return max(leastPause, min(claims.Wait, r.Poll)), err
	}
	return r.Poll, err
}

// issue issues what is held: payments all at once, messages one at a time, so that one that ends the process is known.
func (r *Runner) issue(ctx context.Context, work []payments.ReplayWork) error {
	var tickets, messages []payments.ReplayWork
	for _, w := range work {
		r.step(StepClaimed, w)
		if w.OfMessage() {
			messages = append(messages, w)
		} else {
			tickets = append(tickets, w)
		}
	}
	err := r.Replays.IssueReplayed(ctx, tickets)
	if err == nil {
		for _, w := range tickets {
			r.step(StepIssued, w)
		}
	}
	for _, w := range messages {
		if ctx.Err() != nil {
			break // what is held is free again when that ends
		}
		if failed := r.replay(ctx, w); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}

func (r *Runner) step(s Step, w payments.ReplayWork) {
	if r.OnStep != nil {
		r.OnStep(s, w.Letter.ID)
	}
}

// wait waits, and reports whether ctx goes on.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
