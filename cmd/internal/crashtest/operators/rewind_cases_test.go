package operators

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// TestRewindOutlivesItsRunner: a runner dies before each step, once more after the copy of the mark was written, and each time another one goes on.
func TestRewindOutlivesItsRunner(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	var mu sync.Mutex
	died := map[payments.RewindStep]int{}
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true, OnRewind: func(s payments.RewindStep) bool {
		mu.Lock()
		defer mu.Unlock()
		if died[s] > 0 {
			return false
		}
		died[s]++
		if s == payments.RewindAccept { // as if it had died between the copy and the database
			state, err := w.Store.Mark(context.Background())
			if err == nil {
				state.At = state.Now
				_, err = copied(w).Accept(context.Background(), state.Mark)
			}
			if err != nil {
				w.Error(err)
			}
		}
		return true
	}})
	h := lose(w, v, 3)
	h.staysHeld(v)
	r := rewindSince(w, h.since)
	for _, s := range payments.RewindSteps() {
		if died[s] != 1 {
			t.Errorf("the runner died %d times at %s", died[s], s)
		}
	}
	h.adopted(r)
	h.again()
}

// TestRewindReadsFromTheFloors: what was sent hours before and is read again by its number alone, since its time is of no help. What the database
// had is not read again, and a payment that had ended otherwise than Stripe says is put right.
func TestRewindReadsFromTheFloors(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	w.Clock.Advance(3 * time.Hour) // so no message is as young as the rewind's time
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true})
	h := lose(w, v, 2)
	h.staysHeld(v)
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE payments SET status = 'failed', stripe_payment_intent = NULL, amount_captured = 0 WHERE idempotency_key = 'before-the-backup'`)
		return err
	})
	r := rewindSince(w, h.since)
	if r.Progress.Corrected != 1 || w.Status(w.Order("before-the-backup").ID()) != payments.StatusSucceeded {
		t.Errorf("the payment that Stripe contradicts is %s: %+v", w.Status(w.Order("before-the-backup").ID()), r.Progress)
	}
	// Two by NATS, two by HTTP, three of the batch, and the one that came during the hold; not the one before the backup.
	if r.Progress.Messages != 8 {
		t.Errorf("%d messages were read: %+v", r.Progress.Messages, r.Progress)
	}
	h.adopted(r)
}

// TestHeldUntilSomebodySaysSo: a lost copy, one of another cluster, and one of a later timeline hold; an accepted mark lets work go on.
func TestHeldUntilSomebodySaysSo(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true})
	first := w.Order("before")
	w.Publish(first)
	w.Rest()
	marked(v)
	state, err := w.Store.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	later, other := state.Mark, state.Mark
	later.Timeline++
	other.SystemID = "7"
	lose := func() {
		if err := w.JS.DeleteStream(t.Context(), schema.StreamOfBucket(w.Subjects.BucketMark())); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		name  string
		spoil func()
		says  string
	}{
		{"lost", lose, "the copy of the database's mark is gone"},
		{"other system", func() { spoil(w, other) }, "another PostgreSQL cluster"},
		{"later timeline", func() { spoil(w, later) }, "behind its mark"},
		{"lost again", lose, "the copy of the database's mark is gone"}, // where the process remembers acceptances
	} {
		name := c.name
		c.spoil()
		w.Await("the hold: "+name, func() (bool, string) { return strings.Contains(v.Mark.Held(), c.says), v.Mark.Held() })
		posts := postsOf(w)
		o := w.Order(fmt.Sprint("during-", i))
		w.Publish(o)
		compared(v, 10)
		if n := postsOf(w); n != posts || w.Status(o.ID()) != "" {
			t.Fatalf("%s: held, and %d requests were sent; %s", name, n-posts, w.Status(o.ID()))
		}
		accept(w)
		w.Rest()
		if w.Status(o.ID()) != payments.StatusSucceeded || postsOf(w) != posts+1 {
			t.Errorf("%s: after the mark was accepted the payment is %s, %d requests", name, w.Status(o.ID()), postsOf(w)-posts)
		}
	}
	marked(v) // and it is counted on
}

// TestPromotionIsRewoundByItself: a new timeline loses at most moments, so nobody is asked.
func TestPromotionIsRewoundByItself(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true})
	first := w.Order("before")
	w.Publish(first)
	w.Rest()
	marked(v)
	state, err := w.Store.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What a copy says that was made before the promotion. Accepted lets it count for a process that remembers the timeline of now.
	kv, err := w.JS.KeyValue(t.Context(), w.Subjects.BucketMark())
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf(`{"system_id":%q,"timeline":%d,"counter":%d,"time":%q,"accepted":1}`, state.SystemID, state.Timeline-1, state.Counter, state.At.Format(time.RFC3339Nano))
	if _, err := kv.PutString(t.Context(), schema.KeyMark, before); err != nil {
		t.Fatal(err)
	}
	o := w.Order("meanwhile")
	w.Publish(o)
	r := rewound(w, 1)
	if r.Actor != mark.Actor || !r.Since.Before(state.At) || r.Progress.Objects < 1 {
		t.Errorf("%+v", r)
	}
	w.Rest()
	if w.Status(o.ID()) != payments.StatusSucceeded || len(w.Sim.Ledger().Charges) != 2 {
		t.Errorf("%s, %d charges", w.Status(o.ID()), len(w.Sim.Ledger().Charges))
	}
}

// copied is the copy of the world's mark.
func copied(w *world.World) *mark.Copy { return mark.NewCopy(w.JS, w.Subjects.BucketMark()) }

// spoil writes another copy of the mark, which counts for everybody.
func spoil(w *world.World, m payments.Mark) {
	w.Helper()
	if _, err := copied(w).Accept(context.Background(), m); err != nil {
		w.Fatal(err)
	}
}

// accept says that the database is right, as the command does.
func accept(w *world.World) {
	w.Helper()
	ctx := context.Background()
	if err := provision.EnsureBucket(ctx, w.JS, w.Subjects.BucketMark(), 1); err != nil {
		w.Fatal(err)
	}
	state, err := w.Store.Mark(ctx)
	if err != nil {
		w.Fatal(err)
	}
	state.At = state.Now
	m, err := copied(w).Accept(ctx, state.Mark)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.Store.AcceptMark(ctx, m.Counter, payments.Operation{Actor: "test", Reason: "known to be right"}, []byte(`{}`)); err != nil {
		w.Fatal(err)
	}
}
