package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

func replaysCommand(s *shared) *cobra.Command {
	return Group("replays", "Watch and steer the replays of dead letters", replaysListCommand(s), replaysShowCommand(s),
		replaysChangeCommand(s, "pause", "Take up no more dead letters of a replay until it is resumed", "paused", operators.PauseReplay),
		replaysChangeCommand(s, "resume", "Let a paused replay go on", "goes on", operators.ResumeReplay),
		replaysChangeCommand(s, "cancel", "End a replay; what it has taken up already goes on", "canceled", operators.CancelReplay))
}

func replaysListCommand(s *shared) *cobra.Command {
	var limit int
	var from string
	c := &cobra.Command{
		Use: "list", Short: "List replays, newest first", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error {
				page, next, err := store.Replays(c.Context(), limit, from)
				if err != nil {
					return err
				}
				return printPage(s, page, next, document.Replay, columns[payments.Replay]{
					[]console.Column{{Head: "ID"}, {Head: "STATE"}, {Head: "DEAD LETTERS", Goes: 4}, {Head: "DONE"}, {Head: "BEGUN (UTC)", Goes: 2},
						{Head: "BY", Least: 10, Goes: 3}, {Head: "NOTE", Least: 12, Goes: 1, Below: true}},
					func(r payments.Replay) []string {
						return []string{r.ID, string(r.State), console.Grouped(fmt.Sprint(r.Total)), console.Grouped(fmt.Sprint(done(r))),
							when(r.CreatedAt), r.Actor, orDash(r.Reason)}
					},
				})
			})
		},
	}
	bindPage(c, &limit, &from, "")
	return c
}

// replaysShow is one call of replays show.
type replaysShow struct {
	*shared
	items, follow bool
	result        string
	limit         int
	cursor        string
}

func replaysShowCommand(s *shared) *cobra.Command {
	r := replaysShow{shared: s}
	c := &cobra.Command{
		Use: "show ID", Short: "Show how far a replay is, and what became of each dead letter", Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.check(c); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error { return r.run(c.Context(), store, args[0]) })
		},
	}
	c.Flags().BoolVar(&r.items, "items", false, "list its dead letters, each with its result")
	c.Flags().StringVar(&r.result, "result", "", "with --items: only those of this result")
	c.Flags().BoolVar(&r.follow, "follow", false, "watch it until it ends; the exit code is as that of dlq replay")
	bindPage(c, &r.limit, &r.cursor, "with --items: ")
	return c
}

func (r *replaysShow) check(c *cobra.Command) error {
	if !r.items {
		for _, name := range []string{"result", "limit", "cursor"} {
			if c.Flags().Changed(name) {
				return &app.UsageError{Text: "--" + name + ": goes with --items"}
			}
		}
	}
	if r.items && r.follow {
		return &app.UsageError{Text: "--follow: goes without --items"}
	}
	if !checkResult(r.result) {
		names := make([]string, len(replayResults))
		for i, result := range replayResults {
			names[i] = string(result)
		}
		return &app.UsageError{Text: "--result: must be one of " + strings.Join(names, ", ")}
	}
	return checkLimit(r.limit)
}

func (r *replaysShow) run(ctx context.Context, store operators, id string) error {
	job, err := store.Replay(ctx, id)
	switch {
	case err != nil:
		return err
	case r.items:
		return r.printItems(ctx, store, job)
	case r.follow:
		return r.followReplay(ctx, store, job)
	case r.json:
		return console.JSON(r.out, document.Replay(job))
	}
	r.printReplay(job, time.Now())
	return r.printResults(job)
}

func (r *replaysShow) printItems(ctx context.Context, store operators, job payments.Replay) error {
	page, next, err := store.ReplayItems(ctx, job.ID, payments.ReplayResult(r.result), r.limit, r.cursor)
	if err != nil {
		return err
	}
	return printPage(r.shared, page, next, document.ReplayItem, columns[payments.ReplayItem]{
		[]console.Column{{Head: "DEAD LETTER"}, {Head: "PAYMENT", Goes: 3, Below: true}, {Head: "RESULT"}, {Head: "STATUS", Goes: 2},
			{Head: "WHY", Least: 20, Goes: 1, Below: true}},
		func(item payments.ReplayItem) []string {
			payment := "-"
			if item.PaymentID != nil {
				payment = item.PaymentID.Format(item.Kind)
			}
			return []string{item.LetterID, payment, orDash(string(item.Result)), orDash(string(item.Status)), orDash(item.Detail)}
		},
	})
}

