package trim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStepsGrowWhileTheyAreQuickAndShrinkWhenTheyAreNot(t *testing.T) {
	t.Parallel()
	var p pace
	if n := p.next(false); n != stepFirst {
		t.Errorf("first step %d", n)
	}
	p.took(stepFirst, stepTarget/2-1)
	if n := p.next(false); n != 2*stepFirst {
		t.Errorf("after a quick step %d", n)
	}
	p.took(10, 0) // a short one proves nothing
	p.took(2*stepFirst, stepTarget)
	if n := p.next(false); n != 2*stepFirst {
		t.Errorf("after a step as long as it may be %d", n)
	}
	p.took(2*stepFirst, 3*stepTarget)
	if n := p.next(false); n != stepFirst {
		t.Errorf("after a slow step %d", n)
	}
	p.took(stepUrgent, time.Second) // one of those that are urgent
	if n := p.next(false); n != stepMin {
		t.Errorf("after a slow urgent step %d", n)
	}
	for range 20 {
		p.took(p.next(false), 0)
	}
	if n := p.next(false); n != stepMax {
		t.Errorf("the largest step is %d", n)
	}
	for range 20 {
		p.took(p.next(false), time.Second)
	}
	if n, urgent := p.next(false), p.next(true); n != stepMin || urgent != stepUrgent {
		t.Errorf("the smallest step is %d, an urgent one %d", n, urgent)
	}
}

func TestCalmStepsTakeATenthOfTheTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took   time.Duration
		urgent bool
		want   time.Duration
	}{
		{0, false, restMin}, {10 * time.Millisecond, false, 90 * time.Millisecond}, {time.Minute, false, restMax},
		{0, true, 0}, {10 * time.Millisecond, true, 10 * time.Millisecond}, {time.Minute, true, restMax},
	} {
		if got := rest(c.took, c.urgent); got != c.want {
			t.Errorf("rest(%v, %v) = %v, want %v", c.took, c.urgent, got, c.want)
		}
	}
}

func TestTheNextLookComesBeforeTheRoomIsUsedUp(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, c := range map[string]struct {
		maxBytes, bytes int64
		rate            float64
		held            bool
		want            time.Duration
	}{
		"no limit":                 {-1, 5 * gib, 1e9, false, lookMax},
		"the default":              {10 * gib, gib, 0, false, lookMax},
		"the smallest":             {mib, 0, 0, false, lookMin},
		"a small one":              {64 * mib, 0, 0, false, 37 * time.Millisecond},
		"60,000 a second, 1 GiB":   {gib, gib * 69 / 100, 30e6, false, 600 * time.Millisecond},
		"60,000 a second, default": {10 * gib, 10 * gib * 69 / 100, 30e6, false, lookMax},
		"held":                     {10 * gib, 10 * gib * 71 / 100, 0, true, lookMax},
		"nearly full":              {10 * gib, 10*gib - 54e6, 540e6, false, 25 * time.Millisecond},
		"held and nearly full":     {10 * gib, 10*gib - 54e6, 540e6, true, lookHeld},
		"full":                     {10 * gib, 10 * gib, 30e6, false, lookMin},
		"overfull and held":        {10 * gib, 11 * gib, 30e6, true, lookHeld},
	} {
		got := lookAgain(streamState{maxBytes: c.maxBytes, bytes: uint64(c.bytes)}, c.rate, c.held)
		if got < c.want*9/10 || got > c.want*11/10 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Whatever the numbers, a step takes nothing at or above the limit or what was asked for, no more than a step's worth, and leaves the newest.
func TestAStepGoesNoFurtherThanItMay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := streamState{first: rapid.Uint64Range(1, 1e6).Draw(t, "first"), maxBytes: rapid.Int64Range(-1, 1e12).Draw(t, "max")}
		s.last = s.first + rapid.Uint64Range(0, 1e6).Draw(t, "more")
		s.messages = rapid.Uint64Range(1, s.last-s.first+1).Draw(t, "messages")
		s.bytes = rapid.Uint64Range(0, 1e12).Draw(t, "bytes")
		want, limit := rapid.Uint64Range(0, 3e6).Draw(t, "want"), rapid.OneOf(rapid.Uint64Range(1, 3e6), rapid.Just(uint64(math.MaxUint64))).Draw(t, "limit")
		most := rapid.Uint64Range(stepMin, stepMax).Draw(t, "most")
		to := s.step(want, limit, most)
		if to > want || to > limit || to > s.first+most {
			t.Errorf("step to %d", to)
		}
		if to > s.last && !(s.first == s.last && s.above(highPercent)) {
			t.Errorf("a step to %d leaves no message", to)
		}
		if room := s.wantForRoom(); room > 0 && (room <= s.first || !s.above(lowPercent)) {
			t.Errorf("%d wanted for room", room)
		}
	})
}
