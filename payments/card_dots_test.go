package payments

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSeparatorsOfCards: spaces and dashes may be mixed, dots stand between all groups or none, and never between two groups only.
func TestSeparatorsOfCards(t *testing.T) {
	t.Parallel()
	layouts := [][]string{{"4242", "4242", "4242", "4242"}, {"3782", "822463", "10005"}, {"3056", "930902", "5904"}, {"4222", "2222", "2222", "2"}}
	rapid.Check(t, func(rt *rapid.T) {
		groups := rapid.SampledFrom(layouts).Draw(rt, "layout")
		before := rapid.SampledFrom([]string{"", "card ", "(", "no. ", "no.", "x"}).Draw(rt, "before")
		after := rapid.SampledFrom([]string{"", ".", ". ", ", thanks", " 12/27"}).Draw(rt, "after")
		var b strings.Builder
		b.WriteString(groups[0])
		var separators []string
		for _, g := range groups[1:] {
			separators = append(separators, rapid.SampledFrom([]string{" ", "-", ".", "\u00a0", "\u2013"}).Draw(rt, "separator"))
			b.WriteString(separators[len(separators)-1] + g)
		}
		dots := 0
		for _, s := range separators {
			if s == "." {
				dots++
			}
		}
		if got, want := ContainsCardNumberString(before+b.String()+after), dots == 0 || dots == len(separators); got != want {
			rt.Fatalf("%q: %v", before+b.String()+after, got)
		}
	})
	for _, sizes := range [][]int{{2, 4, 4, 4, 4}, {4, 4, 4, 4, 5}} { // what is not in the layout of a card stays what it was
		if s := strings.Join(slices.Collect(groupsOf("42424242424242424242424", sizes)), "."); ContainsCardNumberString(s) {
			t.Errorf("%q", s)
		}
	}
}

func groupsOf(digits string, sizes []int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, n := range sizes {
			if !yield(digits[:n]) {
				return
			}
			digits = digits[n:]
		}
	}
}
