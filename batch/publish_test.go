package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/schema"
)

func publish(t *testing.T, f *fakeAPI, plan *Plan, c *clock) (Sent, error) {
	t.Helper()
	return Publish(t.Context(), plan, f.door(time.Minute), PublishOptions{Concurrency: 8, Patience: c.patience(time.Minute)})
}

func TestPublishSendsEveryChunkOnce(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	plan := planOf(t, "run-1", csvOf(1234))
	var seen []int64
	sent, err := Publish(t.Context(), plan, f.door(time.Minute), PublishOptions{
		Concurrency: 4, Patience: new(clock).patience(0), Progress: func(s Sent) { seen = append(seen, s.Rows) },
	})
	if err != nil || sent != (Sent{Rows: 1234, Batches: 13, New: true}) {
		t.Fatalf("%+v, %v", sent, err)
	}
	f.holds(plan)
	f.settle()
	if _, posts := f.counts(); posts != 13 || f.most > 4 {
		t.Errorf("%d posts, %d at once", posts, f.most)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] <= seen[i-1] {
			t.Errorf("progress went back: %v", seen)
		}
	}
	last := f.has("run-1.000012")
	if last == nil || len(last.message.Payments) != 34 || last.message.Parent != schema.Some("run-1") {
		t.Errorf("the last batch: %+v", last)
	}
	// The same again is nothing but repeats.
	sent, err = publish(t, f, plan, new(clock))
	if err != nil || sent != (Sent{Rows: 1234, Batches: 13, Replayed: 13, ReplayedRows: 1234}) {
		t.Fatalf("%+v, %v", sent, err)
	}
	f.holds(plan)
}

// TestBodyIsCanonical: the request is what the codec itself writes, so that the same file is the same bytes whoever builds them.
func TestBodyIsCanonical(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"k", `a"b\c`, "{}~!"} {
		c, err := newChunks(run, CSV, bytes.NewReader(csvOf(3)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		message, err := schema.DecodeBatch(got.body)
		if err != nil {
			t.Fatal(err)
		}
		want, err := schema.EncodeBatch(message)
		if err != nil || !bytes.Equal(got.body, want) || message.Parent != schema.Some(run) || len(message.Payments) != 3 {
			t.Errorf("%s\n%s, %v", got.body, want, err)
		}
	}
}

// TestPublishGoesOn: whatever answer is lost, refused for now or never made, the same key brings the same bytes until they are accepted.
func TestPublishGoesOn(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter) bool{
		"429": func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "7")
			problem(w, 429, "rate_limited", nil)
			return true
		},
		"503 with a date": func(w http.ResponseWriter) bool {
			now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			w.Header().Set("Date", now.Format(http.TimeFormat))
			w.Header().Set("Retry-After", now.Add(7*time.Second).Format(http.TimeFormat))
			problem(w, 503, "unavailable", nil)
			return true
		},
		"500":      func(w http.ResponseWriter) bool { problem(w, 500, "internal", nil); return true },
		"html 502": func(w http.ResponseWriter) bool { w.WriteHeader(502); _, _ = io.WriteString(w, "<html>"); return true },
		"reset":    func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		"half body": func(w http.ResponseWriter) bool {
			problem(w, 400, "invalid_request", map[string]any{"errors": []FieldError{{"body", "ended too early"}}})
			return true
		},
		"truncated": func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Length", "5000")
			w.WriteHeader(202)
			_, _ = io.WriteString(w, `{"id":"bat_1"`)
			return true
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			f.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool { return n%2 == 1 && fault(w) }
			plan, c := planOf(t, "run", csvOf(950)), new(clock)
			sent, err := publish(t, f, plan, c)
			if err != nil || sent.Rows != 950 {
				t.Fatalf("%+v, %v", sent, err)
			}
			f.holds(plan)
			// 7 s as asked, and the random part at its most.
			if wants := strings.HasPrefix(name, "429") || strings.HasPrefix(name, "503"); wants != c.waited(7*time.Second+7*time.Second/4) {
				t.Errorf("waited %v", c.waits)
			}
		})
	}
}

func TestPublishAnswerLostAfterCommit(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.lose = func(n int) bool { return n%3 == 1 }
	plan := planOf(t, "run", csvOf(2000))
	sent, err := publish(t, f, plan, new(clock))
	if err != nil || sent.Rows != 2000 || sent.Replayed == 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	f.holds(plan)
}

