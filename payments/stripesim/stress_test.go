package stripesim

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestStress repeats every key from several clients under every fault, and
// then holds the ledger, the lists and the answers against one another.
func TestStress(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	opts := Options{Path: path, Seed: 42}
	r := newRig(t, opts)
	for _, f := range []string{FaultResetBefore, FaultCommitThenReset, FaultCommitThen500, FaultCommitThen503, FaultTruncateBody, FaultHTML502, FaultGarbage200,
		"slow:2", FaultInUse409, FaultRateLimit429, FaultLockTimeout429, FaultUnauthorized401, FaultShouldRetryTrue} {
		mustNil(t, r.sim.AddFault(Rule{Fault: f, Rate: 0.05}))
	}
	const keys, clients, rounds = 40, 4, 3
	var mu sync.Mutex
	seen := map[string]map[string]bool{} // key to ids in answers
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := range keys * rounds {
				key := fmt.Sprint("k", i%keys)
				res := r.pay(key, "metadata[oncepay_payment]", key)
				var pi struct{ ID string }
				if res.err != nil || res.status != 200 || json.Unmarshal([]byte(res.body), &pi) != nil {
					continue
				}
				id := pi.ID
				mu.Lock()
				if seen[key] == nil {
					seen[key] = map[string]bool{}
				}
				seen[key][id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r.sim.ClearFaults()
	checkStress(t, r, seen, clients*keys*rounds)
	before := ledgerJSON(t, r.sim)
	r = r.reopen(opts)
	if after := ledgerJSON(t, r.sim); after != before {
		t.Errorf("after opening again:\n%s\nbefore:\n%s", after, before)
	}
}

func checkStress(t *testing.T, r *rig, seen map[string]map[string]bool, posts int) {
	t.Helper()
	l, sum := r.sim.Ledger(), r.sim.Summary()
	executed, lost := map[string]int{}, map[string]int{}
	for _, q := range l.Requests {
		if q.Executed {
			executed[q.IdempotencyKey]++
			if q.Fault == FaultCommitThen503 {
				lost[q.IdempotencyKey]++
			}
		}
	}
	charged, ids := map[string][]string{}, []string{}
	for _, c := range l.Charges {
		charged[c.IdempotencyKey] = append(charged[c.IdempotencyKey], c.PaymentIntent)
		ids = append(ids, c.PaymentIntent)
	}
	doubles := 0
	for key, n := range executed {
		if n > lost[key]+1 {
			t.Errorf("%s was executed %d times, of which %d were not stored", key, n, lost[key])
		}
		if len(charged[key]) != n {
			t.Errorf("%s: %d executions, charges %v", key, n, charged[key])
		}
		if n > 1 {
			doubles++
		}
		for id := range seen[key] {
			if !slices.Contains(charged[key], id) {
				t.Errorf("%s was answered with %s, and the ledger has %v", key, id, charged[key])
			}
		}
	}
	if sum.DoubleCharges != doubles || sum.Charges != len(l.Charges) || sum.Posts != posts || sum.Repeats != posts-len(executed) || sum.FaultsInjected == 0 {
		t.Errorf("doubles %d, posts %d, summary %+v", doubles, posts, sum)
	}
	listed := []string{}
	for cursor := []string{"limit", "100"}; ; {
		page := r.listed(cursor...)
		if len(page) == 0 {
			break
		}
		listed = append(listed, page...)
		cursor = []string{"limit", "100", "starting_after", page[len(page)-1]}
	}
	slices.Reverse(listed)
	if !slices.Equal(listed, ids) {
		t.Errorf("listed %v\ncharged %v", listed, ids)
	}
}
