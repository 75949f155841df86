package batch

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// table reads CSV.
type table struct {
	in      *bufio.Reader
	guard   *tooLongReader
	csv     *csv.Reader
	found   *faults
	columns []column
	number  int64
}

func newCSV(in io.Reader, found *faults) *table {
	guard := &tooLongReader{in: in, limit: schema.IntentMaxBytes + readAhead}
	return &table{in: bufio.NewReaderSize(guard, readAhead), guard: guard, found: found}
}

// next reads the next record; lines without anything are no records.
func (t *table) next(r *row) (bool, error) {
	if t.csv == nil {
		if err := t.begin(); err != nil {
			return false, err
		}
	}
	cells, err := t.record()
	if err != nil {
		return false, err
	}
	t.number++
	line, _ := t.csv.FieldPos(0)
	r.number, r.line = t.number, int64(line)
	if len(cells) != len(t.columns) {
		message := fmt.Sprintf("has %d cells where the header has %d: check for a comma too many or too few, and quote cells that contain one", len(cells), len(t.columns))
		return false, t.found.add(Fault{Row: r.number, Line: r.line, Message: message})
	}
	return t.read(r, cells)
}

// read fills the row from its cells. An empty cell is absent.
func (t *table) read(r *row, cells []string) (ok bool, err error) {
	refuse := func(column, message string) {
		r.wrong = append(r.wrong, column)
		if stop := t.found.add(Fault{Row: r.number, Line: r.line, Column: column, Message: message}); stop != nil && err == nil {
			err = stop
		}
	}
	decimal, empty := "", true
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		empty = false
		c := &t.columns[i]
		switch {
		case payments.ContainsCardNumberString(cell):
			refuse(c.name, cardRemedy)
		case c.set == nil:
			decimal = cell
		default:
			if message := c.set(&r.wire, cell); message != "" {
				refuse(c.name, message)
			}
		}
		if err != nil {
			return false, err
		}
	}
	if decimal != "" { // comes last, since the currency says how many decimals there may be
		currency := r.wire.Currency.Value
		if !payments.KnownCurrency(currency) {
			r.wrong = append(r.wrong, columnDecimal)
			refuse(columnCurrency, "must be one of Stripe's three-letter currency codes, as usd, since it says what the amount means")
		} else if message := setDecimal(&r.wire, decimal, currency); message != "" {
			refuse(columnDecimal, message)
		}
	}
	if empty {
		refuse("", "the row is empty: remove it")
	}
	return !empty, err
}

// column is the column that a member is read from.
func (t *table) column(member string) string {
	if member == columnAmount {
		for _, c := range t.columns {
			if c.set == nil {
				return c.name
			}
		}
	}
	return member
}

// begin reads the header.
func (t *table) begin() error {
	t.guard.begin()
	if mark, err := t.in.Peek(2); err == nil && utf16Mark(mark) {
		return t.found.stop(Fault{Line: 1, Message: utf16Remedy})
	}
	if t.binary() {
		return t.found.stop(Fault{Line: 1, Message: "the file is no CSV text: save the table as CSV in UTF-8, not as a workbook or an archive"})
	}
	if mark, err := t.in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		if _, err := t.in.Discard(len(byteOrderMark)); err != nil {
			return err
		}
	}
	t.csv = csv.NewReader(t.in)
	t.csv.ReuseRecord, t.csv.FieldsPerRecord = true, -1
	names, err := t.record()
	if errors.Is(err, io.EOF) {
		return t.found.stop(Fault{Message: "the file is empty: its first line must name the columns"})
	}
	if err != nil {
		return err
	}
	line, _ := t.csv.FieldPos(0)
	columns, wrong := readHeader(names)
	for _, f := range wrong {
		f.Line = int64(line)
		_ = t.found.add(f)
	}
	if len(wrong) > 0 {
		t.found.more = true
		return errStop // without columns the rows mean nothing
	}
	t.columns = columns
	return nil
}

// headerPeek is how much of the first line is looked at to see whether it is text.
const headerPeek = 1024

// binary reports whether the first line holds control characters, as other programs' own formats do.
func (t *table) binary() bool {
	first, _ := t.in.Peek(headerPeek) // what is wrong with the reader is seen again when it is read
	first, _, _ = bytes.Cut(first, []byte("\n"))
	return bytes.ContainsFunc(first, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' })
}

// record reads one record, valid until the next.
func (t *table) record() ([]string, error) {
	t.guard.begin()
	cells, err := t.csv.Read()
	var wrong *csv.ParseError
	fault := Fault{Row: t.number + 1}
	if t.columns == nil {
		fault.Row = 0
	}
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return cells, err
	case errors.Is(err, errTooLong):
		fault.Message = fmt.Sprintf("the row is longer than %d bytes: a quote is opened and not closed, or lines do not end in line feeds", schema.IntentMaxBytes)
	case errors.As(err, &wrong):
		fault.Line = int64(wrong.StartLine)
		fault.Message = `a quote (") stands where none may: enclose the whole cell in quotes, and double each quote within it`
		if wrong.Line != wrong.StartLine {
			fault.Message += fmt.Sprintf("; the row goes on to line %d", wrong.Line)
		}
	default:
		return nil, err
	}
	// What is a quote and what is not can be told no more.
	return nil, t.found.stop(fault)
}

// looksSeparatedBy names the separator that a header of one cell seems to use instead of the comma.
func looksSeparatedBy(names []string) string {
	if len(names) != 1 {
		return ""
	}
	for separator, name := range map[string]string{";": "semicolons", "\t": "tabs", "|": "bars"} {
		if strings.Contains(names[0], separator) {
			return name
		}
	}
	return ""
}
