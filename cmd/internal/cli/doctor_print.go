package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/cmd/internal/doctor"
)

// style is how a report is shown.
type style struct {
	width  int // of a terminal, 0: lines are never broken
	colour bool
	ascii  bool
}

// styleOf looks at where the report goes. Colours are for terminals that take them, and for people who have not declined (NO_COLOR, see
// no-color.org); whatever is no terminal gets plain ASCII, one line a check and one a remedy.
func styleOf(w io.Writer) style {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return style{ascii: true}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 60 {
		width = 0
	}
	name, set := os.LookupEnv("TERM")
	return style{width: width, colour: os.Getenv("NO_COLOR") == "" && name != "dumb" && set}
}

// The colours of results.
var colours = map[doctor.Result]string{doctor.OK: "\x1b[32m", doctor.Warning: "\x1b[33m", doctor.Failed: "\x1b[31m", doctor.NotChecked: "\x1b[2m"}

func printReport(w io.Writer, r doctor.Report) error { return styleOf(w).print(w, r) }

// print writes result, name and finding in columns, and each remedy below its finding. What was not checked names the check that failed; its
// remedy is to mend that, and not said again.
func (s style) print(w io.Writer, r doctor.Report) error {
	result, name := 0, 0
	for _, c := range r.Checks {
		result, name = max(result, len(c.Result)), max(name, len(c.Name))
	}
	indent := result + 2 + name + 2
	var b strings.Builder
	for _, c := range r.Checks {
		word := fmt.Sprintf("%-*s", result, c.Result)
		if s.colour {
			word = colours[c.Result] + word + "\x1b[0m"
		}
		fmt.Fprintf(&b, "%s  %-*s  %s\n", word, name, c.Name, s.text(c.Found, indent))
		if c.Remedy != "" && c.Result != doctor.NotChecked {
			fmt.Fprintf(&b, "%*s-> %s\n", indent, "", s.text(c.Remedy, indent+3))
		}
	}
	warnings := "warnings"
	if r.Count(doctor.Warning) == 1 {
		warnings = "warning"
	}
	fmt.Fprintf(&b, "\n%d checks: %d ok, %d %s, %d failed, %d not checked\n",
		len(r.Checks), r.Count(doctor.OK), r.Count(doctor.Warning), warnings, r.Count(doctor.Failed), r.Count(doctor.NotChecked))
	_, err := io.WriteString(w, b.String())
	return err
}

// text makes a line safe, and on a terminal breaks it between words so that its rest stands under its beginning.
func (s style) text(line string, indent int) string {
	line = console.Safe(line)
	if s.ascii {
		line = toASCII(line)
	}
	room := s.width - indent
	if room < 20 {
		return line
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(line) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

func toASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
