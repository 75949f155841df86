package ingress

import (
	"testing"
	"time"
)

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		wait  time.Duration
		ok    bool
	}{
		{nil, 0, false},
		{[]string{""}, 0, false},
		{[]string{"wait=5"}, 5 * time.Second, true},
		{[]string{"WAIT=5"}, 5 * time.Second, true},
		{[]string{" wait = 5 "}, 5 * time.Second, true},
		{[]string{`wait="5"`}, 5 * time.Second, true},
		{[]string{"wait=0"}, 0, true},
		{[]string{"wait=30"}, 30 * time.Second, true},
		{[]string{"wait=31"}, 30 * time.Second, true},
		{[]string{"wait=99999999999999999999999"}, 30 * time.Second, true},
		{[]string{"wait=007"}, 7 * time.Second, true},
		{[]string{"wait"}, 0, false},
		{[]string{"wait="}, 0, false},
		{[]string{`wait=""`}, 0, false},
		{[]string{"wait=-1"}, 0, false},
		{[]string{"wait=+1"}, 0, false},
		{[]string{"wait=1.5"}, 0, false},
		{[]string{"wait=1s"}, 0, false},
		{[]string{"wait=１"}, 0, false},
		{[]string{"respond-async, wait=5"}, 5 * time.Second, true},
		{[]string{"respond-async", "wait=5"}, 5 * time.Second, true},
		{[]string{"wait=5; foo=bar, return=minimal"}, 5 * time.Second, true},
		{[]string{`foo="a, wait=9", wait=5`}, 5 * time.Second, true},
		{[]string{`foo="a\", wait=9", wait=5`}, 5 * time.Second, true},
		{[]string{`foo; wait=9, wait=5`}, 5 * time.Second, true}, // a parameter is no preference
		{[]string{"wait=5, wait=9"}, 5 * time.Second, true},
		{[]string{"wait=x, wait=9"}, 0, false}, // the first counts
		{[]string{"wait=5", "wait=9"}, 5 * time.Second, true},
		{[]string{"waiting=5"}, 0, false},
		{[]string{`foo="open, wait=5`}, 0, false},
		{[]string{",,;,=,"}, 0, false},
	} {
		if wait, ok := preferredWait(c.lines); wait != c.wait || ok != c.ok {
			t.Errorf("%q: %v %v, want %v %v", c.lines, wait, ok, c.wait, c.ok)
		}
	}
}

func FuzzPreferredWait(f *testing.F) {
	for _, s := range []string{"wait=5", `a="b\"c", wait=3; x`, ";=,", `"`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		wait, ok := preferredWait([]string{line})
		if wait < 0 || wait > waitMax || wait%time.Second != 0 || !ok && wait != 0 {
			t.Errorf("%q: %v %v", line, wait, ok)
		}
	})
}
