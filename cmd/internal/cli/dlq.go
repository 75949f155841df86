package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

func dlqCommand(s *shared) *cobra.Command {
	return Group("dlq", "Look at dead letters", dlqListCommand(s), dlqShowCommand(s))
}

// letterFilter are the flags that choose dead letters.
type letterFilter struct {
	request       postgres.DeadLettersRequest
	reason, state string
	since, until  string
	id            string
}

func dlqListCommand(s *shared) *cobra.Command {
	f := letterFilter{}
	c := &cobra.Command{
		Use: "list", Short: "List dead letters, last seen first; the open ones unless --state says otherwise", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				page, next, err := store.DeadLetters(c.Context(), f.request)
				if err != nil {
					return err
				}
				if s.json {
					list := schema.List[schema.DeadLetter]{Data: []schema.DeadLetter{}, NextCursor: cursor(next)}
					for _, d := range page {
						list.Data = append(list.Data, document.DeadLetter(d))
					}
					return console.JSON(s.out, list)
				}
				rows := make([][]string, len(page))
				for i, d := range page {
					rows[i] = []string{d.ID, orDash(d.TenantID), orDash(d.IdempotencyKey), string(d.Reason), string(d.State), when(d.LastSeen), d.Message}
				}
				return s.printList([]string{"ID", "TENANT", "KEY", "REASON", "STATE", "LAST SEEN (UTC)", "MESSAGE"}, rows, next)
			})
		},
	}
	f.bind(c)
	return c
}

func (f *letterFilter) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.request.TenantID, "tenant", "", "only this tenant's")
	c.Flags().StringVar(&f.reason, "reason", "", "only those of this reason")
	c.Flags().StringVar(&f.state, "state", string(payments.DeadLetterOpen), "open, suspect, replayed, discarded, or all")
	c.Flags().StringVar(&f.request.IdempotencyKey, "key", "", "only those of this idempotency key")
	c.Flags().StringVar(&f.id, "id", "", "only the one of this id (dl_…), or those of this payment (pay_…)")
	c.Flags().StringVar(&f.request.Text, "text", "", "only those whose message or payload contains this, upper and lower case told apart")
	c.Flags().StringVar(&f.since, "since", "", "only those last seen at or after this RFC 3339 time, or this long ago (2h)")
	c.Flags().StringVar(&f.until, "until", "", "only those last seen before this RFC 3339 time, or this long ago")
	c.Flags().IntVar(&f.request.Limit, "limit", payments.LimitDefault, "how many, at most 1000")
	c.Flags().StringVar(&f.request.Cursor, "cursor", "", "go on from a list's next_cursor")
}

func (f *letterFilter) check() (err error) {
	f.request.Reason, f.request.State = payments.Reason(f.reason), payments.DeadLetterState(f.state)
	switch f.request.State {
	case payments.DeadLetterOpen, payments.DeadLetterSuspect, payments.DeadLetterReplayed, payments.DeadLetterDiscarded:
	case "all":
		f.request.State = ""
	default:
		return &app.UsageError{Text: "--state: must be open, suspect, replayed, discarded or all"}
	}
	if reasons := schema.DeadReasons(); f.reason != "" && !slices.Contains(reasons, f.reason) {
		return &app.UsageError{Text: "--reason: must be one of " + strings.Join(reasons, ", ")}
	}
	if f.request.Limit < 1 || f.request.Limit > payments.LimitMax {
		return &app.UsageError{Text: fmt.Sprintf("--limit: must be from 1 to %d", payments.LimitMax)}
	}
	if strings.HasPrefix(f.id, "dl_") {
		f.request.ID = f.id
	} else if f.id != "" {
		id, err := payments.ParseID(f.id)
		if err != nil {
			return &app.UsageError{Text: "--id: must be the id of a dead letter (dl_…) or of a payment (pay_…)"}
		}
		f.request.PaymentID = &id
	}
	if f.request.Since, err = moment("--since", f.since); err != nil {
		return err
	}
	f.request.Until, err = moment("--until", f.until)
	return err
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

func dlqShowCommand(s *shared) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one dead letter with its headers and payload", Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				d, err := store.DeadLetter(c.Context(), args[0])
				if err != nil {
					return err
				}
				if s.json {
					return console.JSON(s.out, document.DeadLetterInFull(d))
				}
				return s.printLetter(d)
			})
		},
	}
}

func (s *shared) printLetter(d payments.DeadLetter) error {
	lines := [][2]string{
		{"dead letter", d.ID}, {"reason", string(d.Reason)}, {"what to do", d.Message}, {"state", string(d.State)}, {"tenant", d.TenantID},
		{"key", d.IdempotencyKey}, {"subject", d.Origin.Subject}, {"stream", d.Origin.Stream}, {"sequence", strconv.FormatUint(d.Origin.Sequence, 10)},
		{"tries", strconv.Itoa(d.Tries)}, {"replays", strconv.Itoa(d.Replays)}, {"first seen", when(d.FirstSeen)}, {"last seen", when(d.LastSeen)},
	}
	if d.PaymentID != nil {
		lines = append(lines, [2]string{"payment", d.PaymentID.String()})
	}
	for _, l := range lines {
		if l[1] != "" && l[1] != "0" {
			fmt.Fprintf(s.out, "%-15s %s\n", l[0], console.Safe(l[1]))
		}
	}
	for name, values := range document.DeadLetterInFull(d).Headers {
		for _, v := range values {
			fmt.Fprintf(s.out, "%-15s %s: %s\n", "header", console.Safe(name), console.Safe(v))
		}
	}
	switch {
	case d.Payload == nil && d.PayloadLength > 0:
		fmt.Fprintf(s.out, "\npayload of %d bytes not kept: SHA-256 %x\n", d.PayloadLength, d.PayloadSHA256)
	case utf8.Valid(d.Payload):
		fmt.Fprintf(s.out, "\n%s\n", console.Safe(string(d.Payload)))
	default:
		fmt.Fprintf(s.out, "\n%q\n", d.Payload)
	}
	return nil
}
