// Package console is how the commands speak to people: progress bars on a terminal and plain lines elsewhere, aligned tables, and exactly one
// JSON document on standard output where --json asks for it.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far something is.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer
	label string
	total int
	bar   *progressbar.ProgressBar
	last  time.Time
	shown int
}

// plainEvery is how often a line is printed where there is no terminal.
const plainEvery = 2 * time.Second

// NewProgress starts a progress display on w: a bar where w is a terminal, and else a line every two seconds.
func NewProgress(w *os.File, label string, total int) *Progress {
	p := &Progress{w: w, label: label, total: total, shown: -1, last: time.Now()}
	if term.IsTerminal(int(w.Fd())) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(fmt.Sprintf("%-22s", label)),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionShowIts(), progressbar.OptionSetRenderBlankState(true))
	}
	return p
}

// Set moves the display to n of total.
func (p *Progress) Set(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(max(n, 0), p.total)
	if p.bar != nil {
		_ = p.bar.Set(n)
		return
	}
	if now := time.Now(); now.Sub(p.last) >= plainEvery && n != p.shown {
		p.last, p.shown = now, n
		fmt.Fprintf(p.w, "%-22s %d/%d\n", p.label, n, p.total)
	}
}

// Note prints a line above the display.
func (p *Progress) Note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		fmt.Fprintln(p.w, line)
		return
	}
	_ = p.bar.Clear()
	fmt.Fprintln(p.w, line)
	_ = p.bar.RenderBlank()
}

// Done ends the display at n.
func (p *Progress) Done(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Set(min(n, p.total))
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
		return
	}
	if n != p.shown {
		fmt.Fprintf(p.w, "%-22s %d/%d\n", p.label, n, p.total)
	}
}

// Abandon leaves the display as it stands, so that what follows has a line of its own.
func (p *Progress) Abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
	}
}

// JSON writes one document, indented.
func JSON(w io.Writer, document any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Table writes rows under a header, in aligned columns of any width.
func Table(w io.Writer, header []string, rows [][]string) error {
	columns := make([]Column, len(header))
	for i, head := range header {
		columns[i].Head = head
	}
	_, err := Fit(w, 0, columns, rows)
	return err
}

// Safe makes text of others fit for a terminal: what could move the cursor, change colours or reorder the line becomes a visible escape.
func Safe(text string) string {
	clean := func(r rune) bool { return unicode.IsPrint(r) }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !clean(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if clean(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
