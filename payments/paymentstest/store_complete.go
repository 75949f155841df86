package paymentstest

import (
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// announce: only the row that the very request inserts is announced, on its lane.
func (b *storeBench) announce() {
	b.admit(b.claiming(b.intent("claimed")), payments.VerdictClaimed)
	ask := func(key string, lane payments.Lane, want payments.Verdict, change ...func(*payments.AdmitRequest)) payments.Intent {
		b.t.Helper()
		r := payments.AdmitRequest{Intent: b.intent(key, everyField(b.Now())), Lane: lane, Announce: true}
		for _, f := range change {
			f(&r)
		}
		b.admit(r, want)
		return r.Intent
	}
	one := ask("one", payments.LaneInteractive, payments.VerdictStored)
	two := ask("two", payments.LaneBulk, payments.VerdictStored)
	ask("one", payments.LaneInteractive, payments.VerdictExists)
	ask("two", payments.LaneInteractive, payments.VerdictExists)
	ask("claimed", payments.LaneInteractive, payments.VerdictConflict)
	ask("refused", payments.LaneInteractive, payments.VerdictRefused, func(r *payments.AdmitRequest) { r.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid} })
	ask("absent", payments.LaneBulk, payments.VerdictAbsent, func(r *payments.AdmitRequest) { r.ExistingOnly = true })
	b.announced(payments.LaneInteractive, one)
	b.announced(payments.LaneBulk, two)
	b.announced(payments.LaneBulk)
	if items := b.sent(); len(items) != 0 {
		b.t.Errorf("among the events: %+v", items)
	}
	if claims := b.take(10); len(claims) != 1 || claims[0].Payment.ID != one.ID() {
		b.t.Errorf("due in the interactive lane: %+v", claims)
	}
}

// announcedOutbox: announcements are handed out as events are: oldest first, to one at a time, until they are sent; each lane by itself.
func (b *storeBench) announcedOutbox() {
	for n := range 3 {
		b.admit(payments.AdmitRequest{Intent: b.intent(numbered("k", n)), Lane: payments.LaneInteractive, Announce: true}, payments.VerdictStored)
	}
	b.admit(payments.AdmitRequest{Intent: b.intent("bulk"), Lane: payments.LaneBulk, Announce: true}, payments.VerdictStored)
	bench := *b
	bench.Outbox = b.Intents(payments.LaneInteractive)
	bench.handsOut()
	b.announced(payments.LaneBulk, b.intent("bulk"))
}

// settle ends n bulk payments.
func (b *storeBench) settle(n int, t func(payments.Payment) payments.Transition) {
	b.t.Helper()
	claims := b.takeFrom(b.Store, payments.LaneBulk, n)
	if len(claims) != n {
		b.t.Fatalf("%d payments are due, want %d", len(claims), n)
	}
	for _, c := range claims {
		b.record(c, t(c.Payment), 0)
	}
}

func (b *storeBench) complete(want int, requests ...payments.BatchRequest) {
	b.t.Helper()
	var refs []payments.BatchRef
	for _, r := range requests {
		refs = append(refs, payments.BatchRef{TenantID: r.TenantID, ID: r.ID()})
	}
	if told, err := b.Batches.CompleteBatches(b.ctx, refs); err != nil || told != want {
		b.t.Errorf("%d told, %v; want %d", told, err, want)
	}
}

// completions takes what is in the outbox of events, and returns the ids of those of batches.
func (b *storeBench) completions() (ids []string) {
	b.t.Helper()
	for _, it := range b.sent() {
		if it.EventType != schema.EventBatchCompleted {
			continue
		}
		e, err := schema.DecodeEvent(it.Body)
		if err != nil || it.Kind != payments.OutboxEvent || e.ID != it.EventID || e.Type != it.EventType || e.Sequence != 1 || e.TenantID != it.TenantID ||
			!strings.Contains(string(e.Data), `"complete":true`) {
			b.t.Errorf("%+v, %v", it, err)
		}
		ids = append(ids, it.EventID)
	}
	return ids
}

func (b *storeBench) openRefs() []payments.BatchRef {
	b.t.Helper()
	var all []payments.BatchRef
	var after payments.BatchRef
	for {
		page, err := b.Batches.OpenBatches(b.ctx, after, 1)
		if err != nil {
			b.t.Fatalf("OpenBatches: %v", err)
		}
		all = append(all, page...)
		if len(page) < 1 {
			return all
		}
		after = page[0]
	}
}