func TestPublishTimesOutAndRepeats(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var hung atomic.Int32
	f.fault = func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n != 2 {
			return false
		}
		hung.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	plan := planOf(t, "run", csvOf(300))
	sent, err := Publish(t.Context(), plan, f.door(2*time.Second), PublishOptions{Concurrency: 2, Patience: new(clock).patience(time.Minute)})
	if err != nil || sent.Rows != 300 || hung.Load() != 1 {
		t.Fatalf("%+v, %v", sent, err)
	}
	f.holds(plan)
}

func TestPublishGivesUp(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n > 3 {
			problem(w, 503, "unavailable", nil)
		}
		return n > 3
	}
	c := new(clock)
	sent, err := publish(t, f, planOf(t, "run", csvOf(1000)), c)
	var problem *ProblemError
	if !errors.As(err, &problem) || problem.Status != 503 || sent.Rows < 100 || sent.Rows > 300 || !strings.Contains(err.Error(), "nothing was accepted for 1m") {
		t.Fatalf("%+v, %v", sent, err)
	}
	for _, d := range c.waits {
		if d > backoffMax {
			t.Errorf("waited %s", d)
		}
	}
}

func TestPublishStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   []string
	}{
		"401": {func(w http.ResponseWriter) { problem(w, 401, "unauthorized", nil) }, []string{"ONCEPAY_API_KEY"}},
		"403": {func(w http.ResponseWriter) { problem(w, 403, "forbidden", nil) }, []string{"batches:write"}},
		"redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://elsewhere.example")
			w.WriteHeader(307)
		}, []string{"redirect", "ONCEPAY_API_URL"}},
		"portal": {func(w http.ResponseWriter) { w.WriteHeader(200); _, _ = io.WriteString(w, "<html>log in") }, []string{"not of this API"}},
		"other json": {func(w http.ResponseWriter) {
			w.WriteHeader(202)
			_, _ = io.WriteString(w, `{"id":"bat_1","payments":[]}`)
		}, []string{"not of this API"}},
		"400": {func(w http.ResponseWriter) {
			problem(w, 400, "invalid_request", map[string]any{"errors": []FieldError{{"payments[3].amount", "must be smaller"}, {"parent", "is odd"}}})
		}, []string{"rows 1 to 100 (batch run.000000)", "row 4, column amount: must be smaller", "the run's key: is odd"}},
		"413": {func(w http.ResponseWriter) { problem(w, 413, "payload_too_large", nil) }, []string{"rows 1 to 100", "a detail (HTTP 413 payload_too_large)"}},
		"402": {func(w http.ResponseWriter) { problem(w, 402, "spend_cap_exceeded", nil) }, []string{"a detail (HTTP 402 spend_cap_exceeded)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			f.fault = func(w http.ResponseWriter, _ *http.Request, _ int) bool { c.answer(w); return true }
			sent, err := publish(t, f, planOf(t, "run", csvOf(1000)), new(clock))
			var refused *RefusedError
			if _, posts := f.counts(); !errors.As(err, &refused) || sent != (Sent{}) || posts != 1 {
				t.Fatalf("%+v, %v, %d posts", sent, err, posts)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("%q tells too much", err)
			}
		})
	}
}

// TestAnotherFileUnderTheKey: wherever a file differs from what was begun, nothing is accepted that was not accepted before.
func TestAnotherFileUnderTheKey(t *testing.T) {
	t.Parallel()
	const rows = 3000
	original := csvOf(rows)
	for _, row := range []int{1, 100, 101, 950, 1000} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			begin(t, f, planOf(t, "run", original), 18) // with 8 in flight, the first 11 are among them
			changed := bytes.Replace(original, fmt.Appendf(nil, "\n%d,usd,cus_%d,", 99+row, row-1), fmt.Appendf(nil, "\n%d,usd,cus_%d,", 98+row, row-1), 1)
			if bytes.Equal(changed, original) {
				t.Fatal("nothing was changed")
			}
			sent, err := publish(t, f, planOf(t, "run", changed), new(clock))
			var refused *RefusedError
			if !errors.As(err, &refused) || !refused.OtherFile() || sent.New {
				t.Fatalf("%+v, %v", sent, err)
			}
			for _, w := range []string{fmt.Sprintf("row %d, column amount", row), "not the same file", "--key run"} {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			f.holdsOnly(planOf(t, "run", original))
		})
	}
	t.Run("fewer rows", func(t *testing.T) {
		t.Parallel()
		f := newFakeAPI(t)
		begin(t, f, planOf(t, "run", original), 10)
		_, err := publish(t, f, planOf(t, "run", csvOf(500)), new(clock))
		var foreign *ForeignError
		if !errors.As(err, &foreign) {
			t.Fatal(err)
		}
		f.holdsOnly(planOf(t, "run", original))
	})
}

