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

	began, last time.Time
	first, at   int64 // what it was when it was first set, and is; first is -1 before
	shown       int64
}

// Bytes is the unit of a Bar that counts bytes.
const Bytes = "B"

// NewBar starts a display on w of total things of a unit, as payments; or Bytes.
func NewBar(w io.Writer, label string, total int64, unit string) *Bar {
	b := &Bar{w: w, now: time.Now, label: label, total: total, unit: unit, first: -1, shown: -1}
	b.began = b.now()
	b.last = b.began
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		options := []progressbar.Option{
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(fmt.Sprintf("%-17s", label)), progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(), progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetRenderBlankState(true),
		}
		if unit == Bytes {
			options = append(options, progressbar.OptionShowBytes(true))
		} else {
			options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit))
		}
		b.bar = progressbar.NewOptions64(max(total, 1), options...)
	}
	return b
}

// Set moves the display to n of the total; it never moves back.
func (b *Bar) Set(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.total)
	if b.over || n < b.at {
		return
	}
	if b.first < 0 {
		b.first = n
	}
	b.at = n
	if b.bar != nil {
		// A full bar ends itself; what it ends with is Done's to say.
		if n < b.total {
			_ = b.bar.Set64(n)
		}
		return
	}
	if now := b.now(); now.Sub(b.last) >= plainEvery && n != b.shown {
		b.last, b.shown = now, n
		b.line(now)
	}
}

// line prints how far it is; the rate leaves out what was there at the start.
func (b *Bar) line(now time.Time) {
	text := fmt.Sprintf("%-17s %d/%d %s", b.label, b.at, b.total, b.unit)
	if b.unit == Bytes {
		text = fmt.Sprintf("%-17s %.1f/%.1f MB", b.label, float64(b.at)/1e6, float64(b.total)/1e6)
	}
	if took, done := now.Sub(b.began).Seconds(), b.at-max(b.first, 0); took > 0 && done > 0 {
		rate := float64(done) / took
		if b.unit == Bytes {
			text += fmt.Sprintf(", %.1f MB/s", rate/1e6)
		} else {
			text += fmt.Sprintf(", %.0f/s", rate)
		}
		if left := b.total - b.at; left > 0 {
			text += ", " + (time.Duration(float64(left)/rate) * time.Second).String() + " left"
		}
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

// Done ends the display at n.
func (b *Bar) Done(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over, b.at = true, min(n, b.total)
	switch {
	case b.bar != nil:
		_ = b.bar.Set64(min(n, max(b.total, 1)))
		_ = b.bar.Exit()
		fmt.Fprintln(b.w)
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
