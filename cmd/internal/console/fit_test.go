package console

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var lettersColumns = []Column{{Head: "ID"}, {Head: "TENANT", Goes: 3}, {Head: "KEY", Least: 8, Ends: true}, {Head: "MESSAGE", Least: 10, Goes: 2, Below: true}, {Head: "SEEN", Goes: 1}}

var letters = [][]string{
	{"dl_0123456789abcdef0123456789abcdef", "acme", "order-2030-01-31-000000000017", "make the tenant, then replay it: nothing was charged", "2030-01-31 12:00:00"},
	{"dl_1", "globex", "k", "-", "2030-01-31 12:00:01"},
}

func fit(t *testing.T, width int) (text string, left []string) {
	t.Helper()
	var b bytes.Buffer
	left, err := Fit(&b, width, lettersColumns, letters)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), left
}

// TestFit: what a terminal has no room for is cut, put below or left out, in this order.
func TestFit(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		100: `ID                                   TENANT  KEY               MESSAGE           SEEN
dl_0123456789abcdef0123456789abcdef  acme    order-20…0000017  make the tenant…  2030-01-31 12:00:00
dl_1                                 globex  k                 -                 2030-01-31 12:00:01
`,
		80: `ID                                   TENANT  KEY               MESSAGE
dl_0123456789abcdef0123456789abcdef  acme    order-20…0000017  make the tenant,…
dl_1                                 globex  k                 -
`,
		60: `ID                                   TENANT  KEY
dl_0123456789abcdef0123456789abcdef  acme    order-2…0000017
    message: make the tenant, then replay it: nothing was
    charged
dl_1                                 globex  k
`,
		46: `ID                                   KEY
dl_0123456789abcdef0123456789abcdef  orde…0017
    message: make the tenant, then replay it:
    nothing was charged
dl_1                                 k
`,
	} {
		if got, _ := fit(t, width); got != want {
			t.Errorf("%d:\n%s", width, got)
		}
	}
	for width, want := range map[int][]string{0: nil, 1000: nil, 100: nil, 80: {"SEEN"}, 60: {"SEEN"}, 46: {"TENANT", "SEEN"}} {
		if _, left := fit(t, width); !slices.Equal(left, want) {
			t.Errorf("%d leaves out %q, want %q", width, left, want)
		}
	}
	whole, _ := fit(t, 0)
	if wide, _ := fit(t, 1000); wide != whole || strings.Contains(whole, "…") || strings.Count(whole, "\n") != 3 {
		t.Errorf("without a width:\n%s", whole)
	}
}

// TestFitEveryWidth: no line is wider than the terminal as long as what is never cut has room, and that is never cut.
func TestFitEveryWidth(t *testing.T) {
	t.Parallel()
	const least = 35 + 2 + 8 // the id and the least of the key
	for width := narrowest; width < 200; width++ {
		text, left := fit(t, width)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > max(width, least) {
				t.Errorf("%d: %d characters: %s", width, n, line)
			}
		}
		if strings.Count(text, letters[0][0]+"  ") != 1 {
			t.Errorf("%d: the id is not whole:\n%s", width, text)
		}
		flat := strings.Join(strings.Fields(text), " ")
		for i, c := range lettersColumns {
			switch cell := letters[0][i]; {
			case c.Least == 0 && !slices.Contains(left, c.Head) && !strings.Contains(text, cell):
				t.Errorf("%d: %s is neither there nor left out:\n%s", width, c.Head, text)
			case c.Least > 0 && !strings.Contains(flat, cell) && !strings.Contains(text, "…"):
				t.Errorf("%d: %s is cut and does not show it:\n%s", width, c.Head, text)
			}
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		ends bool
		want string
	}{
		{"abcdef", 6, false, "abcdef"}, {"abcdef", 5, false, "abcd…"}, {"abcdef", 5, true, "ab…ef"}, {"abcdef", 4, true, "ab…f"}, {"abcdef", 1, true, "…"}, {"äöüß", 3, false, "äö…"},
	} {
		if got := cut(c.text, c.most, c.ends); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestWrapped: lines are full and no wider, nothing but line ends and the indent comes in, and only a word that is longer than a line is broken.
func TestWrapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string
		width, indent int
		want          string
	}{
		{"one two three", 0, 4, "one two three"}, {"one two three", 11, 4, "one two\n    three"}, {"one two three", 10, 4, "one\n    two\n    three"},
		{"a pay_0123 b", 10, 2, "a\n  pay_0123\n  b"}, {"", 10, 2, ""},
		{"a 0123456789 b", 8, 2, "a 0123\n  456789\n  b"}, {"abcde 0123456789", 8, 2, "abcde\n  012345\n  6789"}, {`{"a":1,"b":2}`, 12, 2, "{\"a\":1,\n  \"b\":2}"}, {"long", 3, 4, "long"},
	} {
		if got := Wrapped(c.text, c.width, c.indent); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestWidthOfNoTerminal: a pipe, a file and a buffer have no width, whatever the environment says.
func TestWidthOfNoTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	file, err := os.Create(fmt.Sprintf("%s/list", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Width(w) != 0 || Width(file) != 0 || Width(&bytes.Buffer{}) != 0 {
		t.Errorf("%d, %d, %d", Width(w), Width(file), Width(&bytes.Buffer{}))
	}
}
