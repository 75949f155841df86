package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// batchRun is one call of batch run.
type batchRun struct {
	*shared
	file        *batchFile
	key         string
	concurrency int
	retryFor    time.Duration
	noWait      bool
}

func batchRunCommand(s *shared) *cobra.Command {
	r := batchRun{shared: s}
	var format string
	var dryRun bool
	c := &cobra.Command{
		Use: "run FILE --key K", Short: "Pay what stands in a file (CSV or JSON Lines, - for standard input)", Args: Arguments(1, 1),
		Long: "Pay what stands in a file. All of it is checked before anything is sent. Run it as often as you like: the same file under the same key is\n" +
			"the same payments, and a run that was interrupted goes on where it was. Another file under the key is refused.\n\n" +
			"CSV has a header row: amount (in minor units: 9900) or amount_decimal (99.00), currency, payment_method, and any of the other members of an\n" +
			"intent, metadata as metadata.NAME. JSON Lines has one intent on each line. Payments have no keys of their own: the n-th batch of 100 rows is\n" +
			"K.000000, K.000001, … under the parent K.\n\n" +
			"The exit code is 0 when every payment has its outcome, declined ones included; 1 when it failed or payments wait for a person, 2 when the file\n" +
			"or the command line must be changed first, in which case nothing was sent.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.check(c); err != nil {
				return err
			}
			var door *batch.Client
			if !dryRun {
				var err error
				if door, err = s.openDoor(c, r.concurrency); err != nil {
					return err
				}
				defer door.Close()
			}
			file, err := openBatchFile(c.Context(), args[0], format, c.InOrStdin())
			if err != nil {
				return interrupted(c.Context(), err, "nothing was sent")
			}
			defer file.close()
			r.file = file
			plan, err := r.validate(c.Context())
			if err != nil {
				return err
			}
			if dryRun {
				return r.printPlan(plan)
			}
			return r.pay(c.Context(), plan, door)
		},
	}
	c.Flags().StringVar(&r.key, "key", "", "the run's key: one per file, the same on every repeat (required)")
	c.Flags().StringVar(&format, "format", "", "csv or jsonl; by default as the file's name says")
	c.Flags().IntVar(&r.concurrency, "concurrency", 8, fmt.Sprintf("batches in flight, 1 to %d", batch.ConcurrencyMax))
	c.Flags().DurationVar(&r.retryFor, "retry-for", 10*time.Minute, "how long to go on while the API accepts nothing at all")
	c.Flags().BoolVar(&r.noWait, "no-wait", false, "end when everything is accepted, without following the payments")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check the file, print what it asks for, and send nothing")
	bindDoor(c)
	return c
}

func (r *batchRun) check(c *cobra.Command) error {
	if !c.Flags().Changed("key") {
		return &app.UsageError{Text: "--key: is required: choose one key per file and repeat it on every attempt"}
	}
	if wrong := batch.CheckKey(r.key); wrong != "" {
		return &app.UsageError{Text: "--key: " + wrong}
	}
	if r.concurrency < 1 || r.concurrency > batch.ConcurrencyMax {
		return &app.UsageError{Text: fmt.Sprintf("--concurrency: must be from 1 to %d", batch.ConcurrencyMax)}
	}
	if r.retryFor < 0 {
		return &app.UsageError{Text: "--retry-for: must not be negative"}
	}
	return nil
}

// interrupted says how far a run was when it was told to stop.
func interrupted(ctx context.Context, err error, far string) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return NewExit(exitFailed, "oncepay: interrupted: "+far+"; the same command goes on from there")
}

// validate reads the whole file.
func (r *batchRun) validate(ctx context.Context) (*batch.Plan, error) {
	bar := console.NewBar(r.err, "checking the file", r.file.size, console.Bytes)
	plan, err := batch.Check(ctx, r.file.source, batch.FileOptions{Run: r.key, Format: r.file.format, Read: bar.Set})
	var refused *batch.FaultsError
	switch {
	case err == nil:
		bar.Done(r.file.size)
		return plan, nil
	case errors.As(err, &refused):
		bar.Abandon()
		for _, f := range refused.Faults {
			fmt.Fprintln(r.err, errorLine(f.String()))
		}
		text := "the file is refused: " + plural(int64(len(refused.Faults)), "fault", "faults")
		if refused.More {
			text += ", and the rest was not looked at"
		}
		return nil, &app.UsageError{Text: text + "; nothing was sent"}
	}
	bar.Abandon()
	return nil, interrupted(ctx, err, "nothing was sent")
}

