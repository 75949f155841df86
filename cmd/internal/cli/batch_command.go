package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
)

// batchRunHelp is wrapped to helpWidth.
const batchRunHelp = `Pay what stands in a file. All of it is checked before anything is sent. The same file under the
same key is the same payments however often it is run, and a run that was interrupted goes on.

What was sent before under the key is compared first, row by row and in order, before anything new
is sent: a file that differs there, or is shorter, is refused. Rows that were not sent yet are taken
as the file says now. So rows can be added at its end once the last batch that was sent is full,
that is, after 100, 200, 300… rows: then they become new payments. Added to a batch that is not
full they would change it, and the file is refused; give them a key of their own.

CSV, with a header row (names are case-sensitive):

  amount_decimal,currency,payment_method,customer,off_session,metadata.order
  99.00,usd,pm_card_visa,cus_123,true,A-1001
  12.50,eur,pm_card_mastercard,,,A-1002

There is amount in minor units (9900), or amount_decimal (99.00); currency and payment_method; and
any other member of an intent, off_session as true or false, metadata as metadata.NAME. JSON Lines
(.jsonl) has one intent on each line, with amount in minor units. At most 20 faults of a file are
shown at once.

The run's key K has at most 231 characters of printable ASCII without spaces and without "::".
Payments have no keys of their own: rows 1 to 100 are the batch K.000000, the next 100 K.000001, and
so on, under the parent K. Each row is the payment {batch}::{i}, i from 0 to 99: the payment
K.000005::7 is row 5*100 + 7 + 1 = 508. Neither the header nor blank lines are rows.

Up to 20 payments that did not succeed are shown at the end, each with its row; --results FILE gets
every row, as {"row","idempotency_key","id","status","reason","failure"} a line.

Only the API is needed (ONCEPAY_API_URL, ONCEPAY_API_KEY). The exit code is 0 when every payment has
its outcome, declined ones included; 1 when the run failed or payments wait for a person; 2 when the
file, the key or the command line must be changed first, in which case nothing new was sent.`

func batchRunCommand(s *shared) *cobra.Command {
	r := batchRun{shared: s}
	var format string
	var dryRun bool
	c := &cobra.Command{
		Use: "run FILE --key K", Short: "Pay what stands in a file (CSV or JSON Lines, - for standard input)", Args: Arguments(1, 1),
		Long: batchRunHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.check(c); err != nil {
				return err
			}
			if r.resultsName != "" && (r.noWait || dryRun) {
				return &app.UsageError{Text: "--results: goes without --no-wait and --dry-run, which know of no outcome"}
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
			if err := r.openResults(); err != nil {
				return err
			}
			defer r.results.discard()
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
	c.Flags().StringVar(&r.resultsName, "results", "", "write what became of every row to this file, as JSON Lines")
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
