package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// batchRun is one call of batch run.
type batchRun struct {
	*shared
	file        *batchFile
	key         string
	concurrency int
	retryFor    time.Duration
	noWait      bool
	resultsName string
	results     *resultsFile // nil: none is asked for
	unwell      []bool       // by number: the batches of which some payment did not succeed
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
		Found: r.tellFound(bar),
		Adds: func(had, adds int64) {
			bar.Note(fmt.Sprintf("the run had %s; this file adds %d", plural(had, "payment", "payments"), adds))
		},
		Progress: func(s batch.Sent) {
			bar.Before(s.ReplayedRows)
			bar.Set(s.Rows)
		},
	})
	if err != nil {
		bar.Abandon()
		far, nothing := farOf(sent, plan), "nothing was sent"
		if sent.Batches > 0 || otherFile(err) {
			nothing = "nothing new was sent"
		}
		switch {
		case ctx.Err() == nil && !sent.New && (wrongSettings(err) || otherFile(err)):
			return &app.UsageError{Text: err.Error() + "; " + nothing}
		case ctx.Err() == nil:
			return NewExit(exitFailed, "oncepay: "+err.Error()+" ("+far+")")
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

// farOf says how much this call knows to be accepted.
func farOf(sent batch.Sent, plan *batch.Plan) string {
	switch {
	case sent.Rows == 0:
		return fmt.Sprintf("this call knows none of %s to be accepted", plural(plan.Rows, "payment", "payments"))
	case sent.ReplayedRows == 0:
		return fmt.Sprintf("%d of %d payments are accepted", sent.Rows, plan.Rows)
	}
	return fmt.Sprintf("%d of %d payments are accepted: %d before, %d new", sent.Rows, plan.Rows, sent.ReplayedRows, sent.Rows-sent.ReplayedRows)
}

// otherFile reports whether the file is not the one of what was sent before under the key.
func otherFile(err error) bool {
	var foreign *batch.ForeignError
	var refused *batch.RefusedError
	return errors.As(err, &foreign) || errors.As(err, &refused) && refused.OtherFile()
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
	r.unwell = make([]bool, plan.Batches())
	all, err := batch.Follow(ctx, plan, door, batch.FollowOptions{
		Patience: r.patience(bar),
		Progress: func(t batch.Totals) { bar.Set(t.Final()) },
		Batch: func(i int, b schema.Batch) {
			r.unwell[i] = b.ByStatus[string(payments.StatusSucceeded)].Count != b.Count
		},
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
	if err := r.tellOutcomes(ctx, plan, door, all); err != nil {
		return err
	}
	if !all.Complete {
		statuses := all.NeedPersonStatuses()
		return NewExit(exitFailed, fmt.Sprintf("oncepay: %s for a person (%s): operators see them with `oncepay payments list --status %s`, and the same command looks again",
			plural(all.NeedPerson(), "payment waits", "payments wait"), strings.Join(statuses, ", "), strings.Join(statuses, "` and `oncepay payments list --status ")))
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
		fmt.Fprintf(r.out, "%s accepted in %s under %s\n",
			plural(plan.Rows, "payment", "payments"), plural(int64(plan.Batches()), "batch", "batches"), r.key)
		fmt.Fprintf(r.err, "the same command without --no-wait tells how far they are, and so does `oncepay batch show %s` to operators\n", shellWord(r.key))
		return nil
	}
	return r.printTotals(all.ByStatus)
}

// shellWord writes a key, which holds nothing but printable ASCII, so that a shell reads it as one word.
func shellWord(key string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-:/@%+,", c)
	}
	if strings.IndexFunc(key, func(c rune) bool { return !plain(c) }) < 0 && !strings.HasPrefix(key, "-") {
		return key
	}
	quoted := "'" + strings.ReplaceAll(key, "'", `'\''`) + "'"
	if strings.HasPrefix(key, "-") {
		return "-- " + quoted
	}
	return quoted
}
