package console

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar shows how far something of any size is, how fast it goes and how long it will take: as wide as the terminal on one, and as a line every two
// seconds elsewhere. It may be used from several goroutines.
type Bar struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	label string
	total int64
	unit  string
	bar   *progressbar.ProgressBar
	over  bool

	began time.Time // of what the rate is of
	base  int64     // what was there before; -1 until it was first set
	at    int64
	last  time.Time // that something was shown
	shown int64
	said  string // the rate that the bar shows
}

// Bytes is the unit of a Bar that counts bytes.
const Bytes = "B"

// NewBar starts a display on w of total things of a unit, as payments; or Bytes.
func NewBar(w io.Writer, label string, total int64, unit string) *Bar {
	b := &Bar{w: w, now: time.Now, label: label, total: total, unit: unit, base: -1, shown: -1}
	b.began = b.now()
	b.last = b.began
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		b.draw()
	}
	return b
}

// draw makes it a bar instead of lines. The rate and what is left are its own: the drawn bar's would count what was there before, and be there before
// they mean anything.
func (b *Bar) draw() {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(b.w), progressbar.OptionSetDescription(b.description("")),
		progressbar.OptionFullWidth(), progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionSetRenderBlankState(true),
	}
	if b.unit != Bytes { // whose count the drawn bar would show to the last byte
		options = append(options, progressbar.OptionShowCount())
	}
	b.bar = progressbar.NewOptions64(max(b.total, 1), options...)
}

// description is the bar's text: the rate has its place whether it is there or not.
func (b *Bar) description(rate string) string { return fmt.Sprintf("%-17s %-22s", b.label, rate) }

// describe shows the rate, not more often than a person can read it.
func (b *Bar) describe(now time.Time, over bool) {
	if now.Sub(b.last) < describeEvery && !over {
		return
	}
	if rate := b.rate(now); rate != b.said {
		b.last, b.said = now, rate
		b.bar.Describe(b.description(rate))
	}
}

const describeEvery = 500 * time.Millisecond

// Before says how many of what Set tells had been there before this began: they are no part of the rate, whose time begins with the last of them.
func (b *Bar) Before(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.base {
		b.base, b.began = n, b.now()
	}
}

// Set moves the display to n of the total; it never moves back.
func (b *Bar) Set(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.total)
	if b.over || n < b.at {
		return
	}
	if b.base < 0 {
		b.base = n
	}
	b.at = n
	if b.bar != nil {
		// A full bar ends itself; what it ends with is Done's to say.
		if n < b.total {
			_ = b.bar.Set64(n)
			b.describe(b.now(), false)
		}
		return
	}
	if now := b.now(); now.Sub(b.last) >= plainEvery && n != b.shown {
		b.last, b.shown = now, n
		b.line(now)
	}
}

// line prints how far it is.
func (b *Bar) line(now time.Time) {
	text := fmt.Sprintf("%-17s %d/%d %s", b.label, b.at, b.total, b.unit)
	if b.unit == Bytes {
		text = fmt.Sprintf("%-17s %.1f/%.1f MB", b.label, float64(b.at)/1e6, float64(b.total)/1e6)
	}
	if rate := b.rate(now); rate != "" {
		text += ", " + rate
	}
	fmt.Fprintln(b.w, text)
}

// Note prints a line above the display.
func (b *Bar) Note(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil || b.over {
		fmt.Fprintln(b.w, line)
		return
	}
	_ = b.bar.Clear()
	fmt.Fprintln(b.w, line)
	_ = b.bar.RenderBlank()
}

// Done ends the display at n. Where there is no terminal, reading that took no time is not worth a line.
func (b *Bar) Done(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over, b.at = true, min(n, b.total)
	switch {
	case b.bar != nil:
		b.describe(b.now(), true)
		_ = b.bar.Set64(min(n, max(b.total, 1)))
		_ = b.bar.Exit()
		fmt.Fprintln(b.w)
	case b.unit == Bytes && b.shown < 0 && b.now().Sub(b.last) < plainEvery:
	case b.at != b.shown:
		b.line(b.now())
	}
}

// Abandon leaves the display as it stands, so that what follows has a line of its own.
func (b *Bar) Abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil && !b.over {
		_ = b.bar.Exit()
		fmt.Fprintln(b.w)
	}
	b.over = true
}
