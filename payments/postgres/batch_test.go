package postgres

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// batchOf is a batch of n payments of acme's, the i-th of 100 + i cents.
func batchOf(key string, n int) payments.BatchRequest {
	r := payments.BatchRequest{TenantID: "acme", IdempotencyKey: key, Payments: make([]payments.Intent, n)}
	for i := range r.Payments {
		r.Payments[i] = intent("", "", int64(100+i))
	}
	return r
}

func (b *bench) admitBatch(r payments.BatchRequest, want payments.Verdict) payments.BatchAdmission {
	b.t.Helper()
	a, err := b.AdmitBatch(context.Background(), r)
	if err != nil || a.Verdict != want {
		b.t.Fatalf("AdmitBatch of %s: %s, differs %v, %v; want %s", r.IdempotencyKey, a.Verdict, a.Differs, err, want)
	}
	return a
}

// settle records the outcome of n bulk payments.
func (b *bench) settle(n int, t func(payments.Payment) payments.Transition) {
	b.t.Helper()
	for n > 0 {
		claims := b.take(payments.TakeRequest{Lane: payments.LaneBulk, Limit: min(n, 64)})
		if len(claims) == 0 {
			b.t.Fatalf("%d payments are not due", n)
		}
		for _, c := range claims {
			b.record(c, t(c.Payment), 0)
		}
		n -= len(claims)
	}
}

func (b *bench) complete(refs ...payments.BatchRef) int {
	b.t.Helper()
	n, err := b.CompleteBatches(context.Background(), refs)
	if err != nil {
		b.t.Fatalf("CompleteBatches: %v", err)
	}
	return n
}

func refOf(r payments.BatchRequest) payments.BatchRef {
	return payments.BatchRef{TenantID: r.TenantID, ID: r.ID()}
}

