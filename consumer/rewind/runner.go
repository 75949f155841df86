package rewind

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Store is what a Runner needs of the database.
type Store interface {
	Mark(ctx context.Context) (payments.MarkState, error)
	HoldRewind(ctx context.Context, hold time.Duration) (r payments.Rewind, held bool, err error)
	GoOn(ctx context.Context, r payments.Rewind, hold time.Duration) (payments.Rewind, error)
	FinishRewind(ctx context.Context, r payments.Rewind, state payments.RewindState, counter int64) (payments.Rewind, error)
	StoreObjects(ctx context.Context, r payments.Rewind, hold time.Duration, objects []payments.StripeObject) (payments.Rewind, []payments.Payment, error)
	DoubtTickets(ctx context.Context, r payments.Rewind, hold time.Duration, account func(tenantID string) payments.Account) (payments.Rewind, bool, error)
	DoubtOthers(ctx context.Context, r payments.Rewind, hold time.Duration, account func(tenantID string) payments.Account) (payments.Rewind, bool, error)
	OpenPayments(ctx context.Context, r payments.Rewind, limit int) (list []payments.Payment, through payments.Rewind, done bool, err error)
	DoubtFound(ctx context.Context, r payments.Rewind, hold time.Duration, account func(tenantID string) payments.Account) (payments.Rewind, bool, error)
	AwaitAdmissions(ctx context.Context) error
	RestorePayments(ctx context.Context, r payments.Rewind, hold time.Duration, list []payments.ForgottenPayment, account func(tenantID string) payments.Account) (payments.Rewind, payments.Restored, error)
	RefusedBefore(ctx context.Context, messages []payments.MessageOrigin) (map[payments.MessageOrigin]bool, error)
	BuryMessage(ctx context.Context, letter payments.DeadLetter) error
	AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error)
	Evidence(ctx context.Context, tenantID string, id payments.ID, decide func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error)
}

// Stripe is what a Runner needs of Stripe: it only reads.
type Stripe interface {
	Account(ctx context.Context, tenantID string) (payments.Account, error)
	// ListOurs lists every PaymentIntent of ours since a time, in the account that the tenant's payments go to; "" is the installation's own.
	// progress is called before each page.
	ListOurs(ctx context.Context, tenantID string, since time.Time, each func(payments.PaymentIntent) error, progress func() error) error
	Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation
	Retrieve(ctx context.Context, p payments.Payment) payments.Observation
}

// Config is what a Runner needs. All fields without a default are required.
type Config struct {
	Store  Store
	Stripe Stripe
	// Tenants lists those whose payments go another way than the installation's own.
	Tenants   func(ctx context.Context) ([]string, error)
	JetStream jetstream.JetStream
	Subjects  schema.Subjects
	// Accept writes the copy of the mark anew, further than any, and returns its counter; still is asked right before it is written.
	Accept func(ctx context.Context, m payments.Mark, still func() error) (counter int64, err error)
	Clock  payments.Clock
	// Settle is how long a rewind waits at first: longer than anybody may have been given the right to send for.
	Settle   time.Duration
	TriesMax int

	// Hold is for how long a rewind is this process's after each sign of life; default 30 s.
	Hold time.Duration
	// Every is how often a rewind is looked for; default 1 s. Pause is the time between two tries of a step that failed; default 2 s.
	Every, Pause time.Duration

	Log *slog.Logger
	// OnStep, when set, is told of every step before it begins; tests stop the process in it.
	OnStep func(payments.RewindStep)
}

// Runner runs rewinds.
type Runner struct {
	Config
	accounts map[string]payments.Account // by tenant, "" is the installation's own; of the rewind that is running
}

// New returns a Runner; Run starts it.
func New(c Config) (*Runner, error) {
	if c.Store == nil || c.Stripe == nil || c.Tenants == nil || c.JetStream == nil || c.Accept == nil || c.Clock == nil || c.Log == nil || c.Settle <= 0 {
		return nil, errors.New("rewind: a field of the Config is missing")
	}
	if c.Hold <= 0 {
		c.Hold = 30 * time.Second
	}
	if c.Every <= 0 {
		c.Every = time.Second
	}
	if c.Pause <= 0 {
		c.Pause = 2 * time.Second
	}
	return &Runner{Config: c}, nil
}

