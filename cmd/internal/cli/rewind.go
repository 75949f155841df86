package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

// rewindHelp is wrapped to helpWidth.
const rewindHelp = `Let a database that was restored from a backup learn what it has forgotten: what Stripe has from T
on is adopted, what is to be worked on is looked up before anything is sent for it, and payments
whose messages are still in the streams are stored again. T is the time of the backup; it is moved
back to the database's own mark, should that be older, and ten minutes further for safety.

A server with the role worker does it, as a job that goes on whether or not it is watched here:
Ctrl-C stops the watching alone, and the same command follows it again. Nothing is sent to Stripe
until it is completed; payments are accepted all the same, and wait.

Create tenants that were made since the backup again first.

  oncepay rewind --since 2026-01-31T03:00:00Z --reason "restored last night's backup"

The exit code is 0 when the rewind completed; 1 when it failed, or nobody followed it to its end;
2 without --since, or when nobody can be asked and --yes is missing.`

// rewindCall is one call of rewind.
type rewindCall struct {
	*shared
	since       time.Time
	op          payments.Operation
	yes, detach bool
}

func rewindCommand(s *shared) *cobra.Command {
	r := rewindCall{shared: s}
	var since, reason string
	c := &cobra.Command{
		Use: "rewind --since T", Short: "Adopt what was charged after the backup that the database was restored from", Args: Arguments(0, 0), Long: rewindHelp,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if since == "" {
				return &app.UsageError{Text: "--since: is required: the time of the backup, as 2026-01-31T03:00:00Z, or how long ago, as 2h"}
			}
			if r.since, err = moment("--since", since); err != nil {
				return err
			}
			if r.since.After(time.Now()) {
				return &app.UsageError{Text: "--since: lies in the future; it is the time of the backup"}
			}
			if r.op, err = s.operation(c, "--reason", reason, false); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error { return r.run(c.Context(), store, c.InOrStdin()) })
		},
	}
	bindActor(c)
	c.Flags().StringVar(&since, "since", "", "time of the backup, RFC 3339, or this long ago (2h) (required)")
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&r.detach, "detach", false, "print the rewind's number and do not follow it")
	return c
}

func (r *rewindCall) run(ctx context.Context, store operators, in io.Reader) error {
	state, err := store.Mark(ctx)
	if err != nil {
		return err
	}
	if state.Rewind == 0 {
		since := r.since
		if state.Counted && state.At.Before(since) {
			since = state.At
		}
		fmt.Fprintf(r.err, "a rewind from %s UTC on: nothing is sent to Stripe until it is completed; payments are accepted all the same\n", when(since))
		fmt.Fprintln(r.err, "  every PaymentIntent of this installation since then is listed at Stripe and adopted")
		fmt.Fprintln(r.err, "  every payment that is to be worked on is looked up before anything is sent for it")
		fmt.Fprintln(r.err, "  the streams of intents are read again; what the database has forgotten is stored")
		if err := r.confirm(ctx, in, r.yes, "begin the rewind?", "nothing was begun"); err != nil {
			return err
		}
	}
	job, began, err := store.BeginRewind(ctx, r.since, r.op)
	if err != nil {
		return err
	}
	if !began {
		fmt.Fprintf(r.err, "rewind %d of %s from %s UTC on is running already\n", job.ID, console.Safe(job.Actor), when(job.Since))
	}
	if r.detach {
		if r.json {
			err = console.JSON(r.out, document.Rewind(job))
		} else {
			fmt.Fprintln(r.out, job.ID)
			fmt.Fprintln(r.err, "the same command without --detach follows it")
		}
	} else {
		err = r.followRewind(ctx, store, job)
	}
	if err == nil && !began && r.since.Before(job.Since) {
		return NewExit(exitFailed, fmt.Sprintf("oncepay: rewind %d goes back to %s UTC alone, which is not as far as --since: begin another when it has ended", job.ID, when(job.Since)))
	}
	return err
}

// rewindSteps says what each step does.
var rewindSteps = map[payments.RewindStep]string{
	payments.RewindSettle:  "waiting until nobody can be sending any more",
	payments.RewindStripe:  "listing what Stripe has",
	payments.RewindTickets: "taking back what is to be worked on, so that it is looked up first",
	payments.RewindOthers:  "going through what was given up or waits for a person",
	payments.RewindOpen:    "reading again what waits for its customer or for a capture",
	payments.RewindStreams: "reading the streams of intents again",
	payments.RewindAgain:   "captures, cancels and refunds that came before their payments",
	payments.RewindFound:   "going through what came meanwhile",
	payments.RewindAccept:  "marking the database anew",
}

