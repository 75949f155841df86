package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// TestRandomBatches takes batches of random contents under few keys through admissions, outcomes and completions in any order, and holds every answer
// against a model: the first content under a key is the one that stays, and a batch is told when all its payments are final, once.
func TestRandomBatches(t *testing.T) {
	t.Parallel()
	b := open(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := &batchWalk{bench: b, rt: rt, prefix: fmt.Sprintf("run%d-", run), there: map[string]*modelBatch{}, singles: map[string]bool{}}
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			w.step()
			list, err := b.TicketViolations(context.Background())
			if err != nil || len(list) > 0 {
				rt.Fatalf("ticket query: %+v, %v", list, err)
			}
		}
		w.compare()
		w.settle()
	})
}

// modelBatch is what must be there of a batch.
type modelBatch struct {
	request  payments.BatchRequest
	statuses []payments.Status
	told     bool
}

func (m *modelBatch) complete() bool {
	return !slices.ContainsFunc(m.statuses, func(s payments.Status) bool { return !s.Final() })
}

type batchWalk struct {
	*bench
	rt      *rapid.T
	prefix  string
	there   map[string]*modelBatch
	singles map[string]bool // keys of payments that are no batch's
}

func (w *batchWalk) key() string {
	return w.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.rt, "key")
}

func (w *batchWalk) step() {
	switch rapid.SampledFrom([]string{"admit", "admit", "single", "outcome", "outcome", "outcome", "complete", "sleep"}).Draw(w.rt, "verb") {
	case "admit":
		w.admit()
	case "single":
		w.single()
	case "outcome":
		w.outcome()
	case "complete":
		w.tell()
	case "sleep":
		w.clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(w.rt, "for"))
	}
}

func (w *batchWalk) admit() {
	r := batchOf(w.key(), rapid.IntRange(1, 3).Draw(w.rt, "payments"))
	r.Parent = rapid.SampledFrom([]string{"", "run"}).Draw(w.rt, "parent")
	if rapid.Bool().Draw(w.rt, "refused") {
		r.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	}
	m := w.there[r.IdempotencyKey]
	want := payments.VerdictStored
	switch {
	case w.singles[r.IdempotencyKey], m != nil && m.request.Fingerprint() != r.Fingerprint():
		want = payments.VerdictConflict
	case r.Refused != nil:
		want = payments.VerdictRefused
	case m != nil:
		want = payments.VerdictExists
	}
	a, err := w.AdmitBatch(context.Background(), r)
	if err != nil || a.Verdict != want || (want == payments.VerdictConflict) != (len(a.Differs) > 0) {
		w.rt.Fatalf("%s, differs in %v, %v; want %s", a.Verdict, a.Differs, err, want)
	}
	if want == payments.VerdictStored {
		m = &modelBatch{request: r, statuses: slices.Repeat([]payments.Status{payments.StatusReceived}, len(r.Payments))}
		w.there[r.IdempotencyKey] = m
	}
	if want == payments.VerdictStored || want == payments.VerdictExists {
		for i, p := range a.Children {
			if p.Status != m.statuses[i] || p.Amount != int64(100+i) {
				w.rt.Fatalf("child %d: %+v, want %s", i, p, m.statuses[i])
			}
		}
	}
}

// single asks for a payment under a batch's key.
func (w *batchWalk) single() {
	key := w.key()
	a, err := w.Admit(context.Background(), payments.AdmitRequest{Intent: intent("acme", key, 100), Lane: payments.LaneInteractive})
	want := payments.VerdictStored
	switch {
	case w.there[key] != nil:
		want = payments.VerdictConflict
	case w.singles[key]:
		want = payments.VerdictExists
	}
	if err != nil || a.Verdict != want {
		w.rt.Fatalf("%s, %v; want %s", a.Verdict, err, want)
	}
	w.singles[key] = w.there[key] == nil
}

// outcome moves a child.
func (w *batchWalk) outcome() {
	m := w.there[w.key()]
	if m == nil {
		return
	}
	i := rapid.IntRange(0, len(m.statuses)-1).Draw(w.rt, "child")
	child := m.request.Children()[i]
	t := rapid.SampledFrom([]payments.Transition{
		succeeded(payments.Payment{Intent: child, ID: child.ID()}), {Status: payments.StatusFailed, Reason: "declined"}, waiting("locked"), unknown("no_answer"),
		{Status: payments.StatusNeedsReview, Reason: "several", InDoubt: true},
	}).Draw(w.rt, "transition")
	done, err := w.Evidence(context.Background(), "acme", child.ID(), func(payments.Payment) (payments.Transition, error) { return t, nil })
	if err == nil {
		m.statuses[i] = done.Payment.Status
	} else if payments.ErrorCode(err) != payments.CodeInternal { // not in the state machine
		w.rt.Fatal(err)
	}
}

// tell asks for some batches, of which some may not be there.
func (w *batchWalk) tell() {
	var refs []payments.BatchRef
	want := 0
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(w.rt, "keys") {
		refs = append(refs, payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", w.prefix+name)})
		if m := w.there[w.prefix+name]; m != nil && m.complete() && !m.told {
			m.told = true
			want++
		}
	}
	before := len(w.sent.all())
	told, err := w.CompleteBatches(context.Background(), refs)
	if err != nil || told != want {
		w.rt.Fatalf("%d told, %v; want %d", told, err, want)
	}
	for _, it := range w.sent.all()[before:] {
		if it.EventType != schema.EventBatchCompleted {
			w.rt.Fatalf("%+v", it)
		}
		told--
	}
	if told != 0 {
		w.rt.Fatalf("%d are not told of", told)
	}
}

// compare holds what is there against the model.
func (w *batchWalk) compare() {
	for key, m := range w.there {
		state, err := w.Batch(context.Background(), "acme", m.request.ID())
		if err != nil || state.Complete() != m.complete() || state.CompletedAt.IsZero() == m.told || state.Count != len(m.statuses) || state.Parent != m.request.Parent {
			w.rt.Fatalf("%s: %+v, %v; want %+v", key, state, err, m)
		}
		counts := map[payments.Status]int{}
		for _, s := range m.statuses {
			counts[s]++
		}
		for _, t := range state.Totals {
			if counts[t.Status] != t.Count {
				w.rt.Fatalf("%s: %+v, want %v", key, state.Totals, counts)
			}
			delete(counts, t.Status)
		}
		if len(counts) > 0 {
			w.rt.Fatalf("%s: %+v lacks %v", key, state.Totals, counts)
		}
	}
}

// settle ends what is open.
func (w *batchWalk) settle() {
	for _, m := range w.there {
		for _, child := range m.request.Children() {
			if p, err := w.Find(context.Background(), "acme", child.ID()); err != nil || p.Status.HasTicket() {
				w.evidence(payments.Claim{Payment: p}, succeeded(p))
			}
		}
	}
}
