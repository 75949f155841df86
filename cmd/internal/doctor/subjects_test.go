package doctor

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"pgregory.net/rapid"
)

// TestSubjectsAsTheServer: patterns mean what the server means by them.
func TestSubjectsAsTheServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		subject := func(label string) string {
			tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "c"}), 1, 4).Draw(t, label)
			if rapid.IntRange(0, 3).Draw(t, label+" ends") == 0 {
				tokens = append(tokens, ">")
			}
			return strings.Join(tokens, ".")
		}
		a, b := subject("a"), subject("b")
		if got, want := covers(a, b), server.SubjectMatchesFilter(b, a); got != want {
			t.Errorf("covers(%q, %q) is %t, the server says %t", a, b, got, want)
		}
		if got, want := overlaps(a, b), server.SubjectsCollide(a, b); got != want {
			t.Errorf("overlaps(%q, %q) is %t, the server says %t", a, b, got, want)
		}
	})
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules   *rules
		subject string
		want    bool
	}{
		{nil, "a.b", true},
		{&rules{}, "a.b", true},
		{&rules{Allow: []string{"a.*"}}, "a.b", true},
		{&rules{Allow: []string{"a.*"}}, "a.*", true},
		{&rules{Allow: []string{"a.b", "a.c"}}, "a.*", false}, // other tenants are left out
		{&rules{Allow: []string{">"}}, "a.>", true},
		{&rules{Allow: []string{"a.>"}}, ">", false},
		{&rules{Deny: []string{"a.b"}}, "a.*", false}, // a part is enough
		{&rules{Deny: []string{"a.b"}}, "a.c", true},
		{&rules{Allow: []string{">"}, Deny: []string{"a.>"}}, "a.c", false},
		{&rules{Allow: []string{"a queue"}}, "a", false},
	} {
		if got := c.rules.permits(c.subject); got != c.want {
			t.Errorf("%+v permits %q: %t", c.rules, c.subject, got)
		}
	}
}
