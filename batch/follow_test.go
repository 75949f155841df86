package batch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// shelf is a door behind which batches change with time.
type shelf struct {
	plan  *Plan
	clock *clock
	// status is that of all payments of the i-th batch.
	status func(i int, now time.Time) payments.Status
	takes  time.Duration // how long a page takes
	pages  []int         // the first batch of each page that was read
	fail   func(n int) error
}

func (s *shelf) Accept(context.Context, string, []byte) (schema.BatchAccepted, bool, error) {
	return schema.BatchAccepted{}, false, errors.New("nothing is sent here")
}

func (s *shelf) Payment(context.Context, string) (schema.Payment, error) {
	return schema.Payment{}, errors.New("no payment is read here")
}

func (s *shelf) Batches(ctx context.Context, run, cursor string, limit int) (page schema.List[schema.Batch], err error) {
	at := 0
	if cursor != "" {
		if _, err := fmt.Sscan(cursor, &at); err != nil {
			return page, err
		}
	}
	s.pages = append(s.pages, at)
	if s.fail != nil {
		if err := s.fail(len(s.pages)); err != nil {
			return page, err
		}
	}
	s.clock.now = s.clock.now.Add(s.takes)
	for i := at; i < min(at+limit, s.plan.Batches()); i++ {
		status := s.status(i, s.clock.now)
		page.Data = append(page.Data, schema.Batch{
			IdempotencyKey: Key(run, i), Parent: &run, Count: ChunkRows, Complete: status.Final(),
			ByStatus: map[string]schema.StatusTotal{string(status): {Count: ChunkRows, Amount: map[string]int64{"usd": 10 * ChunkRows}}},
		})
	}
	if at+limit < s.plan.Batches() {
		next := fmt.Sprint(at + limit)
		page.NextCursor = &next
	}
	return page, ctx.Err()
}

// unsummed are so many chunks of no matter what.
func unsummed(n int) (s chunkSums) {
	for range n {
		s.add([32]byte{})
	}
	return s
}

func newShelf(batches int) *shelf {
	p := &Plan{Run: "run", Rows: int64(batches) * ChunkRows, Format: CSV}
	p.chunks = unsummed(batches)
	return &shelf{plan: p, clock: &clock{now: time.Unix(0, 0)}, takes: 50 * time.Millisecond}
}

func (s *shelf) follow(t *testing.T, progress func(Totals)) (Totals, error) {
	t.Helper()
	return Follow(t.Context(), s.plan, s, FollowOptions{Patience: s.clock.patience(time.Minute), Progress: progress})
}

func TestFollowACompleteRun(t *testing.T) {
	t.Parallel()
	s := newShelf(10_000)
	s.status = func(i int, _ time.Time) payments.Status {
		if i%10 == 0 {
			return payments.StatusFailed
		}
		return payments.StatusSucceeded
	}
	all, err := s.follow(t, nil)
	if err != nil || !all.Complete || all.Batches != 10_000 || all.Payments != 1_000_000 || all.Final() != 1_000_000 || all.NeedPerson() != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all.ByStatus["failed"]; got.Count != 100_000 || got.Amount["usd"] != 1_000_000 {
		t.Errorf("%+v", all)
	}
	// Every page once, and no pause.
	if len(s.pages) != 50 || len(s.clock.waits) != 0 {
		t.Errorf("%d pages, waited %v", len(s.pages), s.clock.waits)
	}
}

// TestFollowIsPaced: a run of 10,000 batches that takes three hours is followed to its end, with little said to the server, and complete pages are left
// alone.
func TestFollowIsPaced(t *testing.T) {
	t.Parallel()
	const batches, whole = 10_000, 3 * time.Hour
	s := newShelf(batches)
	s.takes = time.Second
	began := s.clock.now
	s.status = func(i int, now time.Time) payments.Status {
		if now.Sub(began) >= whole*time.Duration(i+1)/batches {
			return payments.StatusSucceeded
		}
		return payments.StatusReceived
	}
	var last int64
	all, err := s.follow(t, func(all Totals) {
		if now := all.Final(); now < last {
			t.Errorf("from %d to %d", last, now)
		} else {
			last = now
		}
	})
	took := s.clock.now.Sub(began)
	if err != nil || !all.Complete || took < whole || took > whole+5*time.Minute {
		t.Fatalf("%+v, %v after %s", all.Complete, err, took)
	}
	busy := time.Duration(len(s.pages)) * s.takes
	if busy > took/4 {
		t.Errorf("%d pages, %s of %s", len(s.pages), busy, took)
	}
	for _, d := range s.clock.waits {
		if d < pauseFactor*s.takes || d > pauseMax {
			t.Errorf("waited %s", d)
		}
	}
	t.Logf("%d pages, busy for %s of %s", len(s.pages), busy, took)
}

