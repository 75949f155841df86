package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestArraysArriveAsTheyAre: PostgreSQL reads from our arrays what was put into them.
func TestArraysArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	text := rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
	bytes := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOf(rapid.Byte()))
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(text, 0, 20).Draw(rt, "texts")
		raw := rapid.SliceOfN(bytes, 0, 20).Draw(rt, "bytes")
		var gotTexts []string
		var gotRaw [][]byte
		var cardinality int
		err := b.pool.QueryRow(ctx, "SELECT $1::text[], $2::bytea[], cardinality($2::bytea[])", texts, raw).
			Scan(&gotTexts, &gotRaw, &cardinality)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(gotTexts, texts) {
			rt.Errorf("%q arrived as %q", texts, gotTexts)
		}
		same := func(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }
		if !slices.EqualFunc(gotRaw, raw, same) || cardinality != len(raw) {
			rt.Errorf("%q arrived as %q", raw, gotRaw)
		}
	})
	var none, noBytes bool
	if err := b.pool.QueryRow(ctx, "SELECT $1::text[] IS NULL, $2::bytea[] IS NULL", []string(nil), [][]byte(nil)).Scan(&none, &noBytes); err != nil || !none || !noBytes {
		t.Errorf("nil slices are null: %t, %t, %v", none, noBytes, err)
	}
}