// Run runs whatever rewind there is, until ctx ends. One that it is in the middle of then is left to the next process.
func (r *Runner) Run(ctx context.Context) error {
	for {
		job, held, err := r.Store.HoldRewind(ctx, r.Hold)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			r.Log.Warn("rewinds could not be looked for; it is tried again", "error", err)
		case held:
			r.Log.Warn("a rewind goes on", "rewind", job.ID, "since", job.Since, "step", job.Progress.Step)
			r.run(ctx, job)
		}
		if !wait(ctx, r.Every) {
			return nil
		}
	}
}

// brokenMax is how often in a row a step may fail for a reason that no time will mend.
const brokenMax = 10

// run goes through the steps until the rewind has ended, is somebody else's, or ctx ends.
func (r *Runner) run(ctx context.Context, job payments.Rewind) {
	r.accounts = nil
	broken := 0
	for job.State == payments.RewindRunning {
		next, err := r.step(ctx, job)
		if err == nil {
			if broken = 0; next.Detail != "" {
				next.Detail = ""
			}
			job = next
			continue
		}
		if ctx.Err() != nil || payments.TicketLost(err) {
			r.Log.Warn("a rewind is left to another process", "rewind", job.ID, "error", err)
			return
		}
		job = newer(job, next)
		job.Detail = err.Error()
		if broken++; payments.Retryable(err) {
			broken = 0
		}
		r.Log.Error("a step of a rewind failed; it is tried again, and nothing is sent meanwhile", "rewind", job.ID, "step", job.Progress.Step, "error", err)
		if broken >= brokenMax {
			if job, err = r.Store.FinishRewind(ctx, job, payments.RewindFailed, 0); err != nil {
				r.Log.Error("a rewind could not be ended; another process goes on", "rewind", job.ID, "error", err)
			}
			return
		}
		if !wait(ctx, r.Pause) {
			return
		}
		if next, err = r.Store.GoOn(ctx, job, r.Hold); payments.TicketLost(err) {
			return
		} else if err == nil {
			job = next
		}
	}
	r.Log.Warn("a rewind has ended", "rewind", job.ID, "state", job.State, "objects", job.Progress.Objects, "doubted", job.Progress.Doubted,
		"restored", job.Progress.Restored, "corrected", job.Progress.Corrected, "dead_letters", job.Progress.Letters)
}

// newer is the job as it was last written.
func newer(before, after payments.Rewind) payments.Rewind {
	if after.ID == before.ID && after.HeldUntil.After(before.HeldUntil) {
		return after
	}
	return before
}

// step does some of the step that the job is at, and moves it on when that is done. An error comes with the job as it was last written.
func (r *Runner) step(ctx context.Context, job payments.Rewind) (payments.Rewind, error) {
	step := job.Progress.Step
	if r.OnStep != nil {
		r.OnStep(step)
	}
	var done bool
	var err error
	switch step {
	case payments.RewindSettle:
		job, done, err = r.settle(ctx, job)
	case payments.RewindStripe:
		job, err = r.listAll(ctx, job)
		done = err == nil
	case payments.RewindTickets, payments.RewindOthers, payments.RewindFound:
		job, done, err = r.doubt(ctx, job)
	case payments.RewindOpen:
		job, done, err = r.open(ctx, job)
	case payments.RewindStreams:
		job, done, err = r.reread(ctx, job)
	case payments.RewindAgain:
		job, done, err = r.rereadAgain(ctx, job)
	case payments.RewindAccept:
		return r.accept(ctx, job)
	default:
		err = payments.Errorf(payments.CodeInternal, "the rewind is at the step %q, which this version does not know", step)
	}
	if err != nil || !done {
		return job, err
	}
	moved := job
	moved.Progress.Step, moved.Progress.Tenant, moved.Progress.ID, moved.Progress.Next = step.Next(), "", "", nil
	if moved, err = r.Store.GoOn(ctx, moved, r.Hold); err != nil {
		return job, err
	}
	return moved, nil
}

