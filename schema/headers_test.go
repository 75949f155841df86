package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseKeyHeaderAbsent(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{nil, {}} {
		if key, present, err := ParseKeyHeader(lines); key != "" || present || err != nil {
			t.Errorf("got %q, %v, %v", key, present, err)
		}
	}
}

func TestHeaderLines(t *testing.T) {
	t.Parallel()
	header := map[string][]string{
		"Idempotency-Key": {"a"}, "idempotency-key": {"b"}, "X-Idempotency-Key": {"c"}, "Idempotency-Key ": {"d"},
	}
	got := HeaderLines(header, HeaderIdempotencyKey)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
	if _, _, err := ParseKeyHeader(got); !errors.Is(err, ErrKeyHeader) {
		t.Errorf("two spellings hid a second line: %v", err)
	}
	if got := HeaderLines(nil, HeaderIdempotencyKey); got != nil {
		t.Errorf("got %q", got)
	}
}

func FuzzParseKeyHeader(f *testing.F) {
	for _, seed := range []string{"abc", `"abc"`, `"a\"b"`, `"`, `""`, `"a`, "a b", "", `"a";b`, strings.Repeat("a", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, present, err := ParseKeyHeader([]string{line})
		if err != nil {
			if key != "" || present {
				t.Fatalf("refused, and yet %q", key)
			}
			// Texts that our messages do not contain by themselves.
			if len(line) > 12 && strings.Contains(err.Error(), line) {
				t.Fatalf("the error repeats the value: %q", err)
			}
			return
		}
		if !present || !ValidKey(key) {
			t.Fatalf("%q gave %q, %v", line, key, present)
		}
		if !strings.HasPrefix(line, `"`) && key != line {
			t.Fatalf("a bare %q became %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, _, err := ParseKeyHeader([]string{quoted}); err != nil || again != key {
			t.Fatalf("%q: %q gave %q, %v", line, quoted, again, err)
		}
	})
}
