package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// bindPage adds the flags of a command that lists one page; of says which list, where a command does more than list.
func bindPage(c *cobra.Command, limit *int, cursor *string, of string) {
	c.Flags().IntVar(limit, "limit", payments.LimitDefault, of+"how many, at most 1000")
	c.Flags().StringVar(cursor, "cursor", "", of+"go on from a list's next_cursor")
}

func checkLimit(limit int) error {
	if limit < 1 || limit > payments.LimitMax {
		return &app.UsageError{Text: fmt.Sprintf("--limit: must be from 1 to %d", payments.LimitMax)}
	}
	return nil
}

// columns are how a page is shown to a person: the heads, and what stands below them for one thing.
type columns[T any] struct {
	heads []console.Column
	row   func(T) []string
}

// printPage prints a page and how to get the next: for machines as one document, for a person as a table.
func printPage[T, D any](s *shared, page []T, next string, document func(T) D, show columns[T]) error {
	if s.json {
		list := schema.List[D]{Data: []D{}, NextCursor: cursor(next)}
		for _, one := range page {
			list.Data = append(list.Data, document(one))
		}
		return console.JSON(s.out, list)
	}
	if len(page) == 0 {
		fmt.Fprintln(s.err, "none found")
		return nil
	}
	rows := make([][]string, len(page))
	for i, one := range page {
		rows[i] = show.row(one)
	}
	if err := s.table(s.out, show.heads, rows); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(s.err, "more: --cursor %s\n", next)
	}
	return nil
}

// lineWidth is how wide lines of w are to be; 0: as they are.
func (s *shared) lineWidth(w io.Writer) int {
	if s.width == nil {
		return 0
	}
	return s.width(w)
}

// table writes a table that fits the terminal that w may be, and says what was left out for that.
func (s *shared) table(w io.Writer, heads []console.Column, rows [][]string) error {
	left, err := console.Fit(w, s.lineWidth(w), heads, rows)
	if err == nil && len(left) > 0 {
		fmt.Fprintf(s.err, "left out, since the terminal is narrow: %s; --json has all\n", strings.Join(left, ", "))
	}
	return err
}