// TestFollowLooksSoon: a small run is seen to end when it does, and a slow one is asked for no more than once a second.
func TestFollowLooksSoon(t *testing.T) {
	t.Parallel()
	for whole, most := range map[time.Duration]int{150 * time.Millisecond: 3, time.Minute: 66} {
		s := newShelf(3)
		s.takes = time.Millisecond
		began := s.clock.now
		s.status = func(_ int, now time.Time) payments.Status {
			if now.Sub(began) >= whole {
				return payments.StatusSucceeded
			}
			return payments.StatusReceived
		}
		all, err := s.follow(t, nil)
		if took := s.clock.now.Sub(began); err != nil || !all.Complete || took > whole+min(whole, pauseMin)+10*time.Millisecond || len(s.pages) > most {
			t.Errorf("%s: %v after %s and %d pages", whole, err, took, len(s.pages))
		}
	}
}

// TestFollowWhatIsStuck: what waits for a person on the first pages holds up nobody's sight of the others, and is said in the end.
func TestFollowWhatIsStuck(t *testing.T) {
	t.Parallel()
	for _, stuck := range []payments.Status{payments.StatusNeedsReview, payments.StatusStalled, payments.StatusRequiresAction, payments.StatusRequiresCapture} {
		s := newShelf(2000)
		s.takes = time.Second
		began := s.clock.now
		s.status = func(i int, now time.Time) payments.Status {
			switch {
			case i%400 == 0:
				return stuck
			case now.Sub(began) < time.Duration(i)*time.Second:
				return payments.StatusWaiting
			}
			return payments.StatusSucceeded
		}
		all, err := s.follow(t, nil)
		if err != nil || all.Complete || !all.Settled() || all.NeedPerson() != 5*ChunkRows || all.Final() != (2000-5)*ChunkRows {
			t.Fatalf("%s: %+v, %v", stuck, all, err)
		}
	}
	// What moves by itself, however slowly, is waited for.
	for _, moving := range []payments.Status{payments.StatusReceived, payments.StatusProcessing, payments.StatusWaiting, payments.StatusUnknown, payments.StatusPending, "a_later_version"} {
		totals := Totals{Payments: 1, ByStatus: map[string]StatusTotal{string(moving): {Count: 1}}}
		if totals.Settled() || totals.NeedPerson() != 0 {
			t.Errorf("%s is not waited for", moving)
		}
	}
}

func TestFollowThroughTrouble(t *testing.T) {
	t.Parallel()
	s := newShelf(1000)
	s.status = func(int, time.Time) payments.Status { return payments.StatusSucceeded }
	s.fail = func(n int) error {
		if n%2 == 1 {
			return &ProblemError{Status: 503, RetryAfter: 2 * time.Second}
		}
		return nil
	}
	if all, err := s.follow(t, nil); err != nil || !all.Complete || !s.clock.waited(2500*time.Millisecond) {
		t.Fatalf("%+v, %v, waited %v", all, err, s.clock.waits)
	}
	s.fail = func(int) error { return &ProblemError{Status: http.StatusUnauthorized} }
	if _, err := s.follow(t, nil); err == nil || !strings.Contains(err.Error(), "ONCEPAY_API_KEY") {
		t.Errorf("%v", err)
	}
}

func TestFollowKnowsOtherBatches(t *testing.T) {
	t.Parallel()
	s := newShelf(300)
	s.status = func(int, time.Time) payments.Status { return payments.StatusSucceeded }
	known := s.plan
	s.plan = &Plan{Run: "run", Rows: known.Rows + ChunkRows, chunks: unsummed(301)} // what the door shows
	_, err := Follow(t.Context(), known, s, FollowOptions{Patience: s.clock.patience(time.Minute)})
	var foreign *ForeignError
	if !errors.As(err, &foreign) {
		t.Errorf("%v", err)
	}
	s.plan = &Plan{Run: "run", Rows: known.Rows - ChunkRows, chunks: unsummed(299)}
	if _, err = Follow(t.Context(), known, s, FollowOptions{Patience: s.clock.patience(time.Minute)}); err == nil || !strings.Contains(err.Error(), "299 batches") {
		t.Errorf("%v", err)
	}
}

func TestPlanNumber(t *testing.T) {
	t.Parallel()
	p := &Plan{Run: "run", chunks: unsummed(1_000_002)}
	for _, i := range []int{0, 7, 999_999, 1_000_001} {
		if got, ok := p.number(Key("run", i)); !ok || got != i {
			t.Errorf("%d: %d, %v", i, got, ok)
		}
	}
	for _, key := range []string{"", "run", "run.", "run.7", "run.0000007", "run.1000002", "run.99999999999999999999999999", "run.00000x", "run.-00001", "other.000000", "xrun.000000"} {
		if i, ok := p.number(key); ok {
			t.Errorf("%q is %d", key, i)
		}
	}
}
