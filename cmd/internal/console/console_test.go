package console

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzSafe(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[2J", "a\u202eb", "\xff\xfe", "gr\u00fcn \U0001F600", "\u200b\u00a0", "\x00\r\n\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Safe(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q became invalid: %q", text, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q lets %U through", text, r)
			}
		}
		if again := Safe(got); again != got {
			t.Fatalf("%q is not left alone", got)
		}
	})
}

func TestSafe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain 12 \u20ac": "plain 12 \u20ac", "a\x1b[31mb": `a\u001b[31mb`, "\u202e": `\u202e`, "a\nb": `a\u000ab`, "\xff": "\uFFFD", "\u009b2J": `\u009b2J`,
	} {
		if got := Safe(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := JSON(&b, map[string]any{"a": "<&>", "b": []string{}}); err != nil || b.String() != "{\n  \"a\": \"<&>\",\n  \"b\": []\n}\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	b.Reset()
	if err := JSON(&b, math.NaN()); err == nil || b.Len() != 0 {
		t.Errorf("half a document: %q, %v", b.String(), err)
	}
	if err := JSON(broken{}, 1); err == nil {
		t.Error("a broken pipe is no error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Table(&b, []string{"A", "B"}, [][]string{{"long cell", "x\ty\nz"}, {"s", ""}}); err != nil {
		t.Fatal(err)
	}
	if want := "A          B\nlong cell  x\\u0009y\\u000az\ns          \n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// TestPlainProgress: where there is no terminal there are lines, and no control characters.
func TestPlainProgress(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := NewProgress(w, "payments settled", 10)
	p.Set(-1)
	p.Set(3)
	p.Note("something happened")
	p.last = p.last.Add(-plainEvery)
	p.Set(4)
	p.last = p.last.Add(-plainEvery)
	p.Set(4)
	p.Set(99)
	p.Abandon()
	p.Done(10)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want := "something happened\npayments settled       4/10\npayments settled       10/10\n"
	if string(got) != want || strings.ContainsAny(string(got), "\r\x1b") {
		t.Errorf("%q", got)
	}
}