// pay sends what the plan says and follows it.
func (r *batchRun) pay(ctx context.Context, plan *batch.Plan, door *batch.Client) error {
	bar := console.NewBar(r.err, "accepted", plan.Rows, "payments")
	sent, err := batch.Publish(ctx, plan, door, batch.PublishOptions{
		Concurrency: r.concurrency, Patience: r.patience(bar),
		Found:    r.tellFound(bar),
		Progress: func(s batch.Sent) { bar.Set(s.Rows) },
	})
	if err != nil {
		bar.Abandon()
		far := fmt.Sprintf("%d of %d payments are accepted", sent.Rows, plan.Rows)
		switch {
		case ctx.Err() == nil && sent.Batches == 0 && wrongSettings(err):
			return &app.UsageError{Text: err.Error() + "; nothing was sent"}
		case ctx.Err() == nil:
			return NewExit(exitFailed, "oncepay: "+err.Error()+" ("+far+" by this call)")
		}
		return interrupted(ctx, err, far)
	}
	bar.Done(sent.Rows)
	if sent.Replayed > 0 {
		fmt.Fprintf(r.err, "%d of %s had been accepted before\n", sent.Replayed, plural(int64(sent.Batches), "batch", "batches"))
	}
	if r.noWait {
		return r.printRun(plan, &sent, nil)
	}
	return r.follow(ctx, plan, door, sent)
}

// wrongSettings reports whether the API's address or key must be changed first.
func wrongSettings(err error) bool {
	var problem *batch.ProblemError
	if !errors.As(err, &problem) {
		return false
	}
	redirect := problem.Status >= 300 && problem.Status < 400
	return redirect || problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden
}

func (r *batchRun) follow(ctx context.Context, plan *batch.Plan, door *batch.Client, sent batch.Sent) error {
	bar := console.NewBar(r.err, "with an outcome", plan.Rows, "payments")
	all, err := batch.Follow(ctx, plan, door, batch.FollowOptions{
		Patience: r.patience(bar),
		Progress: func(t batch.Totals) { bar.Set(t.Final()) },
	})
	if err != nil {
		bar.Abandon()
		far := fmt.Sprintf("all %d payments are accepted, %d have their outcome", plan.Rows, all.Final())
		if ctx.Err() == nil {
			return NewExit(exitFailed, "oncepay: "+err.Error()+" ("+far+")")
		}
		return interrupted(ctx, err, far)
	}
	bar.Done(all.Final())
	if err := r.printRun(plan, &sent, &all); err != nil {
		return err
	}
	if !all.Complete {
		return NewExit(exitFailed, fmt.Sprintf("oncepay: %s for a person (%s): `oncepay payments list --status …` shows them, and the same command looks again",
			plural(all.NeedPerson(), "payment waits", "payments wait"), "requires_capture, requires_action, needs_review, stalled"))
	}
	return nil
}

// tellFound says once why nothing seems to happen at the start of a large run that goes on.
func (r *batchRun) tellFound(bar *console.Bar) func(int) {
	told := false
	return func(int) {
		if !told {
			told = true
			bar.Note("looking for what was accepted before")
		}
	}
}

// patience tells of trouble once, until something else is the trouble.
func (r *batchRun) patience(bar *console.Bar) batch.Patience {
	var mu sync.Mutex
	told := map[string]bool{}
	return batch.Patience{
		Now: time.Now, Random: rand.Int64N, Wait: batch.Pause, GiveUp: r.retryFor,
		Trouble: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			text := errorLine("trying again: " + err.Error())
			if !told[text] && len(told) < troublesMax {
				told[text] = true
				bar.Note(text)
			}
		},
	}
}

// troublesMax is how many different troubles are told of: errors that name ports differ each time.
const troublesMax = 8

func (r *batchRun) printPlan(plan *batch.Plan) error {
	amount := map[string]int64{}
	for currency, sum := range plan.Sums {
		amount[currency] = sum.Amount
	}
	if r.json {
		return console.JSON(r.out, runDocument{Parent: r.key, Batches: plan.Batches(), Count: plan.Rows, Amount: amount, DryRun: true})
	}
	fmt.Fprintf(r.out, "%s in %s; nothing was sent\n", plural(plan.Rows, "payment", "payments"), plural(int64(plan.Batches()), "batch", "batches"))
	var rows [][]string
	for _, currency := range slices.Sorted(maps.Keys(plan.Sums)) {
		sum := plan.Sums[currency]
		rows = append(rows, []string{currency, fmt.Sprint(sum.Count), payments.FormatAmount(sum.Amount, currency)})
	}
	return console.Table(r.out, []string{"CURRENCY", "PAYMENTS", "AMOUNT"}, rows)
}

// printRun prints what became of a run; all is nil where nobody looked.
func (r *batchRun) printRun(plan *batch.Plan, sent *batch.Sent, all *batch.Totals) error {
	if r.json {
		d := runDocument{Parent: r.key, Batches: plan.Batches(), Count: plan.Rows, Accepted: &sent.Rows, Amount: map[string]int64{}}
		for currency, sum := range plan.Sums {
			d.Amount[currency] = sum.Amount
		}
		if all != nil {
			d.ByStatus, d.Complete = all.ByStatus, &all.Complete
		}
		return console.JSON(r.out, d)
	}
	if all == nil {
		fmt.Fprintf(r.out, "%s accepted in %s under %s: `oncepay batch show` tells how far they are\n",
			plural(plan.Rows, "payment", "payments"), plural(int64(plan.Batches()), "batch", "batches"), r.key)
		return nil
	}
	return r.printTotals(all.ByStatus)
}
