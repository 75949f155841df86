package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
)

func dlqCommand(s *shared) *cobra.Command {
	return Group("dlq", "Look at dead letters, replay them or discard them", dlqListCommand(s), dlqShowCommand(s), dlqReplayCommand(s), dlqDiscardCommand(s))
}

func dlqListCommand(s *shared) *cobra.Command {
	var f letterFilter
	var state string
	var r postgres.DeadLettersRequest
	c := &cobra.Command{
		Use: "list", Short: "List dead letters, last seen first; the open ones unless --state says otherwise", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := checkLimit(r.Limit); err != nil {
				return err
			}
			if f.State, err = checkState(state); err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			r.LetterFilter = f.LetterFilter
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				page, next, err := store.DeadLetters(c.Context(), r)
				if err != nil {
					return err
				}
				return printPage(s, page, next, document.DeadLetter, letterColumns)
			})
		},
	}
	f.bind(c)
	c.Flags().StringVar(&state, "state", string(payments.DeadLetterOpen), "open, suspect, replayed, discarded, or all")
	bindPage(c, &r.Limit, &r.Cursor, "")
	return c
}

var letterColumns = columns[payments.DeadLetter]{
	[]console.Column{{Head: "ID"}, {Head: "TENANT", Goes: 4}, {Head: "KEY", Least: 8, Ends: true}, {Head: "REASON"}, {Head: "STATE", Goes: 3},
		{Head: "LAST SEEN (UTC)", Goes: 2}, {Head: "MESSAGE", Least: 24, Goes: 1, Below: true}},
	func(d payments.DeadLetter) []string {
		return []string{d.ID, orDash(d.TenantID), orDash(d.IdempotencyKey), string(d.Reason), string(d.State), when(d.LastSeen), d.Message}
	},
}

// letterStates are what --state takes.
var letterStates = []payments.DeadLetterState{payments.DeadLetterOpen, payments.DeadLetterSuspect, payments.DeadLetterReplayed, payments.DeadLetterDiscarded}

// checkState checks which dead letters a list takes.
func checkState(state string) (payments.DeadLetterState, error) {
	switch {
	case state == "all":
		return "", nil
	case slices.Contains(letterStates, payments.DeadLetterState(state)):
		return payments.DeadLetterState(state), nil
	}
	return "", &app.UsageError{Text: "--state: must be open, suspect, replayed, discarded or all"}
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
	some := func(n uint64) string { // none is not worth a line
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	lines := [][2]string{
		{"dead letter", d.ID}, {"reason", string(d.Reason)}, {"what to do", d.Message}, {"state", string(d.State)}, {"tenant", d.TenantID},
		{"key", d.IdempotencyKey}, {"subject", d.Origin.Subject}, {"stream", d.Origin.Stream}, {"sequence", some(d.Origin.Sequence)},
		{"tries", some(uint64(d.Tries))}, {"replays", some(uint64(d.Replays))}, {"first seen", utc(d.FirstSeen)}, {"last seen", utc(d.LastSeen)},
	}
	if d.PaymentID != nil {
		lines = append(lines, [2]string{"payment", d.PaymentID.Format(d.PaymentKind)})
	}
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(s.out, "%-15s %s\n", l[0], console.Wrapped(console.Safe(l[1]), s.lineWidth(s.out), linesIndent))
		}
	}
	headers := document.DeadLetterInFull(d).Headers
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, v := range headers[name] {
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
