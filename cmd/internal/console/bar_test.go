package console

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// plainBar is a bar without a terminal, whose clock the test moves.
func plainBar(total int64, unit string) (b *Bar, out *bytes.Buffer, pass func(time.Duration)) {
	out = &bytes.Buffer{}
	now := time.Unix(0, 0)
	b = NewBar(out, "accepted", total, unit)
	b.now = func() time.Time { return now }
	b.began, b.last = now, now
	return b, out, func(d time.Duration) { now = now.Add(d) }
}

func TestBarWithoutTerminal(t *testing.T) {
	t.Parallel()
	b, out, pass := plainBar(10_000, "payments")
	b.Set(0)
	pass(time.Second)
	b.Set(100) // too soon for a line
	pass(time.Second)
	b.Set(400)
	b.Set(300) // it never goes back
	pass(2 * time.Second)
	b.Set(400) // nothing new
	b.Note("trouble")
	pass(6 * time.Second)
	b.Set(1000)
	pass(90 * time.Second)
	b.Done(10_000)
	b.Set(10_000)
	b.Done(10_000)
	b.Abandon()
	want := "accepted          400/10000 payments, 200/s, 48s left\ntrouble\naccepted          1000/10000 payments, 100/s, 1m30s left\naccepted          10000/10000 payments, 100/s\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestBarThatGoesOn: what was there at the start is no rate.
func TestBarThatGoesOn(t *testing.T) {
	t.Parallel()
	b, out, pass := plainBar(10_000, "payments")
	b.Set(9000)
	pass(10 * time.Second)
	b.Set(9500)
	if want := "accepted          9500/10000 payments, 50/s, 10s left\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	pass(time.Hour)
	b.Abandon()
	b.Set(9999)
	b.Done(9999)
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q after its end", out.String())
	}
}

func TestBarOfNothing(t *testing.T) {
	t.Parallel()
	b, out, _ := plainBar(0, Bytes)
	b.Set(0)
	b.Set(10)
	b.Done(10)
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	b, out, pass := plainBar(5_000_000, Bytes)
	b.Set(0)
	pass(2 * time.Second)
	b.Set(3_000_000)
	if out.String() != "accepted          3.0/5.0 MB, 1.5 MB/s, 1s left\n" {
		t.Errorf("%q", out.String())
	}
}

func TestBarFromManyGoroutines(t *testing.T) {
	t.Parallel()
	b, out, _ := plainBar(1000, "payments")
	var wg sync.WaitGroup
	for i := range int64(8) {
		wg.Go(func() {
			for n := range int64(125) {
				b.Set(125*i + n)
			}
		})
	}
	wg.Wait()
	b.Done(1000)
	if out.String() != "accepted          1000/1000 payments\n" {
		t.Errorf("%q", out.String())
	}
}

// TestBarCountsWhatIsNew: a rate is of what is new alone, and is told after a second.
func TestBarCountsWhatIsNew(t *testing.T) {
	t.Parallel()
	b, out, pass := plainBar(20_000, "payments")
	for n := int64(100); n <= 16_000; n += 100 {
		b.Before(n)
		b.Set(n)
		pass(time.Millisecond)
	}
	b.Done(16_000)
	if out.String() != "accepted          16000/20000 payments\n" {
		t.Errorf("%q", out.String())
	}
	b, out, pass = plainBar(20_000, "payments")
	b.Before(16_000)
	b.Set(16_000)
	pass(2 * time.Second)
	b.Set(16_500)
	pass(110 * time.Second)
	b.Set(16_501)
	b.Before(16_000) // nothing new
	pass(888 * time.Second)
	b.Set(16_502)
	want := "accepted          16500/20000 payments, 250/s, 14s left\naccepted          16501/20000 payments, 4/s, 13m2s left\naccepted          16502/20000 payments, 30/min, 1h56m8s left\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestDrawnBar: on a terminal, too, there is no rate before it means something, and no guess of what is left.
func TestDrawnBar(t *testing.T) {
	t.Parallel()
	b, out, pass := plainBar(3000, "payments")
	b.draw()
	b.Before(1000)
	b.Set(1000)
	pass(900 * time.Millisecond)
	b.Set(1500)
	if strings.Contains(out.String(), "/s") || strings.Contains(out.String(), "/hr") || strings.Contains(out.String(), "left") || strings.Contains(out.String(), "[") {
		t.Errorf("%q", out.String())
	}
	pass(1100 * time.Millisecond)
	b.Set(2000)
	b.Done(3000)
	if !strings.Contains(out.String(), "accepted          1000/s ") || !strings.Contains(out.String(), "100%") || !strings.Contains(out.String(), "(3000/3000)") {
		t.Errorf("%q", out.String())
	}
}
