package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// printPreview shows to a person what a replay would do; sets tells that it changes members first.
func printPreview(w io.Writer, p payments.ReplayPreview, sets bool) error {
	line := func(n int, one, many string) {
		if n > 0 {
			fmt.Fprintf(w, "  %s\n", console.Grouped(plural(int64(n), one, many)))
		}
	}
	if p.Count == 0 {
		fmt.Fprintln(w, "no open dead letter that can be replayed matches")
	} else {
		fmt.Fprintf(w, "%s of %s to replay: %s\n", console.Grouped(plural(int64(p.Count+p.Skipped), "dead letter", "dead letters")),
			aboutWhat(p), atMost(p))
	}
	if sets {
		line(p.Count, "message is changed by --set before it is read", "messages are changed by --set before they are read")
	}
	line(p.Settled, "payment has its outcome already: Stripe is not asked", "payments have their outcome already: Stripe is not asked")
	line(p.Review, "payment waits for a person: nothing is sent, `oncepay payments resolve` decides", "payments wait for a person: nothing is sent, `oncepay payments resolve` decides")
	line(p.Conflict, "dead letter names another request under a used key: nothing is sent for it", "dead letters name another request under a used key: nothing is sent for them")
	line(p.Refused, "dead letter can be no payment as it is: it will be dead again", "dead letters can be no payments as they are: they will be dead again")
	const why = "nothing of a card number's message is kept"
	if sets {
		line(p.Skipped, "dead letter is skipped: --set changes no stored payment and no batch, or "+why, "dead letters are skipped: --set changes no stored payment and no batch, or "+why)
	} else {
		line(p.Skipped, "dead letter is skipped: "+why, "dead letters are skipped: "+why)
	}
	line(p.PassedOver, "more is in another replay, and is left to it", "more are in another replay, and are left to it")
	if p.Count == 0 {
		return nil
	}
	fmt.Fprintln(w)
	rows := make([][]string, 0, len(p.ByReason))
	for _, reason := range slices.SortedFunc(maps.Keys(p.ByReason), func(a, b payments.Reason) int {
		if d := p.ByReason[b] - p.ByReason[a]; d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	}) {
		rows = append(rows, []string{string(reason), console.Grouped(fmt.Sprint(p.ByReason[reason]))})
	}
	return console.Table(w, []string{"REASON", "DEAD LETTERS"}, rows)
}

// aboutWhat counts what the dead letters are about, which operations may be among, or all of it.
func aboutWhat(p payments.ReplayPreview) string {
	if p.Operations > 0 && p.Operations == p.Payments {
		return console.Grouped(plural(int64(p.Payments), "operation", "operations"))
	}
	text := console.Grouped(plural(int64(p.Payments), "payment", "payments"))
	if p.Operations > 0 {
		text += " (" + console.Grouped(plural(int64(p.Operations), "capture, cancel or refund", "captures, cancels and refunds")) + " among them)"
	}
	return text
}

// atMost is the money that a replay can move. Captures, cancels and refunds charge nobody: where there are some, it says so.
func atMost(p payments.ReplayPreview) string {
	moved, one, many := "charged", "payment", "payments"
	switch {
	case p.Operations > 0 && p.Operations == p.Payments:
		moved, one, many = "captured or given back", "capture or refund", "captures and refunds"
	case p.Operations > 0:
		moved, one, many = "charged, captured or given back", "payment, capture or refund", "payments, captures and refunds"
	}
	unpriced := console.Grouped(plural(int64(p.Unpriced), one, many)) + " whose amount nobody can tell"
	switch {
	case len(p.Amount) > 0 && p.Unpriced > 0:
		return "at most " + money(p.Amount, 0) + " is " + moved + ", and " + unpriced
	case len(p.Amount) > 0:
		return "at most " + money(p.Amount, 0) + " is " + moved
	case p.Unpriced > 0:
		return "at most " + unpriced + " can be " + moved
	}
	return "nothing is " + moved
}