// printReplay shows a replay to a person.
func (s *shared) printReplay(r payments.Replay, now time.Time) {
	count := func(n int) string { return console.Grouped(plural(int64(n), "dead letter", "dead letters")) }
	lines := [][2]string{
		{"replay", r.ID}, {"state", string(r.State)}, {"by", r.Actor}, {"note", r.Reason}, {"chosen by", filterText(r.Filter)}, {"begun", when(r.CreatedAt)},
		{"dead letters", console.Grouped(fmt.Sprint(r.Total))}, {"done", console.Grouped(fmt.Sprint(done(r)))},
	}
	if r.NotBegun > 0 {
		lines = append(lines, [2]string{"not begun", console.Grouped(fmt.Sprint(r.NotBegun)) + " (canceled)"})
	}
	if len(r.Amount) > 0 {
		lines = append(lines, [2]string{"amount", "at most " + money(r.Amount, 0)})
	}
	if !r.FinishedAt.IsZero() {
		lines = append(lines, [2]string{"ended", when(r.FinishedAt)})
	}
	if r.Rate > 0 {
		lines = append(lines, [2]string{"rate", fmt.Sprintf("at most %g a second", r.Rate)})
	}
	if speed := speedOf(r, now); speed != "" {
		lines = append(lines, [2]string{"speed", speed})
	}
	if r.PassedOver > 0 {
		lines = append(lines, [2]string{"left out", count(r.PassedOver) + " of another replay"})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		lines = append(lines, [2]string{"set", name + "=" + r.Set[name]})
	}
	s.printLines(lines)
}

// speedOf says how fast a replay is and how long it will take, counted from its beginning.
func speedOf(r payments.Replay, now time.Time) string {
	if !r.FinishedAt.IsZero() {
		now = r.FinishedAt
	}
	took, done := now.Sub(r.CreatedAt), done(r)
	if took < time.Second || done == 0 {
		return ""
	}
	perSecond := float64(done) / took.Seconds()
	text := fmt.Sprintf("%.0f/s", perSecond)
	if perSecond < 1 {
		text = fmt.Sprintf("%.0f/min", 60*perSecond)
	}
	if left := float64(r.Total-done) / perSecond; r.State == payments.ReplayRunning && left >= 1 && left < 1e6 {
		text += ", about " + (time.Duration(left) * time.Second).String() + " left"
	}
	return text
}

// filterText is a filter as the flags that make it.
func filterText(f payments.LetterFilter) string {
	id := f.ID
	if f.PaymentID != nil {
		id = f.PaymentID.String()
	}
	var flags []string
	for _, flag := range [][2]string{{"tenant", f.TenantID}, {"reason", string(f.Reason)}, {"id", id}, {"key", f.IdempotencyKey}, {"batch", f.Batch}, {"text", f.Text}, {"since", moments(f.Since)}, {"until", moments(f.Until)}} {
		if flag[1] != "" {
			flags = append(flags, "--"+flag[0]+" "+shellWord(flag[1]))
		}
	}
	if len(flags) == 0 {
		return "--all"
	}
	return strings.Join(flags, " ")
}

func moments(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// replaysChangeCommand is one of the commands that steer a replay.
func replaysChangeCommand(s *shared, verb, short, did string, change func(operators, context.Context, string, payments.Operation) (payments.Replay, error)) *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: verb + " ID", Short: short, Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			op, err := s.operation(c, "--note", note, false)
			if err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error {
				job, err := change(store, c.Context(), args[0], op)
				if err != nil {
					return failure(err)
				}
				if s.json {
					return console.JSON(s.out, document.Replay(job))
				}
				fmt.Fprintf(s.out, "%s %s: %s\n", job.ID, did, progress(job))
				return nil
			})
		},
	}
	bindActor(c)
	c.Flags().StringVar(&note, "note", "", "why, in your own words, for the audit")
	return c
}

// failure makes a refusal that depends on how things stand exit code 1: the command line is in order.
func failure(err error) error {
	if payments.ErrorCode(err) == payments.CodeInvalid {
		return NewExit(exitFailed, "oncepay: "+err.Error())
	}
	return err
}

// printDetached says how to follow a replay later.
func (s *shared) printDetached(r payments.Replay) error {
	if s.json {
		return console.JSON(s.out, document.Replay(r))
	}
	fmt.Fprintln(s.out, r.ID)
	fmt.Fprintf(s.err, "`oncepay replays show %s --follow` follows it\n", r.ID)
	return nil
}
