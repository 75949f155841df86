package stripesim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"account":     {Account: "me"},
		"live key":    {Keys: []Key{{Secret: "sk_live_1"}}},
		"key account": {Keys: []Key{{Secret: "sk_test_1", Account: "me"}}},
		"deny":        {Keys: []Key{{Secret: "sk_test_1", Deny: []string{"GET /v1/nothing"}}}},
		"latency":     {Latency: -1},
		"settle":      {DebitSettle: -1},
	} {
		if s, err := New(o); err == nil {
			mustNil(t, s.Close())
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestCloseFreesCallsThatWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	done := make(chan result, 3)
	go func() { done <- r.do(call{path: intentsPath, form: pay(), fault: FaultCommitThenHang}) }()
	go func() { done <- r.do(call{path: intentsPath, form: pay(), fault: "slow:600000"}) }()
	mustNil(t, r.sim.WaitHung(deadline(t), 1))
	mustNil(t, r.sim.WaitExecuted(deadline(t), 2))
	mustNil(t, r.sim.SetLimits(Limits{LatencyMS: 600_000}))
	go func() { done <- r.pay("late") }()
	mustNil(t, r.sim.WaitRequests(deadline(t), 3))
	mustNil(t, r.sim.Close())
	for range cap(done) {
		if res := <-done; res.err == nil {
			t.Errorf("an answer came: %d %s", res.status, res.body)
		}
	}
	if res := r.pay("k"); res.err == nil {
		t.Errorf("a closed simulator answered: %+v", res)
	}
	mustNil(t, r.sim.Close())
	if sum := r.sim.Summary(); sum.Executed != 2 || sum.Hung != 0 {
		t.Errorf("summary %+v", sum)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range []error{r.sim.WaitRequests(ctx, 1), r.sim.WaitExecuted(ctx, 1), r.sim.WaitHung(ctx, 1)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	if n := len(r.sim.hung.waiters) + len(r.sim.log.arrived.waiters) + len(r.sim.log.executed.waiters); n != 0 {
		t.Errorf("%d waiters are left", n)
	}
	mustNil(t, r.sim.WaitRequests(ctx, 0))
}

func TestAdvanceClockBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, d := range []time.Duration{-1, 400 * 24 * time.Hour} {
		if err := r.sim.AdvanceClock(d); err == nil {
			t.Errorf("advanced by %v", d)
		}
	}
}

// BenchmarkPost is the handler alone, from four clients at once, in memory and
// with a file.
func BenchmarkPost(b *testing.B) {
	for name, path := range map[string]string{"memory": "", "file": filepath.Join(b.TempDir(), "ledger")} {
		b.Run(name, func(b *testing.B) {
			if path != "" {
				path = filepath.Join(b.TempDir(), "ledger")
			}
			s, err := New(Options{Path: path})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchmarkPosts(b, s)
		})
	}
}

// Requests wait out the latency side by side, holding nothing that others need.
func TestLatencyIsNotShared(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Latency: 200 * time.Millisecond})
	const calls = 100
	results := make(chan result, calls)
	begin := time.Now()
	for i := range calls {
		go func() { results <- r.pay(fmt.Sprint(i)) }()
	}
	for range calls {
		(<-results).want(t, 200, map[string]any{"status": "succeeded"})
	}
	if took := time.Since(begin); took < 200*time.Millisecond || took > calls*200*time.Millisecond/4 {
		t.Errorf("%d calls of 200 ms took %v", calls, took)
	}
}
