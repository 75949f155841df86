package console

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Column is a column of a table, and what becomes of it on a terminal that is too narrow for all of them. Elsewhere it is as it is.
type Column struct {
	Head string
	// Least is to how many characters of a terminal's line its cells may be cut, which … shows; 0: they are never cut, as ids and money are not. Ends keeps both ends.
	Least int
	Ends  bool
	// Goes is when it leaves the table, the lowest first; 0: never. Below puts its cells under their rows then, and else they are left out.
	Goes  int
	Below bool
}

// between is the space between two columns, and below what stands before a cell under its row.
const (
	between = "  "
	below   = "    "
)

// narrowest is the width below which a terminal's is not believed.
const narrowest = 40

// Width is how many characters a line of w has, if w is a terminal that says so, and else 0: a file or a pipe has no width.
func Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < narrowest {
		return 0
	}
	return width
}

// Fit writes rows under the heads of their columns, aligned, and in lines of at most width characters where that can be; 0 is any width. It returns
// the heads of what was left out.
func Fit(w io.Writer, width int, columns []Column, rows [][]string) (left []string, err error) {
	t := newFitted(columns, rows)
	t.narrow(width)
	var b strings.Builder
	t.line(&b, func(i int) string { return columns[i].Head })
	for _, row := range t.rows {
		t.line(&b, func(i int) string { return row[i] })
		for _, i := range t.gone {
			if cell := row[i]; columns[i].Below && cell != "" && cell != "-" {
				b.WriteString(below + Wrapped(strings.ToLower(columns[i].Head)+": "+cell, width, len(below)) + "\n")
			}
		}
	}
	for _, i := range t.gone {
		if !columns[i].Below {
			left = append(left, columns[i].Head)
		}
	}
	_, err = io.WriteString(w, b.String())
	return left, err
}

// fitted is a table on its way into a width.
type fitted struct {
	columns []Column
	rows    [][]string // safe for a terminal
	widths  []int
	stay    []int // columns that are lines' own
	gone    []int
}

func newFitted(columns []Column, rows [][]string) *fitted {
	t := &fitted{columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.stay, t.widths[i] = append(t.stay, i), cells(c.Head)
	}
	for _, row := range rows {
		safe := make([]string, len(row))
		for i, cell := range row {
			safe[i] = Safe(cell)
			t.widths[i] = max(t.widths[i], cells(safe[i]))
		}
		t.rows = append(t.rows, safe)
	}
	return t
}

// least is how narrow a column can become.
func (t *fitted) least(i int) int {
	if c := t.columns[i]; c.Least > 0 {
		return min(t.widths[i], max(c.Least, cells(c.Head)))
	}
	return t.widths[i]
}

// narrow lets columns leave until the rest can be cut to fit, and cuts those that are widest first.
func (t *fitted) narrow(width int) {
	if width == 0 {
		return
	}
	sum := func(of func(int) int) int {
		n := len(between) * (len(t.stay) - 1)
		for _, i := range t.stay {
			n += of(i)
		}
		return n
	}
	for sum(t.least) > width {
		leaver := -1
		for _, i := range t.stay {
			if goes := t.columns[i].Goes; goes > 0 && (leaver < 0 || goes < t.columns[leaver].Goes) {
				leaver = i
			}
		}
		if leaver < 0 {
			break
		}
		t.stay = slices.DeleteFunc(t.stay, func(i int) bool { return i == leaver })
		t.gone = append(t.gone, leaver)
	}
	slices.Sort(t.gone)
	for over := sum(func(i int) int { return t.widths[i] }) - width; over > 0; over-- {
		widest := -1
		for _, i := range t.stay {
			if t.widths[i] > t.least(i) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// line writes one line of the columns that stayed; the last is not filled up.
func (t *fitted) line(b *strings.Builder, cell func(int) string) {
	for place, i := range t.stay {
		text := cut(cell(i), t.widths[i], t.columns[i].Ends)
		b.WriteString(text)
		if place < len(t.stay)-1 {
			fmt.Fprintf(b, "%*s%s", t.widths[i]-cells(text), "", between)
		}
	}
	b.WriteString("\n")
}

// cut shortens a text to so many cells.
func cut(text string, most int, ends bool) string {
	if cells(text) <= most {
		return text
	}
	runes := []rune(text)
	tail := 0
	if ends {
		tail = (most - 1) / 2
	}
	head := string(runes[:within(runes, most-1-tail)])
	return head + "…" + string(runes[len(runes)-withinEnd(runes, tail):])
}

// Wrapped breaks a text between words into lines of at most width characters, of which all but the first begin with an indent, as the first does
// already. A word that is longer than a line is broken where that ends, after a comma where that leaves at least half a line. With width 0 it is one line.
func Wrapped(text string, width, indent int) string {
	room := width - indent
	if width == 0 || room < 1 {
		return text
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(text, " ") {
		runes, long := []rune(word), cells(word)
		switch {
		case i == 0:
		case at+1+long > room && at > 0 && (long <= room || at+1 >= room):
			fmt.Fprintf(&b, "\n%*s", indent, "")
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		for ; at+long > room; at = 0 {
			n := breakAt(runes[:within(runes, room-at)])
			if n == 0 && at == 0 {
				break // a line has no room for one character
			}
			b.WriteString(string(runes[:n]))
			fmt.Fprintf(&b, "\n%*s", indent, "")
			runes = runes[n:]
			long = cells(string(runes))
		}
		b.WriteString(string(runes))
		at += long
	}
	return b.String()
}

// breakAt is after how many of the characters of a line a word is broken.
func breakAt(line []rune) int {
	for n := len(line); n > len(line)/2; n-- {
		if line[n-1] == ',' {
			return n
		}
	}
	return len(line)
}
