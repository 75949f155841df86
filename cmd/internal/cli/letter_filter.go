package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// letterFilter are the flags that choose dead letters, in all commands that take some.
type letterFilter struct {
	payments.LetterFilter
	reason, id   string
	since, until string
}

// filterFlags are those that choose; how many is another matter.
var filterFlags = []string{"tenant", "reason", "since", "until", "id", "key", "batch", "text"}

func (f *letterFilter) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.TenantID, "tenant", "", "only this tenant's")
	c.Flags().StringVar(&f.reason, "reason", "", "only those of this reason")
	c.Flags().StringVar(&f.IdempotencyKey, "key", "", "only those of this idempotency key")
	c.Flags().StringVar(&f.Batch, "batch", "", "only those of this batch and of its payments: its id (bat_…) or its key")
	c.Flags().StringVar(&f.id, "id", "", "only the one of this id (dl_…), or those of this payment (pay_…)")
	c.Flags().StringVar(&f.Text, "text", "", "only those whose message or payload contains this, upper and lower case told apart")
	c.Flags().StringVar(&f.since, "since", "", "only those last seen at or after this RFC 3339 time, or this long ago (2h)")
	c.Flags().StringVar(&f.until, "until", "", "only those last seen before this RFC 3339 time, or this long ago")
}

func (f *letterFilter) check() (err error) {
	f.Reason = payments.Reason(f.reason)
	if reasons := schema.DeadReasons(); f.reason != "" && !slices.Contains(reasons, f.reason) {
		return &app.UsageError{Text: "--reason: must be one of " + strings.Join(reasons, ", ")}
	}
	if strings.HasPrefix(f.id, "dl_") {
		f.ID = f.id
	} else if f.id != "" {
		id, err := payments.ParseID(f.id)
		if err != nil {
			return &app.UsageError{Text: "--id: must be the id of a dead letter (dl_…) or of a payment (pay_…)"}
		}
		f.PaymentID = &id
	}
	for flag, text := range map[string]string{"--tenant": f.TenantID, "--key": f.IdempotencyKey, "--batch": f.Batch, "--text": f.Text, "--id": f.id} {
		if payments.ContainsCardNumberString(text) {
			return &app.UsageError{Text: flag + ": contains what looks like a card number, which is kept nowhere"}
		}
	}
	if f.Since, err = moment("--since", f.since); err != nil {
		return err
	}
	f.Until, err = moment("--until", f.until)
	return err
}

// checkChosen makes sure that somebody who changes many dead letters at once has said which. A flag that is there and empty is a variable that
// was not set, and must not mean all of them.
func (f *letterFilter) checkChosen(c *cobra.Command, args []string, all bool) error {
	if len(args) == 1 {
		if f.id != "" {
			return &app.UsageError{Text: "--id: goes without an id beside it"}
		}
		f.id = args[0]
	}
	chosen := f.id != "" || c.Flags().Changed("limit")
	for _, name := range filterFlags {
		if !c.Flags().Changed(name) {
			continue
		}
		if c.Flags().Lookup(name).Value.String() == "" {
			return &app.UsageError{Text: "--" + name + ": is empty; a filter that is given must choose something"}
		}
		chosen = true
		if all {
			return &app.UsageError{Text: "--all: goes without --" + name + ", which chooses"}
		}
	}
	if all && len(args) == 1 {
		return &app.UsageError{Text: "--all: goes without an id"}
	}
	if !chosen && !all {
		return &app.UsageError{Text: path(c) + "say which: --" + strings.Join(filterFlags, ", --") + ", --limit, or --all"}
	}
	f.State = payments.DeadLetterOpen
	return f.check()
}

// moment reads an RFC 3339 time, or a duration as so long ago.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	at, err := schema.ParseTime(text)
	if err != nil {
		return at, &app.UsageError{Text: flag + ": must be an RFC 3339 time such as 2026-01-31T03:00:00Z, or a duration such as 2h"}
	}
	return at, nil
}
