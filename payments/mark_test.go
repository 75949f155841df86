package payments

import (
	"strings"
	"testing"
)

// TestCompareMark: only a database that shows that it is as far as the newest copy may go on.
func TestCompareMark(t *testing.T) {
	t.Parallel()
	at := func(system string, timeline, counter int64) MarkState {
		return MarkState{Mark: Mark{SystemID: system, Timeline: timeline, Counter: counter}, Counted: true}
	}
	fresh := MarkState{Mark: Mark{SystemID: "1", Timeline: 1}}
	for name, c := range map[string]struct {
		database MarkState
		copied   *Mark
		want     MarkVerdict
	}{
		"nothing anywhere":               {fresh, nil, MarkBegins},
		"somebody began, and died":       {fresh, &Mark{SystemID: "1", Timeline: 1}, MarkBegins},
		"as far":                         {at("1", 1, 7), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkFits},
		"further":                        {at("1", 1, 8), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkFits},
		"behind by one":                  {at("1", 1, 6), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkBehind},
		"older than any mark":            {fresh, &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkBehind},
		"recovered to an earlier point":  {at("1", 2, 6), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkBehind},
		"a standby took over":            {at("1", 2, 7), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkPromoted},
		"the old primary came back":      {at("1", 1, 9), &Mark{SystemID: "1", Timeline: 2, Counter: 7}, MarkBehind},
		"another cluster":                {at("2", 1, 9), &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkForeign},
		"a new cluster":                  {MarkState{Mark: Mark{SystemID: "2", Timeline: 1}}, &Mark{SystemID: "1", Timeline: 1, Counter: 7}, MarkForeign},
		"a new cluster, another's begin": {MarkState{Mark: Mark{SystemID: "2", Timeline: 1}}, &Mark{SystemID: "1", Timeline: 1}, MarkForeign},
		"the copy is gone":               {at("1", 1, 7), nil, MarkCopyLost},
	} {
		got := CompareMark(c.database, c.copied)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if free := got == MarkFits || got == MarkBegins; got.Holds() == free || (got.Means() == "") != free || (got.Explain() == "") != free {
			t.Errorf("%s: holds %t, %q", got, got.Holds(), got.Explain())
		}
		if by := got.Remedy(); (by != "") != (got.Holds() && got != MarkPromoted) || !strings.HasSuffix(got.Explain(), by) {
			t.Errorf("%s: remedy %q of %q", got, by, got.Explain())
		}
	}
}

// TestNewerMark: the newest acceptance counts, then the one that is further, whichever comes first.
func TestNewerMark(t *testing.T) {
	t.Parallel()
	old, further, later, accepted := &Mark{Timeline: 1, Counter: 7}, &Mark{Timeline: 1, Counter: 8}, &Mark{Timeline: 2, Counter: 7}, &Mark{Timeline: 1, Counter: 3, Accepted: 1}
	for name, c := range map[string]struct{ a, b, want *Mark }{
		"none": {nil, nil, nil}, "one": {old, nil, old}, "further": {old, further, further}, "later timeline": {old, later, later}, "accepted": {further, accepted, accepted},
	} {
		if got := NewerMark(c.a, c.b); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := NewerMark(c.b, c.a); got != c.want {
			t.Errorf("%s, the other way round: %+v", name, got)
		}
	}
}

// TestRewindStepsFollowEachOther from the first to the last, each once.
func TestRewindStepsFollowEachOther(t *testing.T) {
	t.Parallel()
	step, all := RewindSettle, RewindSteps()
	for _, want := range all {
		if step != want {
			t.Fatalf("%s, want %s", step, want)
		}
		step = step.Next()
	}
	if step != "" || len(all) != 9 {
		t.Errorf("after the last comes %q of %d", step, len(all))
	}
}