// begin runs a plan until n batches are accepted, and cuts it off there.
func begin(t *testing.T, f *fakeAPI, plan *Plan, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	accepted := 0
	f.tell(func(string) { // nobody else is answered until the run has been cut off
		mu.Lock()
		defer mu.Unlock()
		if accepted++; accepted == n {
			cancel()
		}
	})
	door := f.door(time.Minute)
	_, err := Publish(ctx, plan, door, PublishOptions{Concurrency: 8, Patience: new(clock).patience(time.Minute)})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	door.Close()
	f.tell(nil)
	f.settle()
}

// settle waits until no request is on its way.
func (f *fakeAPI) settle() {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		f.mu.Lock()
		idle := f.inFlight == 0
		f.mu.Unlock()
		if idle {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal("requests are still on their way")
		}
	}
}

// TestGapsAreFilledLast: batches that an earlier call left out between others are sent once those others are known to be the same.
func TestGapsAreFilledLast(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	plan := planOf(t, "run", csvOf(2000))
	if _, err := publish(t, f, plan, new(clock)); err != nil {
		t.Fatal(err)
	}
	f.settle()
	for _, i := range []int{3, 7, 8, 15, 16, 17, 18, 19} {
		f.forget(Key("run", i))
	}
	var repeats, early atomic.Int32
	f.fault = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.batches[r.Header.Get("Idempotency-Key")] != nil {
			repeats.Add(1)
		} else if repeats.Load() < 12 {
			early.Add(1)
		}
		return false
	}
	sent, err := publish(t, f, plan, new(clock))
	if err != nil || sent != (Sent{Rows: 2000, Batches: 20, Replayed: 12, ReplayedRows: 1200, New: true}) || early.Load() != 0 {
		t.Fatalf("%+v, %v, %d too early", sent, err, early.Load())
	}
	f.holds(plan)
}

// TestFileChangedBetweenThePasses: a chunk that is not what was checked is never sent.
func TestFileChangedBetweenThePasses(t *testing.T) {
	t.Parallel()
	original := csvOf(1500)
	for name, second := range map[string][]byte{
		"one amount": bytes.Replace(original, []byte("\n1000,usd"), []byte("\n1001,usd"), 1), // row 901
		"shorter":    csvOf(900), "cut": csvOf(950), "longer": csvOf(1600), "broken": append(csvOf(900), `"`...), "refused": append(csvOf(900), "x,usd,cus,pm\n"...), "empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			passes := 0
			source := func() (io.Reader, error) {
				if passes++; passes == 1 {
					return bytes.NewReader(original), nil
				}
				return bytes.NewReader(second), nil
			}
			plan, err := Check(t.Context(), source, FileOptions{Run: "run", Format: CSV})
			if err != nil {
				t.Fatal(err)
			}
			sent, err := publish(t, f, plan, new(clock))
			if !errors.Is(err, ErrChanged) || passes != 2 {
				t.Fatalf("%+v, %v", sent, err)
			}
			f.settle()
			f.mu.Lock()
			defer f.mu.Unlock()
			for key, b := range f.batches {
				i, ok := plan.number(key)
				if !ok || len(b.message.Payments) != min(ChunkRows, 1500-i*ChunkRows) {
					t.Errorf("%s holds %d payments", key, len(b.message.Payments))
				}
			}
		})
	}
}

func TestPublishInterrupted(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	plan := planOf(t, "run", csvOf(5000))
	begin(t, f, plan, 20)
	if n, _ := f.counts(); n < 20 || n > 28 {
		t.Errorf("%d batches", n)
	}
	sent, err := publish(t, f, plan, new(clock))
	if err != nil || sent.Rows != 5000 || sent.Replayed < 20 {
		t.Fatalf("%+v, %v", sent, err)
	}
	f.holds(plan)
}