// followRewind watches a rewind until it ends: nil when it completed.
func (s *shared) followRewind(ctx context.Context, store operators, job payments.Rewind) error {
	every := s.every
	if every == 0 {
		every = followEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := watch{shared: s, moved: time.Now(), seen: time.Now(), noted: map[string]bool{}}
	w.tell(job)
	again := fmt.Sprintf("rewind %d goes on: the same command follows it again", job.ID)
	for job.State == payments.RewindRunning {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return NewExit(exitFailed, "oncepay: not followed any more; "+again)
		}
		next, err := store.Rewind(ctx, job.ID)
		switch {
		case ctx.Err() != nil:
		case payments.Retryable(err) && time.Since(w.seen) < followGiveUp:
			w.note("trying again: " + err.Error())
		case err != nil:
			return NewExit(exitFailed, "oncepay: "+err.Error()+"; "+again)
		default:
			if w.seen = time.Now(); !next.UpdatedAt.Equal(job.UpdatedAt) {
				w.moved = w.seen
			}
			job = next
			w.tell(job)
		}
	}
	return s.printRewound(job)
}

// watch is somebody watching a rewind.
type watch struct {
	*shared
	step        payments.RewindStep
	moved, seen time.Time // when it last went on, and could last be read
	noted       map[string]bool
}

// tell says what is new about a rewind.
func (w *watch) tell(job payments.Rewind) {
	if job.State != payments.RewindRunning {
		return
	}
	if step := job.Progress.Step; step != w.step {
		w.step = step
		text, known := rewindSteps[step]
		if !known {
			text = string(step)
		}
		fmt.Fprintf(w.err, "rewind %d: %s (%s)\n", job.ID, text, rewindCounts(job.Progress))
	}
	if job.Detail != "" {
		w.note("trying again: " + job.Detail)
	}
	// A hold is told to go on every ten seconds at least, and one of a process that died is waited for.
	if time.Since(w.moved) >= 4*stillAfter {
		w.note("nothing moves: no server takes it up; rewinds are run by `oncepay serve` with the role worker")
	}
}

// note tells a thing once.
func (w *watch) note(line string) {
	if line = errorLine(line); !w.noted[line] && len(w.noted) < troublesMax {
		w.noted[line] = true
		fmt.Fprintln(w.err, line)
	}
}

func rewindCounts(p payments.RewindProgress) string {
	count := func(n int, one, many string) string { return console.Grouped(plural(int64(n), one, many)) }
	return count(p.Objects, "PaymentIntent", "PaymentIntents") + " at Stripe, " + count(p.Doubted, "payment", "payments") + " to look up, " +
		count(p.Restored, "payment", "payments") + " stored again"
}

// printRewound shows what a rewind came to, and fails when it did.
func (s *shared) printRewound(r payments.Rewind) error {
	if s.json {
		if err := console.JSON(s.out, document.Rewind(r)); err != nil {
			return err
		}
	} else {
		p := r.Progress
		var rows [][]string
		for _, row := range []struct {
			n    int
			text string
		}{
			{p.Objects, "PaymentIntents that Stripe has"}, {p.Doubted, "payments that are looked up before anything is sent for them"},
			{p.Messages, "messages read again"}, {p.Restored, "payments stored again"},
			{p.Corrected, "payments that had ended otherwise, and succeeded at Stripe"}, {p.Adopted, "payments that waited for their customer or for a capture, and had gone on at Stripe"}, {p.Letters, "messages that are dead letters (`oncepay dlq list`)"},
			{p.Disagrees, "payments that Stripe contradicts; the workers' log names them, a person must look at them"},
		} {
			rows = append(rows, []string{console.Grouped(fmt.Sprint(row.n)), row.text})
		}
		if err := console.Table(s.out, []string{"COUNT", "OF"}, rows); err != nil {
			return err
		}
	}
	for _, tenant := range r.Progress.Unknown {
		fmt.Fprintf(s.err, "tenant %s is not in the database: `oncepay tenants create %s` with its account, then `oncepay rewind` again\n", console.Safe(tenant), shellWord(tenant))
	}
	if r.Progress.Note != "" {
		fmt.Fprintln(s.err, errorLine(r.Progress.Note))
	}
	if r.State != payments.RewindCompleted {
		return NewExit(exitFailed, fmt.Sprintf("oncepay: rewind %d failed: %s; nothing is sent before another one completes", r.ID, r.Detail))
	}
	if p := r.Progress; p.Doubted+p.Corrected+p.Adopted+p.Disagrees+p.Restored+p.Letters == 0 {
		fmt.Fprintln(s.err, "nothing was missing: the database had all that Stripe and the streams have")
	}
	fmt.Fprintf(s.err, "rewind %d is completed: payments are sent again\n", r.ID)
	return nil
}
