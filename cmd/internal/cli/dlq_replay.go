package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// dlqReplayHelp is wrapped to helpWidth.
const dlqReplayHelp = `Take open dead letters up again, each under its own key: what was charged is not charged again.
What would be done is shown first: how many, of how many payments, what is charged at most, and how
many have their outcome already. Each payment is charged once, however many dead letters it has.

A server with the role worker does it, as a job that goes on whether or not it is watched here:
Ctrl-C stops the watching alone. Which dead letters it is about is fixed when it is made; another
replay that is not finished keeps its own. ` + "`oncepay replays`" + ` shows, pauses, resumes and cancels
it.

  oncepay dlq replay --tenant acme --reason attempts_exhausted --dry-run
  oncepay dlq replay --tenant acme --reason attempts_exhausted --rate 20 --note "key was mended"
  oncepay dlq replay dl_4c7f0a12 --set description="Order 17"

--set changes a member of the messages before they are read again. It is for messages that could
never become a payment. A payment that is stored is never changed, nor is a batch: with --set their
dead letters are skipped and stay open; replay them without it.

The exit code is 0 when the replay completed, whatever became of each dead letter; 1 when it was
cancelled or nobody followed it to its end; 2 without a filter or --all, or when nobody can be
asked and --yes is missing.`

// dlqReplay is one call of dlq replay.
type dlqReplay struct {
	*shared
	filter      letterFilter
	request     payments.NewReplay
	sets        []string
	note        string
	all, dryRun bool
	yes, detach bool
}

func dlqReplayCommand(s *shared) *cobra.Command {
	r := dlqReplay{shared: s}
	c := &cobra.Command{
		Use: "replay [ID | filters | --all]", Short: "Take dead letters up again under their own keys", Args: Arguments(0, 1), Long: dlqReplayHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.check(c, args); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error { return r.run(c.Context(), store, c.InOrStdin()) })
		},
	}
	r.filter.bind(c)
	bindActor(c)
	c.Flags().IntVar(&r.request.Limit, "limit", 0, "at most so many, those seen first")
	c.Flags().BoolVar(&r.all, "all", false, "all open dead letters")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "show what would be done, and do nothing")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	c.Flags().Float64Var(&r.request.Rate, "rate", 0, "at most so many a second (default as fast as can be)")
	c.Flags().BoolVar(&r.detach, "detach", false, "print the replay's id and do not follow it")
	c.Flags().StringArrayVar(&r.sets, "set", nil, "member=value: change this member of the messages first (repeatable)")
	c.Flags().StringVar(&r.note, "note", "", "why, in your own words, for the audit")
	return c
}

func (r *dlqReplay) check(c *cobra.Command, args []string) (err error) {
	if err := r.filter.checkChosen(c, args, r.all); err != nil {
		return err
	}
	switch {
	case c.Flags().Changed("limit") && r.request.Limit < 1:
		return &app.UsageError{Text: "--limit: must be at least 1"}
	case c.Flags().Changed("rate") && !(r.request.Rate > 0 && r.request.Rate <= rateMax):
		return &app.UsageError{Text: fmt.Sprintf("--rate: must be more than 0 and at most %d dead letters a second", rateMax)}
	case r.dryRun && r.detach:
		return &app.UsageError{Text: "--detach: goes without --dry-run, which makes no replay"}
	}
	if r.request.Set, err = members(r.sets); err != nil {
		return err
	}
	r.request.Filter = r.filter.LetterFilter
	r.request.Operation, err = r.operation(c, "--note", r.note, false)
	return err
}

// rateMax is more than any installation does.
const rateMax = 100_000

// members reads member=value.
func members(sets []string) (map[string]string, error) {
	changes := map[string]string{}
	for _, set := range sets {
		name, value, found := strings.Cut(set, "=")
		if !found || name == "" {
			return nil, &app.UsageError{Text: "--set: must be member=value, as description=text"}
		}
		if payments.ContainsCardNumberString(set) {
			return nil, &app.UsageError{Text: "--set: contains what looks like a card number, which is kept nowhere"}
		}
		if wrong := schema.CheckEdit(name, value); wrong != nil {
			return nil, &app.UsageError{Text: "--set: " + wrong.Placeless()}
		}
		if _, twice := changes[name]; twice {
			return nil, &app.UsageError{Text: "--set: names a member twice"}
		}
		changes[name] = value
	}
	if field, message := payments.CheckEdit(changes); field != "" {
		return nil, &app.UsageError{Text: "--set: " + field + ": " + message}
	}
	return changes, nil
}

func (r *dlqReplay) run(ctx context.Context, store operators, in io.Reader) error {
	preview, err := store.PreviewReplay(ctx, r.request)
	if err != nil {
		return err
	}
	if preview.Count+preview.Skipped+preview.PassedOver == 0 && r.request.Filter.ID != "" {
		if err := notOpen(ctx, store, r.request.Filter.ID); err != nil {
			return err
		}
	}
	if r.dryRun {
		if r.json {
			return console.JSON(r.out, document.ReplayPreview(r.request.Filter, preview))
		}
		return printPreview(r.out, preview, len(r.request.Set) > 0)
	}
	if err := printPreview(r.err, preview, len(r.request.Set) > 0); err != nil {
		return err
	}
	if preview.Count > 0 {
		if err := r.confirm(ctx, in, r.yes, "replay "+console.Grouped(plural(int64(preview.Count+preview.Skipped), "dead letter", "dead letters"))+"?", "nothing was replayed"); err != nil {
			return err
		}
	}
	job, err := store.CreateReplay(ctx, r.request)
	if err != nil {
		return err
	}
	if r.detach {
		return r.printDetached(job)
	}
	return r.followReplay(ctx, store, job)
}

// notOpen says why a dead letter that was named is not among the open ones.
func notOpen(ctx context.Context, store operators, id string) error {
	d, err := store.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	return NewExit(exitFailed, "oncepay: the dead letter is "+string(d.State)+", and only open ones are taken: `oncepay dlq show "+shellWord(d.ID)+"` shows it")
}

// confirm asks before something that cannot be taken back. Where nobody can be asked, --yes has to say it.
func (s *shared) confirm(ctx context.Context, in io.Reader, yes bool, question, otherwise string) error {
	if yes {
		return nil
	}
	if !s.asks(in) {
		return &app.UsageError{Text: "--yes: is required where there is no terminal to ask on; " + otherwise}
	}
	agreed, err := console.Confirm(ctx, in, s.err, question)
	if err != nil {
		return NewExit(exitFailed, "oncepay: interrupted; "+otherwise)
	}
	if !agreed {
		return NewExit(exitFailed, "oncepay: "+otherwise)
	}
	return nil
}

// money writes sums for people, and of how many the amount is not known.
func money(byCurrency map[string]int64, unpriced int) string {
	var texts []string
	for _, currency := range slices.Sorted(maps.Keys(byCurrency)) {
		texts = append(texts, console.Grouped(payments.FormatAmount(byCurrency[currency], currency)))
	}
	switch {
	case unpriced > 0 && len(texts) > 0:
		return strings.Join(texts, " + ") + " and " + console.Grouped(fmt.Sprint(unpriced)) + " whose amount nobody can tell"
	case unpriced > 0:
		return "of an amount that nobody can tell"
	case len(texts) == 0:
		return "of no known amount"
	}
	return strings.Join(texts, " + ")
}
