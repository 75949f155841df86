package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

func batchCommand(s *shared) *cobra.Command {
	return Group("batch", "Pay what stands in a file, and see how far it is", batchRunCommand(s), batchShowCommand(s))
}

// runDocument is a run as --json prints it: the batches under one parent together. What is not known is left out.
type runDocument struct {
	Parent   string                       `json:"parent"`
	Batches  int                          `json:"batches"`
	Count    int64                        `json:"count"`
	Amount   map[string]int64             `json:"amount,omitempty"`   // of the file, in minor units by currency
	Accepted *int64                       `json:"accepted,omitempty"` // payments
	DryRun   bool                         `json:"dry_run,omitempty"`
	ByStatus map[string]batch.StatusTotal `json:"by_status,omitempty"`
	Complete *bool                        `json:"complete,omitempty"`
}

// printTotals shows payments and money by status.
func (s *shared) printTotals(byStatus map[string]batch.StatusTotal) error {
	var rows [][]string
	for _, status := range statusesOf(byStatus) {
		total := byStatus[status]
		rows = append(rows, []string{status, strconv.FormatInt(total.Count, 10), amounts(total.Amount)})
	}
	return console.Table(s.out, []string{"STATUS", "PAYMENTS", "AMOUNT"}, rows)
}

// statusesOf lists what is there in the order of the state machine.
func statusesOf(byStatus map[string]batch.StatusTotal) []string {
	order := func(status string) int {
		if i := slices.Index(payments.Statuses(), payments.Status(status)); i >= 0 {
			return i
		}
		return 0 // processing is a received or waiting payment
	}
	return slices.SortedFunc(maps.Keys(byStatus), func(a, b string) int {
		if d := order(a) - order(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// amounts writes sums for people.
func amounts(byCurrency map[string]int64) string {
	var texts []string
	for _, currency := range slices.Sorted(maps.Keys(byCurrency)) {
		texts = append(texts, payments.FormatAmount(byCurrency[currency], currency))
	}
	return orDash(strings.Join(texts, ", "))
}

// plural is "1 batch" or "2 batches".
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