// rows counts what stands in the tables.
func (b *bench) rows(table string) (n int) {
	b.t.Helper()
	if err := b.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestBatchWay follows a batch from its admission to its event.
func TestBatchWay(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	r := batchOf("run.000001", 12)
	r.Parent = "run"
	r.Payments[3].Currency, r.Payments[4].Metadata = "EUR", map[string]string{"größe": "<1>"}
	a := b.admitBatch(r, payments.VerdictStored)
	again := b.admitBatch(r, payments.VerdictExists)
	for _, got := range []payments.BatchAdmission{a, again} {
		if got.Batch.Parent != "run" || got.Batch.Count != 12 || !got.Batch.CreatedAt.Equal(b.clock.Now()) || got.Batch.ID() != r.ID() || len(got.Children) != 12 {
			t.Fatalf("%+v", got)
		}
		for i, p := range got.Children {
			if p.IdempotencyKey != "run.000001::"+strconv.Itoa(i) || p.ID != p.Intent.ID() || p.Lane != payments.LaneBulk || p.Amount != int64(100+i) ||
				p.BatchID != r.ID().Format(payments.KindBatch) || p.Status != payments.StatusReceived || !p.NextAttemptAt.Equal(b.clock.Now()) || p.Owned {
				t.Errorf("child %d: %+v", i, p)
			}
			if stored, err := b.Find(ctx, "acme", p.ID); err != nil || len(payments.Differs(stored.Intent, p.Intent)) > 0 || !stored.CreatedAt.Equal(p.CreatedAt) {
				t.Errorf("stored %d: %+v, %v", i, stored, err)
			}
		}
	}
	parent, err := b.Find(ctx, "acme", r.ID())
	if err != nil || parent.Kind != payments.KindBatch || parent.Status != payments.StatusSucceeded || parent.Sequence != 0 || !parent.FinalizedAt.Equal(parent.CreatedAt) {
		t.Errorf("the batch's own row: %+v, %v", parent, err)
	}
	sent := b.sent.all()
	if len(sent) != 12 {
		t.Fatalf("%d messages, want 12", len(sent))
	}
	for _, it := range sent {
		wire, err := schema.DecodeIntent(it.Body)
		i := slices.IndexFunc(a.Children, func(p payments.Payment) bool { return p.IdempotencyKey == wire.IdempotencyKey.Value })
		if err != nil || i < 0 || it.Kind != payments.OutboxIntent || it.Lane != payments.LaneBulk || it.TenantID != "acme" {
			t.Fatalf("%+v, %v", it, err)
		}
		if payments.Fingerprint(document.ReadIntent(wire, it.TenantID, "")) != payments.Fingerprint(a.Children[i].Intent) {
			t.Errorf("the message of %s asks for something else", wire.IdempotencyKey.Value)
		}
	}

	b.settle(11, succeeded)
	if n := b.complete(refOf(r)); n != 0 {
		t.Fatalf("told with a child that is not final")
	}
	b.clock.Advance(time.Minute)
	b.settle(1, func(payments.Payment) payments.Transition {
		return payments.Transition{Status: payments.StatusFailed, Reason: "declined"}
	})
	before := len(b.sent.all())
	if n := b.complete(refOf(r), refOf(r), payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", "other")}, payments.BatchRef{TenantID: "\x00"}); n != 1 {
		t.Fatalf("%d told, want 1", n)
	}
	items := b.sent.all()[before:]
	if len(items) != 1 || items[0].EventID != r.ID().Format(payments.KindBatch)+"_1_completed" || items[0].EventType != schema.EventBatchCompleted || items[0].ID == 0 {
		t.Fatalf("%+v", items)
	}
	event, err := schema.DecodeEvent(items[0].Body)
	if err != nil || event.ID != items[0].EventID || event.Subject != r.ID().Format(payments.KindBatch) || event.Sequence != 1 || event.TenantID != "acme" {
		t.Errorf("%+v, %v", event, err)
	}
	state, err := b.Batch(ctx, "acme", r.ID())
	if err != nil || !state.Complete() || !state.CompletedAt.Equal(b.clock.Now()) {
		t.Errorf("%+v, %v", state, err)
	}
	doc, err := schema.Marshal(document.Batch(state))
	if err != nil || string(doc) != string(event.Data) {
		t.Errorf("the event shows %s, want %s, %v", event.Data, doc, err)
	}
	if parent, err = b.Find(ctx, "acme", r.ID()); err != nil || parent.Sequence != 1 {
		t.Errorf("%+v, %v", parent, err)
	}
	if n := b.complete(refOf(r)); n != 0 {
		t.Errorf("told twice")
	}
	if entries, err := b.Timeline(ctx, "acme", r.ID()); err != nil || len(entries) != 1 || entries[0].Type != schema.EventBatchCompleted || entries[0].Sequence != 1 {
		t.Errorf("%+v, %v", entries, err)
	}
	b.clock.Advance(b.opts.Hold)
	pending := b.pending(100)
	if last := pending[len(pending)-1]; string(last.Body) != string(items[0].Body) || last.EventID != items[0].EventID {
		t.Errorf("pending: %+v", last)
	}
}

// TestBatchIsNoPayment: what lists and counts payments shows none.
func TestBatchIsNoPayment(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	r := batchOf("b", 3)
	b.admitBatch(r, payments.VerdictStored)
	list, _, err := b.List(ctx, payments.ListRequest{TenantID: "acme"})
	if err != nil || len(list) != 3 {
		t.Errorf("%d listed, %v", len(list), err)
	}
	for _, q := range []payments.ListRequest{{TenantID: "acme", IdempotencyKey: "b"}, {IdempotencyKey: "b"}, {Status: payments.StatusSucceeded}} {
		if list, _, err := b.List(ctx, q); err != nil || len(list) != 0 {
			t.Errorf("%+v lists %+v, %v", q, list, err)
		}
	}
	if counts, err := b.CountByStatus(ctx, "acme"); err != nil || counts[payments.StatusReceived] != 3 || len(counts) != 1 {
		t.Errorf("%v, %v", counts, err)
	}
	if p, err := b.FindAnywhere(ctx, r.ID()); err != nil || p.Kind != payments.KindBatch {
		t.Errorf("%+v, %v", p, err)
	}
	if n, err := b.TicketCount(ctx); n != 3 || err != nil {
		t.Errorf("%d tickets, %v", n, err)
	}
}

// TestBatchConflicts: whatever else is asked for under the same key changes nothing and is named.
func TestBatchConflicts(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.admitBatch(batchOf("b", 5), payments.VerdictStored)
	b.admit(payments.AdmitRequest{Intent: intent("acme", "single", 1), Lane: payments.LaneInteractive})
	tables := []string{"payments", "batches", "queue", "outbox_intents"}
	var before []int
	for _, table := range tables {
		before = append(before, b.rows(table))
	}
	for name, c := range map[string]struct {
		request payments.BatchRequest
		want    []string
	}{
		"amount": {func() payments.BatchRequest { r := batchOf("b", 5); r.Payments[3].Amount = 1; return r }(), []string{"payments[3].amount"}},
		"fewer":  {batchOf("b", 4), []string{"payments"}},
		"more":   {batchOf("b", 100), []string{"payments"}},
		"parent": {func() payments.BatchRequest { r := batchOf("b", 5); r.Parent = "run"; return r }(), []string{"parent"}},
		"order": {func() payments.BatchRequest {
			r := batchOf("b", 5)
			r.Payments[0], r.Payments[1] = r.Payments[1], r.Payments[0]
			return r
		}(), []string{"payments[0].amount", "payments[1].amount"}},
		"a payment's key": {batchOf("single", 5), []string{"kind"}},
	} {
		for _, refused := range []*payments.ValidationError{nil, {Reason: payments.ReasonInvalid}} {
			c.request.Refused = refused
			if a := b.admitBatch(c.request, payments.VerdictConflict); !slices.Equal(a.Differs, c.want) || a.Children != nil {
				t.Errorf("%s: differs in %v, want %v", name, a.Differs, c.want)
			}
		}
	}
	if a := b.admit(b.claiming(intent("acme", "b", 100))); a.Verdict != payments.VerdictConflict || !slices.Equal(a.Differs, []string{"kind"}) {
		t.Errorf("a charge under a batch's key: %+v", a)
	}
	refused := batchOf("b", 5)
	refused.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	b.admitBatch(refused, payments.VerdictRefused)
	refused.IdempotencyKey = "new"
	b.admitBatch(refused, payments.VerdictRefused)
	refused.IdempotencyKey, refused.Payments = "", make([]payments.Intent, 1000)
	b.admitBatch(refused, payments.VerdictRefused)
	stranger := batchOf("b", 5)
	stranger.TenantID = "nobody"
	b.admitBatch(stranger, payments.VerdictTenantUnknown)
	for i, table := range tables {
		if n := b.rows(table); n != before[i] {
			t.Errorf("%s has %d rows, had %d", table, n, before[i])
		}
	}
	for field, r := range map[string]payments.BatchRequest{
		"payments": batchOf("x", 0), "idempotency_key": batchOf("a::b", 1), "parent": {TenantID: "acme", IdempotencyKey: "x", Payments: batchOf("x", 1).Payments, Parent: "\x00"},
		"payments[1].description": func() payments.BatchRequest { r := batchOf("x", 2); r.Payments[1].Description = "\xff"; return r }(),
	} {
		if _, err := b.AdmitBatch(context.Background(), r); payments.ErrorCode(err) != payments.CodeInvalid || err.(*payments.Error).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := b.Admit(context.Background(), payments.AdmitRequest{Intent: batchOf("alone", 1).Intent(), Lane: payments.LaneBulk}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a batch without payments: %v", err)
	}
}

// TestBatchMeetsChildren: a child that is there already, as after a restore, is taken as it is if it asks for the same; else nothing of the batch stays.
func TestBatchMeetsChildren(t *testing.T) {
	t.Parallel()
	b := open(t)
	r := batchOf("b", 6)
	children := r.Children()
	there := b.admit(payments.AdmitRequest{Intent: children[2], Lane: payments.LaneBulk}).Payment
	b.settle(1, succeeded)
	other := children[4]
	other.Amount++
	b.admit(payments.AdmitRequest{Intent: other, Lane: payments.LaneBulk})
	origin := b.origin(1)
	if _, err := b.Suspect(context.Background(), payments.DeadLetter{Origin: origin}); err != nil {
		t.Fatal(err)
	}
	r.Suspect = &origin
	if a := b.admitBatch(r, payments.VerdictConflict); !slices.Equal(a.Differs, []string{"payments[4].amount"}) || a.Batch.Count != 0 {
		t.Errorf("%+v", a)
	}
	if n, m := b.rows("payments"), b.rows("batches")+b.rows("outbox_intents")+b.rows("dead_letters"); n != 2 || m != 0 || len(b.sent.all()) != 1 {
		t.Errorf("%d payments, %d other rows, %d messages", n, m, len(b.sent.all()))
	}
	r.Payments[4].Amount++
	a := b.admitBatch(r, payments.VerdictStored)
	if p := a.Children[2]; p.ID != there.ID || p.Status != payments.StatusSucceeded || a.Children[4].Amount != other.Amount {
		t.Errorf("%+v", a.Children)
	}
	if n, m := b.rows("payments"), b.rows("outbox_intents"); n != 7 || m != 4 {
		t.Errorf("%d payments, %d announced", n, m)
	}
	b.settle(5, succeeded)
	if b.complete(refOf(r)) != 1 {
		t.Error("not complete")
	}
}

// TestBatchAtOnce: of many at once one is stored, and the others are answered with what is there; another content under the key is a conflict.
func TestBatchAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	second := b.another(Options{Clock: b.clock, PoolSize: 8})
	for name, other := range map[string]bool{"same": false, "different": true} {
		verdicts := map[payments.Verdict]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		start := make(chan struct{})
		for n := range 20 {
			wg.Go(func() {
				r := batchOf(name, 30)
				if other && n%2 == 1 {
					r.Payments[7].Amount++
				}
				<-start
				a, err := []*Store{b.Store, second}[n/2%2].AdmitBatch(ctx, r)
				if err != nil {
					t.Errorf("AdmitBatch: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				verdicts[a.Verdict]++
			})
		}
		close(start)
		wg.Wait()
		want := map[payments.Verdict]int{payments.VerdictStored: 1, payments.VerdictExists: 19}
		if other {
			want = map[payments.Verdict]int{payments.VerdictStored: 1, payments.VerdictExists: 9, payments.VerdictConflict: 10}
		}
		for v, n := range want {
			if verdicts[v] != n {
				t.Errorf("%s: %v, want %v", name, verdicts, want)
				break
			}
		}
	}
	if n, m := b.rows("payments"), b.rows("outbox_intents"); n != 62 || m != 60 {
		t.Errorf("%d payments, %d announced", n, m)
	}
}
