package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// unsuccessfulMax is how many payments that did not succeed are shown.
const unsuccessfulMax = 20

// unsuccessfulFor is how long they are waited for: the totals are there already.
const unsuccessfulFor = 30 * time.Second

// errEnough ends the reading of outcomes when enough were seen.
var errEnough = errors.New("enough was seen")

// tellOutcomes shows the first payments that did not succeed, each with its row, and writes the file of all rows if one is asked for.
func (r *batchRun) tellOutcomes(ctx context.Context, plan *batch.Plan, door *batch.Client, all batch.Totals) error {
	bad := all.Unsuccessful()
	if bad == 0 && r.results == nil {
		return nil
	}
	bar := console.NewBar(r.err, "results", plan.Rows, "payments")
	if r.results == nil {
		bar = console.NewBar(r.err, "without success", min(bad, unsuccessfulMax), "payments")
	}
	var rows [][]string
	options := batch.OutcomesOptions{
		Concurrency: r.concurrency, Patience: r.patience(bar),
		Outcome: func(o batch.Outcome) error {
			if o.Status != string(payments.StatusSucceeded) && len(rows) < unsuccessfulMax {
				rows = append(rows, []string{strconv.FormatInt(o.Row, 10), o.ID, o.Status, why(o)})
			}
			if r.results != nil {
				bar.Set(o.Row)
				return r.results.write(o)
			}
			bar.Set(int64(len(rows)))
			if int64(len(rows)) >= min(bad, unsuccessfulMax) {
				return errEnough
			}
			return nil
		},
	}
	if r.results == nil {
		options.Patience.GiveUp = min(r.retryFor, unsuccessfulFor)
		options.Batch = func(i int) bool { return r.unwell[i] }
	}
	err := batch.Outcomes(ctx, plan, door, options)
	switch {
	case err == nil && r.results != nil:
		bar.Done(plan.Rows)
		err = r.results.keep()
	case err == nil, errors.Is(err, errEnough):
		bar.Done(int64(len(rows)))
		err = nil
	default:
		bar.Abandon()
	}
	if len(rows) > 0 {
		fmt.Fprintln(r.err, plural(bad, "payment", "payments")+" did not succeed:")
		if err := r.table(r.err, []console.Column{{Head: "ROW"}, {Head: "PAYMENT"}, {Head: "STATUS"}, {Head: "REASON", Goes: 1, Below: true}}, rows); err != nil {
			return err
		}
		if more := bad - int64(len(rows)); more > 0 && r.results == nil {
			fmt.Fprintf(r.err, "and %d more: the same command with --results FILE writes what became of every row\n", more)
		}
	}
	switch {
	case err == nil:
		return nil
	case r.results == nil: // nobody asked for more than the totals
		fmt.Fprintln(r.err, errorLine("what became of single rows cannot be told: "+err.Error()+"; the same command looks again"))
		return nil
	case ctx.Err() != nil:
		return interrupted(ctx, err, "every payment is accepted, and --results is not written")
	}
	return NewExit(exitFailed, "oncepay: every payment is accepted, but what became of single rows cannot be told: "+err.Error()+"; the same command looks again")
}

// why is what is known of why a payment did not succeed, each word of it once.
func why(o batch.Outcome) string {
	var words []string
	add := func(word *string) {
		if word != nil && *word != "" && !slices.Contains(words, *word) {
			words = append(words, *word)
		}
	}
	add(o.Reason)
	if o.Failure != nil {
		add(o.Failure.Code)
		add(o.Failure.DeclineCode)
	}
	return orDash(strings.Join(words, ", "))
}

// resultsFile is a file of outcomes, which has its name once it is whole.
type resultsFile struct {
	name string
	file *os.File
	out  *bufio.Writer
}

// openResults makes the file that --results names, beside it, before anything is sent.
func (r *batchRun) openResults() error {
	if r.resultsName == "" {
		return nil
	}
	if there, err := os.Stat(r.resultsName); err == nil {
		paid, err := r.file.file.Stat()
		switch {
		case !there.Mode().IsRegular():
			return &app.UsageError{Text: "--results: must name a file"}
		case err == nil && os.SameFile(there, paid):
			return &app.UsageError{Text: "--results: is the file that is paid: name another"}
		}
	}
	file, err := os.CreateTemp(filepath.Dir(r.resultsName), ".oncepay-results-*")
	if err != nil {
		return &app.UsageError{Text: "--results: the file cannot be written: " + reasonOf(err).Error()}
	}
	r.results = &resultsFile{name: r.resultsName, file: file, out: bufio.NewWriter(file)}
	return nil
}

func (f *resultsFile) write(o batch.Outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = f.out.Write(append(line, '\n'))
	return f.failed(err)
}

// keep gives the file its name.
func (f *resultsFile) keep() error {
	err := f.out.Flush()
	if err == nil {
		err = f.file.Close()
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.name)
	}
	return f.failed(err)
}

// discard removes what was not kept.
func (f *resultsFile) discard() {
	if f == nil {
		return
	}
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
}

func (f *resultsFile) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--results: the file cannot be written: %w", reasonOf(err))
}

// reasonOf leaves out the names of files.
func reasonOf(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