// batchCompletes: a batch is told once, as soon as somebody asks after the last of its payments has come to its end, whatever that is; never before.
func (b *storeBench) batchCompletes() {
	r, other := b.batch("b", 3), b.batch("other", 1)
	nobodys := b.batch("nobody", 1)
	b.admitBatch(r, payments.VerdictStored)
	b.complete(0, r, other, nobodys)
	b.settle(1, charged)
	b.complete(0, r)
	b.settle(1, func(payments.Payment) payments.Transition {
		return payments.Transition{Status: payments.StatusFailed, Reason: "declined"}
	})
	claim := b.takeFrom(b.Store, payments.LaneBulk, 1)[0]
	b.record(claim, payments.Transition{Status: payments.StatusNeedsReview, Reason: "several", InDoubt: true}, 0) // nobody's to act on, and not final
	b.complete(0, r)
	if _, err := b.Store.Evidence(b.ctx, r.TenantID, claim.Payment.ID, func(p payments.Payment) (payments.Transition, error) { return charged(p), nil }); err != nil {
		b.t.Fatalf("Evidence: %v", err)
	}
	b.admitBatch(other, payments.VerdictStored)
	if open := b.openRefs(); len(open) != 2 {
		b.t.Errorf("open: %+v", open)
	}
	if ids := b.completions(); len(ids) != 0 {
		b.t.Errorf("told too early: %v", ids)
	}
	b.Advance(lease)
	b.complete(1, other, r, r, nobodys)
	b.complete(0, r)
	if ids := b.completions(); len(ids) != 1 || ids[0] != schema.EventID(r.ID().Format(payments.KindBatch), 1, schema.EventBatchCompleted) {
		b.t.Errorf("told: %v", ids)
	}
	if open := b.openRefs(); len(open) != 1 || open[0].ID != other.ID() {
		b.t.Errorf("open: %+v", open)
	}
	state, err := b.Reader.Batch(b.ctx, r.TenantID, r.ID())
	if err != nil || !state.Complete() || !state.CompletedAt.Equal(b.Now()) || len(state.Totals) != 2 || state.Totals[0].Status != payments.StatusFailed || state.Totals[1].Count != 2 {
		b.t.Errorf("%+v, %v", state, err)
	}
	if row := b.stored(payments.Payment{Intent: r.Intent(), ID: r.ID()}); row.Sequence != 1 {
		b.t.Errorf("the batch's own row: %+v", row)
	}
}

// batchCompletesOnce: of many who ask at once, while the last payments are being recorded, one tells, and it is told when all have asked.
func (b *storeBench) batchCompletesOnce() {
	for round := range 10 {
		r := b.batch(numbered("b", round), 2)
		b.admitBatch(r, payments.VerdictStored)
		claims := b.takeFrom(b.Store, payments.LaneBulk, 2)
		var wg sync.WaitGroup
		var mu sync.Mutex
		told := 0
		complete := func() {
			n, err := b.Batches.CompleteBatches(b.ctx, []payments.BatchRef{{TenantID: r.TenantID, ID: r.ID()}})
			if err != nil {
				b.t.Errorf("CompleteBatches: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			told += n
		}
		for n := range 8 {
			wg.Go(func() {
				if n < len(claims) {
					b.record(claims[n], charged(claims[n].Payment), 0)
				}
				complete()
			})
		}
		wg.Wait()
		if ids := b.completions(); told != 1 || len(ids) != 1 {
			b.t.Fatalf("round %d: told %d times, events %v", round, told, ids)
		}
	}
}

// batchesAreListed: a tenant's batches, oldest first, with their totals, all or those of a run; payments are listed without them.
func (b *storeBench) batchesAreListed() {
	for n := range 5 {
		r := b.batch(numbered("run.", n), 2)
		if n != 3 {
			r.Parent = "run"
		}
		r.Payments[1].Currency = "eur"
		b.admitBatch(r, payments.VerdictStored)
		b.Advance(lease)
	}
	stranger := b.batch("run.0", 1)
	stranger.TenantID = b.Tenants[1]
	b.admitBatch(stranger, payments.VerdictStored)
	b.takeFrom(b.Store, payments.LaneBulk, 1)
	for parent, want := range map[string][]string{"": {"run.0", "run.1", "run.2", "run.3", "run.4"}, "run": {"run.0", "run.1", "run.2", "run.4"}, "other": nil} {
		q := payments.BatchListRequest{TenantID: b.Tenants[0], Parent: parent, Limit: 2}
		var got []string
		counts := map[payments.Status]int{}
		for {
			page, next, err := b.Reader.Batches(b.ctx, q)
			if err != nil || len(page) > 2 {
				b.t.Fatalf("Batches: %d, %v", len(page), err)
			}
			for _, s := range page {
				got = append(got, s.IdempotencyKey)
				for _, t := range s.Totals {
					counts[t.Status] += t.Count
				}
			}
			if q.Cursor = next; next == "" {
				break
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || counts[payments.StatusReceived]+counts[payments.StatusProcessing] != 2*len(want) || counts[payments.StatusProcessing] > 1 {
			b.t.Errorf("of %q: %v, %v", parent, got, counts)
		}
	}
	if _, _, err := b.Reader.Batches(b.ctx, payments.BatchListRequest{TenantID: b.Tenants[0], Cursor: "?"}); payments.ErrorCode(err) != payments.CodeInvalid {
		b.t.Errorf("a cursor that is none: %v", err)
	}
	list, _, err := b.Reader.List(b.ctx, payments.ListRequest{TenantID: b.Tenants[0]})
	if err != nil || len(list) != 10 {
		b.t.Errorf("%d payments are listed, %v; want 10", len(list), err)
	}
	var tenants []string
	var ids []payments.ID
	for _, p := range list {
		tenants, ids = append(tenants, p.TenantID, b.Tenants[2]), append(ids, p.ID, p.ID)
	}
	if found, err := b.Reader.FindMany(b.ctx, tenants, ids); err != nil || len(found) != 10 {
		b.t.Errorf("FindMany: %d, %v; want 10", len(found), err)
	}
}
