package stripesim

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// fill makes n PaymentIntents a second apart, alternating two customers, and
// returns their ids, oldest first.
func fill(r *rig, n int) []string {
	r.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = at(r.pay("", "customer", fmt.Sprintf("cus_%d", i%2)).want(r.t, 200, nil), "id").(string)
		r.clock.add(time.Second)
	}
	return ids
}

func TestList(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	ids := fill(r, 25)
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	sec := func(i int) string { return strconv.Itoa(1_700_000_000 + i) }
	for _, tc := range []struct {
		name string
		kv   []string
		want []string
	}{
		{"default limit", nil, newest[:10]},
		{"all", []string{"limit", "100"}, newest},
		{"after", []string{"limit", "3", "starting_after", newest[4]}, newest[5:8]},
		{"after the last", []string{"starting_after", newest[24]}, []string{}},
		{"before", []string{"limit", "3", "ending_before", newest[10]}, newest[7:10]},
		{"before the first", []string{"ending_before", newest[0]}, []string{}},
		{"gte lte", []string{"limit", "100", "created[gte]", sec(5), "created[lte]", sec(8)}, newest[16:20]},
		{"gt lt", []string{"limit", "100", "created[gt]", sec(5), "created[lt]", sec(8)}, newest[17:19]},
		{"exactly", []string{"created", sec(3)}, newest[21:22]},
		{"empty window", []string{"created[gt]", sec(8), "created[lt]", sec(5)}, []string{}},
		{"window and cursor", []string{"limit", "2", "created[gte]", sec(5), "starting_after", ids[9]}, []string{ids[8], ids[7]}},
		{"customer", []string{"customer", "cus_1", "limit", "2"}, []string{ids[23], ids[21]}},
		{"customer and cursor", []string{"customer", "cus_1", "limit", "2", "starting_after", ids[21]}, []string{ids[19], ids[17]}},
		{"nobody", []string{"customer", "cus_9"}, []string{}},
	} {
		if got := r.listed(tc.kv...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	r.get(intentsPath, "limit", "25").want(t, 200, map[string]any{"has_more": false, "url": intentsPath})
	r.get(intentsPath, "limit", "24").want(t, 200, map[string]any{"has_more": true})
	for _, kv := range [][]string{
		{"limit", "0"}, {"limit", "101"}, {"limit", "x"}, {"limit", ""}, {"created[gte]", "x"}, {"created", "x"}, {"created[around]", "1"},
		{"starting_after", "pi_none"}, {"ending_before", "pi_none"}, {"starting_after", ids[0], "ending_before", ids[1]}, {"metadata[a]", "b"},
	} {
		if res := r.get(intentsPath, kv...); res.status != 400 {
			t.Errorf("%v: status %d", kv, res.status)
		}
	}
	r.do(call{method: "GET", path: intentsPath, account: "acct_b"}).want(t, 200, map[string]any{"has_more": false})
}

// Walking the pages in either direction meets everything exactly once.
func TestListPagesMeetEverythingOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	ids := fill(r, 11)
	for _, limit := range []string{"1", "2", "3", "5", "11", "12"} {
		var walked []string
		for cursor := ""; ; {
			kv := []string{"limit", limit}
			if cursor != "" {
				kv = append(kv, "starting_after", cursor)
			}
			page := r.listed(kv...)
			walked = append(walked, page...)
			if len(page) == 0 {
				break
			}
			cursor = page[len(page)-1]
		}
		slices.Reverse(walked)
		if !slices.Equal(walked, ids) {
			t.Errorf("limit %s walked %v", limit, walked)
		}
	}
}

func TestCreatedNeverDecreases(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	first := r.pay("").object(t)["created"]
	r.clock.add(-time.Hour)
	if second := r.pay("").object(t)["created"]; second != first {
		t.Errorf("created %v after %v, when the clock went back", second, first)
	}
	if n := len(r.listed("created[gte]", "1700000000")); n != 2 {
		t.Errorf("%d listed, want 2", n)
	}
}
