package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

// dlqDiscardHelp is wrapped to helpWidth.
const dlqDiscardHelp = `Give open dead letters up for good. A stalled payment is canceled by it. What may have been
charged is refused and left as it is: only Stripe's records settle that. --dry-run shows all of
this, and does nothing.

Dead letters are kept, as discarded; ` + "`oncepay dlq list --state discarded`" + ` lists them.`

// dlqDiscard is one call of dlq discard.
type dlqDiscard struct {
	*shared
	filter   letterFilter
	limit    int
	op       payments.Operation
	note     string
	all, yes bool
	dryRun   bool
}

func dlqDiscardCommand(s *shared) *cobra.Command {
	d := dlqDiscard{shared: s}
	c := &cobra.Command{
		Use: "discard [ID | filters | --all]", Short: "Give dead letters up for good; a stalled payment is canceled", Args: Arguments(0, 1), Long: dlqDiscardHelp,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := d.filter.checkChosen(c, args, d.all); err != nil {
				return err
			}
			if c.Flags().Changed("limit") && d.limit < 1 {
				return &app.UsageError{Text: "--limit: must be at least 1"}
			}
			if d.op, err = s.operation(c, "--note", d.note, false); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error { return d.run(c.Context(), store, c.InOrStdin()) })
		},
	}
	d.filter.bind(c)
	bindActor(c)
	c.Flags().IntVar(&d.limit, "limit", 0, "at most so many, those seen first")
	c.Flags().BoolVar(&d.all, "all", false, "all open dead letters")
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "show what would be done, and do nothing")
	c.Flags().BoolVar(&d.yes, "yes", false, "do not ask")
	c.Flags().StringVar(&d.note, "note", "", "why, in your own words, for the audit")
	return c
}

func (d *dlqDiscard) run(ctx context.Context, store operators, in io.Reader) error {
	preview, err := store.PreviewDiscard(ctx, d.filter.LetterFilter, d.limit)
	if err != nil {
		return err
	}
	matching := int64(preview.Count)
	if matching == 0 && d.filter.ID != "" {
		if err := notOpen(ctx, store, d.filter.ID); err != nil {
			return err
		}
	}
	if d.dryRun {
		return d.printDryRun(preview)
	}
	// Whoever names one dead letter knows which; where nobody can be asked, that is enough.
	yes := d.yes || matching == 0 || d.filter.ID != "" && !d.asks(in)
	d.printPreview(d.err, preview)
	question := "discard " + console.Grouped(plural(matching, "dead letter", "dead letters")) + ", " + money(preview.Amount, preview.Unpriced) + "?"
	if err := d.confirm(ctx, in, yes, question, "nothing was discarded"); err != nil {
		return err
	}
	result, err := store.Discard(ctx, d.filter.LetterFilter, d.limit, d.op)
	if err != nil {
		return err
	}
	return d.print(result)
}

// printDryRun shows what would be done, and what would be refused.
func (d *dlqDiscard) printDryRun(p payments.DiscardPreview) error {
	if d.json {
		return console.JSON(d.out, document.DiscardPreview(d.filter.LetterFilter, p))
	}
	if p.Count == 0 {
		fmt.Fprintln(d.out, "no open dead letter matches")
		return nil
	}
	fmt.Fprintf(d.out, "%s to discard: %s\n", console.Grouped(plural(int64(p.Count), "dead letter", "dead letters")), money(p.Amount, p.Unpriced))
	d.printPreview(d.out, p)
	printRefused(d.out, p.Refused, "would be refused")
	return nil
}

// printPreview says what discarding does to payments, before it is asked for.
func (d *dlqDiscard) printPreview(w io.Writer, p payments.DiscardPreview) {
	for _, line := range []struct {
		n              int
		one, many, say string
	}{
		{p.Settled, "has", "have", "the outcome already, and keep it: the dead letter goes"},
		{p.Canceled, "has", "have", "a stalled payment, which is canceled"},
		{len(p.Refused), "is", "are", "refused: what may have been charged or goes on, or a replay has it"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "  %s %s\n", console.Grouped(plural(int64(line.n), "of them "+line.one, "of them "+line.many)), line.say)
		}
	}
}

// print says what came of it. One that was named and is refused is a failure; of many it is told.
func (d *dlqDiscard) print(result payments.DiscardResult) error {
	if len(result.Refused) > 0 && d.filter.ID != "" {
		return NewExit(exitFailed, "oncepay: refused: "+result.Refused[0].Why)
	}
	if d.json {
		return console.JSON(d.out, document.Discarded(d.filter.LetterFilter, result))
	}
	fmt.Fprintf(d.out, "%s discarded", console.Grouped(plural(int64(result.Discarded), "dead letter", "dead letters")))
	if result.Canceled > 0 {
		fmt.Fprintf(d.out, ", %s canceled", console.Grouped(plural(int64(result.Canceled), "payment", "payments")))
	}
	fmt.Fprintln(d.out)
	printRefused(d.err, result.Refused, "refused")
	return nil
}

// printRefused tells refusals one by one, as far as that can be read.
func printRefused(w io.Writer, list []payments.RefusedLetter, word string) {
	for i, r := range list {
		if i == refusedShown {
			fmt.Fprintf(w, "and %s more\n", console.Grouped(fmt.Sprint(len(list)-i)))
			break
		}
		fmt.Fprintln(w, errorLine(word+": "+r.LetterID+": "+r.Why))
	}
}

// refusedShown is how many refusals are told one by one.
const refusedShown = 20
