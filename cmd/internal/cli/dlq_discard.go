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
	"github.com/oncepay/oncepay/schema"
)

// dlqDiscardHelp is wrapped to helpWidth.
const dlqDiscardHelp = `Give open dead letters up for good. A stalled payment is canceled by it. What may have been
charged is refused and left as it is: only Stripe's records settle that.

Dead letters are kept, as discarded; ` + "`oncepay dlq list --state discarded`" + ` lists them.`

// dlqDiscard is one call of dlq discard.
type dlqDiscard struct {
	*shared
	filter   letterFilter
	limit    int
	op       payments.Operation
	note     string
	all, yes bool
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
	// Whoever names one dead letter knows which; where nobody can be asked, that is enough.
	yes := d.yes || matching == 0 || d.filter.ID != "" && !d.asks(in)
	d.printPreview(preview)
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

// printPreview says what discarding does to payments, before it is asked for.
func (d *dlqDiscard) printPreview(p payments.DiscardPreview) {
	for _, line := range []struct {
		n              int
		one, many, say string
	}{
		{p.Settled, "has", "have", "the outcome already, and keep it: the dead letter goes"},
		{p.Canceled, "has", "have", "a stalled payment, which is canceled"},
		{p.Refused, "is", "are", "refused: what may have been charged or goes on, or a replay has it"},
	} {
		if line.n > 0 {
			fmt.Fprintf(d.err, "  %s %s\n", console.Grouped(plural(int64(line.n), "of them "+line.one, "of them "+line.many)), line.say)
		}
	}
}

// print says what came of it. One that was named and is refused is a failure; of many it is told.
func (d *dlqDiscard) print(result payments.DiscardResult) error {
	if len(result.Refused) > 0 && d.filter.ID != "" {
		return NewExit(exitFailed, "oncepay: refused: "+result.Refused[0].Why)
	}
	if d.json {
		doc := schema.Discarded{Filter: document.LetterFilter(d.filter.LetterFilter), Discarded: result.Discarded, Canceled: result.Canceled, Refused: []schema.RefusedLetter{}}
		for _, r := range result.Refused {
			doc.Refused = append(doc.Refused, schema.RefusedLetter{ID: r.LetterID, Message: r.Why})
		}
		return console.JSON(d.out, doc)
	}
	fmt.Fprintf(d.out, "%s discarded", console.Grouped(plural(int64(result.Discarded), "dead letter", "dead letters")))
	if result.Canceled > 0 {
		fmt.Fprintf(d.out, ", %s canceled", console.Grouped(plural(int64(result.Canceled), "payment", "payments")))
	}
	fmt.Fprintln(d.out)
	for i, r := range result.Refused {
		if i == refusedShown {
			fmt.Fprintf(d.err, "and %d more were refused\n", len(result.Refused)-i)
			break
		}
		fmt.Fprintln(d.err, errorLine("refused: "+r.LetterID+": "+r.Why))
	}
	return nil
}

// refusedShown is how many refusals are told one by one.
const refusedShown = 20