// settle waits until whoever was given the right to send before the rewind began has lost it.
func (r *Runner) settle(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	state, err := r.Store.Mark(ctx)
	if err != nil {
		return job, false, err
	}
	left := job.CreatedAt.Add(r.Settle).Sub(state.Now)
	if left <= 0 {
		return job, true, nil
	}
	if !wait(ctx, min(left, r.Hold/3)) {
		return job, false, ctx.Err()
	}
	job, err = r.Store.GoOn(ctx, job, r.Hold)
	return job, false, err
}

// doubt makes the next stretch of payments in doubt.
func (r *Runner) doubt(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	account, err := r.account(ctx)
	if err != nil {
		return job, false, err
	}
	switch job.Progress.Step {
	case payments.RewindTickets:
		return r.Store.DoubtTickets(ctx, job, r.Hold, account)
	case payments.RewindOthers:
		return r.Store.DoubtOthers(ctx, job, r.Hold, account)
	}
	if job.Progress.Tenant == "" {
		if err := r.Store.AwaitAdmissions(ctx); err != nil {
			return job, false, err
		}
	}
	return r.Store.DoubtFound(ctx, job, r.Hold, account)
}

// account tells where tenants' payments go, for payments that are pinned to no account yet.
func (r *Runner) account(ctx context.Context) (func(tenantID string) payments.Account, error) {
	if r.accounts == nil {
		if _, err := r.ways(ctx); err != nil {
			return nil, err
		}
	}
	return func(tenantID string) payments.Account {
		if a, own := r.accounts[tenantID]; own {
			return a
		}
		a, err := r.Stripe.Account(ctx, tenantID)
		if err != nil {
			return payments.Account{} // such a tenant has come within the last moment, and nothing was sent for it
		}
		return a
	}, nil
}

// ways reads all accounts, and returns the tenants that lead to them: the installation's own first, each account once.
func (r *Runner) ways(ctx context.Context) ([]string, error) {
	tenants, err := r.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	accounts, seen := map[string]payments.Account{}, map[payments.Account]bool{}
	var ways []string
	for _, tenant := range append([]string{""}, tenants...) {
		a, err := r.Stripe.Account(ctx, tenant)
		if err != nil {
			return nil, payments.Errorf(payments.CodeUnavailable, "the Stripe account of the tenant %s is not known, and must be listed, too: %w", tenant, err)
		}
		accounts[tenant] = a
		if !seen[a] {
			seen[a] = true
			ways = append(ways, tenant)
		}
	}
	r.accounts = accounts
	return ways, nil
}

// accept marks the database anew: the copy first, so that a process that dies in between leaves a rewind that goes on. One that slept, and whose rewind
// somebody else has completed, must not write a copy that is further than the database: that would hold everybody.
func (r *Runner) accept(ctx context.Context, job payments.Rewind) (payments.Rewind, error) {
	state, err := r.Store.Mark(ctx)
	if err != nil {
		return job, err
	}
	state.Mark.At = state.Now
	counter, err := r.Accept(ctx, state.Mark, func() (err error) {
		job, err = r.Store.GoOn(ctx, job, r.Hold)
		return err
	})
	switch {
	case payments.TicketLost(err):
		return job, err
	case err != nil:
		return job, payments.Errorf(payments.CodeUnavailable, "the copy of the mark could not be written: %w", err)
	}
	ended, err := r.Store.FinishRewind(ctx, job, payments.RewindCompleted, counter)
	if err != nil {
		return job, err
	}
	return ended, nil
}

// wait sleeps for d and reports whether ctx still stands.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// unavailable is an error of a service that is tried again.
func unavailable(what string, err error) error {
	return payments.Errorf(payments.CodeUnavailable, "%s: %w", what, fmt.Errorf("%w", err))
}
