package paymentstest

import (
	"slices"
	"strconv"
	"sync"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// batch is a batch of n charges of the first tenant's, the i-th of 100 + i cents.
func (b *storeBench) batch(key string, n int) payments.BatchRequest {
	r := payments.BatchRequest{TenantID: b.Tenants[0], IdempotencyKey: key, Payments: make([]payments.Intent, n)}
	for i := range r.Payments {
		p := b.intent("")
		p.TenantID, p.Amount = "", int64(100+i)
		r.Payments[i] = p
	}
	return r
}

func (b *storeBench) admitBatch(r payments.BatchRequest, want payments.Verdict) payments.BatchAdmission {
	b.t.Helper()
	a, err := b.Batches.AdmitBatch(b.ctx, r)
	if err != nil {
		b.t.Fatalf("AdmitBatch: %v", err)
	}
	if a.Verdict != want {
		b.t.Fatalf("AdmitBatch of %s: %s, differs in %v; want %s", r.IdempotencyKey, a.Verdict, a.Differs, want)
	}
	return a
}

// noBatch wants nothing of the batch to be there.
func (b *storeBench) noBatch(r payments.BatchRequest) {
	b.t.Helper()
	if state, err := b.Reader.Batch(b.ctx, r.TenantID, r.ID()); payments.ErrorCode(err) != payments.CodeNotFound {
		b.t.Errorf("the batch %s: %+v, %v; want %s", r.IdempotencyKey, state, err, payments.CodeNotFound)
	}
	for i, child := range r.Children() {
		if p, err := b.Store.Find(b.ctx, r.TenantID, child.ID()); payments.ErrorCode(err) != payments.CodeNotFound {
			b.t.Errorf("payment %d of %s: %+v, %v; want %s", i, r.IdempotencyKey, p, err, payments.CodeNotFound)
		}
	}
}

// batchStores: one call stores the batch's row, its payments with tickets that are due, and what publishes them on the bulk lane; the row is final and
// nobody's to act on.
func (b *storeBench) batchStores() {
	r := b.batch("b", 7)
	r.Parent = "run"
	everyField(b.Now())(&r.Payments[2])
	a := b.admitBatch(r, payments.VerdictStored)
	if a.Batch.TenantID != r.TenantID || a.Batch.IdempotencyKey != "b" || a.Batch.Parent != "run" || a.Batch.Count != 7 || !a.Batch.CreatedAt.Equal(b.Now()) || !a.Batch.CompletedAt.IsZero() {
		b.t.Errorf("the batch: %+v", a.Batch)
	}
	b.children(r, a.Children)
	row := b.stored(payments.Payment{Intent: r.Intent(), ID: r.ID()})
	if row.Kind != payments.KindBatch || row.Status != payments.StatusSucceeded || row.Sequence != 0 || row.FinalizedAt.IsZero() || row.Owned {
		b.t.Errorf("the batch's own row: %+v", row)
	}
	if items := b.sent(); len(items) != 0 {
		b.t.Errorf("somebody is told of %+v", items)
	}
	b.announced(payments.LaneInteractive)
	b.announced(payments.LaneBulk, r.Children()...)
	claims := b.takeFrom(b.Store, payments.LaneBulk, 10)
	if len(claims) != 7 {
		b.t.Errorf("%d tickets are due, want 7", len(claims))
	}
	again := b.admitBatch(r, payments.VerdictExists)
	for i, p := range again.Children {
		if !p.Owned || p.ID != a.Children[i].ID {
			b.t.Errorf("a repeat shows %+v, want it as it is now", p)
		}
	}
	b.announced(payments.LaneBulk)
}

// children wants the answer to name the payments in order, as they were asked for.
func (b *storeBench) children(r payments.BatchRequest, got []payments.Payment) {
	b.t.Helper()
	want := r.Children()
	if len(got) != len(want) {
		b.t.Fatalf("%d payments are answered, want %d", len(got), len(want))
	}
	for i, p := range got {
		if p.ID != want[i].ID() || p.IdempotencyKey != r.IdempotencyKey+payments.ChildSeparator+strconv.Itoa(i) || p.Lane != payments.LaneBulk || p.BatchID != r.ID().Format(payments.KindBatch) {
			b.t.Errorf("payment %d: %+v", i, p)
		}
		sameIntent(b, b.stored(p).Intent, want[i])
		sameIntent(b, p.Intent, want[i])
	}
}

// announced empties the lane's outbox, and wants in it what asks for these intents, each once.
func (b *storeBench) announced(lane payments.Lane, want ...payments.Intent) {
	b.t.Helper()
	outbox := b.Intents(lane)
	items, err := outbox.Pending(b.ctx, 1000, lease)
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	var ids []int64
	met := map[string]bool{}
	for _, it := range items {
		ids = append(ids, it.ID)
		wire, err := schema.DecodeIntent(it.Body)
		key := wire.IdempotencyKey.Value
		i := slices.IndexFunc(want, func(w payments.Intent) bool { return w.TenantID == it.TenantID && w.IdempotencyKey == key })
		if err != nil || i < 0 || met[key] || it.Kind != payments.OutboxIntent || it.Lane != lane {
			b.t.Errorf("announced in lane %d: %+v, %v", lane, it, err)
			continue
		}
		met[key] = true
		sameIntent(b, document.ReadIntent(wire, it.TenantID, key), want[i])
	}
	if len(met) != len(want) {
		b.t.Errorf("%d are announced in lane %d, want %d", len(met), lane, len(want))
	}
	if err := outbox.Sent(b.ctx, ids); err != nil {
		b.t.Fatalf("Sent: %v", err)
	}
}

// batchConflict: another parent, number, order or content under the key is a conflict that names it, and changes nothing; so is a payment's key for a
// batch, and a batch's for a payment.
func (b *storeBench) batchConflict() {
	a := b.admitBatch(b.batch("b", 5), payments.VerdictStored)
	b.admit(payments.AdmitRequest{Intent: b.intent("single"), Lane: payments.LaneInteractive}, payments.VerdictStored)
	changed := b.batch("b", 5)
	changed.Payments[3].Amount, changed.Payments[3].Customer = 1, ""
	swapped := b.batch("b", 5)
	swapped.Payments[0], swapped.Payments[4] = swapped.Payments[4], swapped.Payments[0]
	parent := b.batch("b", 5)
	parent.Parent = "run"
	for _, c := range []struct {
		request payments.BatchRequest
		differs []string
	}{
		{changed, []string{"payments[3].amount", "payments[3].customer"}}, {swapped, []string{"payments[0].amount", "payments[4].amount"}},
		{parent, []string{"parent"}}, {b.batch("b", 4), []string{"payments"}}, {b.batch("b", 6), []string{"payments"}}, {b.batch("single", 2), []string{"kind"}},
	} {
		for _, refused := range []*payments.ValidationError{nil, {Reason: payments.ReasonInvalid}} {
			c.request.Refused = refused
			if got := b.admitBatch(c.request, payments.VerdictConflict); !slices.Equal(got.Differs, c.differs) {
				b.t.Errorf("differs in %v, want %v", got.Differs, c.differs)
			}
		}
	}
	for _, refused := range []*payments.ValidationError{nil, {Reason: payments.ReasonInvalid}} {
		got := b.admit(payments.AdmitRequest{Intent: b.intent("b"), Lane: payments.LaneBulk, Refused: refused}, payments.VerdictConflict)
		if !slices.Contains(got.Differs, "kind") {
			b.t.Errorf("a payment under a batch's key differs in %v", got.Differs)
		}
	}
	for _, p := range a.Children {
		b.unchanged(p)
	}
	b.announced(payments.LaneBulk, b.batch("b", 5).Children()...)
}

// batchRefused: what must not be inserted leaves nothing; tenants that do not exist have no batches.
func (b *storeBench) batchRefused() {
	r := b.batch("b", 3)
	r.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	b.admitBatch(r, payments.VerdictRefused)
	stranger := b.batch("b", 3)
	stranger.TenantID = "conformance-nobody"
	b.admitBatch(stranger, payments.VerdictTenantUnknown)
	b.noBatch(r)
	unreadable := b.batch("", 0)
	unreadable.Payments, unreadable.Refused = make([]payments.Intent, 2*payments.BatchSizeMax), r.Refused
	b.admitBatch(unreadable, payments.VerdictRefused)
	r.Refused = nil
	b.admitBatch(r, payments.VerdictStored)
	r.Refused = unreadable.Refused
	b.admitBatch(r, payments.VerdictRefused)
	other := b.batch("b", 3)
	other.TenantID = b.Tenants[1]
	b.admitBatch(other, payments.VerdictStored) // keys are each tenant's own
}

// batchExistingOnly: a request that may insert nothing is answered by the batch that is there, compared as ever, and else leaves nothing; what is there
// of its payments alone is no batch.
func (b *storeBench) batchExistingOnly() {
	only := func(r payments.BatchRequest) payments.BatchRequest {
		r.ExistingOnly = true
		return r
	}
	r := b.batch("b", 3)
	b.admitBatch(only(r), payments.VerdictAbsent)
	b.noBatch(r)
	refused := only(r)
	refused.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	b.admitBatch(refused, payments.VerdictRefused)
	stranger := only(r)
	stranger.TenantID = "conformance-nobody"
	b.admitBatch(stranger, payments.VerdictTenantUnknown)
	alone := b.batch("alone", 2)
	b.admit(payments.AdmitRequest{Intent: alone.Children()[0], Lane: payments.LaneBulk}, payments.VerdictStored)
	b.admitBatch(only(alone), payments.VerdictAbsent)
	b.announced(payments.LaneBulk)

	b.admitBatch(r, payments.VerdictStored)
	if a := b.admitBatch(only(r), payments.VerdictExists); a.Batch.Count != 3 {
		b.t.Errorf("the batch: %+v", a.Batch)
	} else {
		b.children(r, a.Children)
	}
	changed := only(b.batch("b", 3))
	changed.Payments[1].Amount++
	if a := b.admitBatch(changed, payments.VerdictConflict); !slices.Equal(a.Differs, []string{"payments[1].amount"}) {
		b.t.Errorf("differs in %v", a.Differs)
	}
	b.admit(payments.AdmitRequest{Intent: b.intent("single"), Lane: payments.LaneInteractive}, payments.VerdictStored)
	b.admitBatch(only(b.batch("single", 1)), payments.VerdictConflict)
	b.announced(payments.LaneBulk, r.Children()...)
}

// batchMeetsChildren: a payment that is there already is taken if it asks for the same, and is not announced again; else nothing of the batch stays.
func (b *storeBench) batchMeetsChildren() {
	r := b.batch("b", 4)
	children := r.Children()
	b.admit(payments.AdmitRequest{Intent: children[1], Lane: payments.LaneBulk}, payments.VerdictStored)
	b.record(b.takeFrom(b.Store, payments.LaneBulk, 1)[0], charged(payments.Payment{Intent: children[1], ID: children[1].ID()}), 0)
	wrong := r
	wrong.Payments = slices.Clone(r.Payments)
	wrong.Payments[1].Description = "other"
	if a := b.admitBatch(wrong, payments.VerdictConflict); !slices.Equal(a.Differs, []string{"payments[1].description"}) {
		b.t.Errorf("differs in %v", a.Differs)
	}
	if _, err := b.Reader.Batch(b.ctx, r.TenantID, r.ID()); payments.ErrorCode(err) != payments.CodeNotFound {
		b.t.Errorf("something of the batch stays: %v", err)
	}
	b.announced(payments.LaneBulk)
	if a := b.admitBatch(r, payments.VerdictStored); a.Children[1].Status != payments.StatusSucceeded || a.Children[2].Status != payments.StatusReceived {
		b.t.Errorf("%+v", a.Children)
	}
	b.announced(payments.LaneBulk, children[0], children[2], children[3])
}

// batchSuspect: a message that was admitted is no suspect any more, whatever became of its batch.
func (b *storeBench) batchSuspect() {
	conflict, refused, stranger := b.batch("a", 3), b.batch("refused", 2), b.batch("stranger", 2)
	refused.Refused, stranger.TenantID = &payments.ValidationError{Reason: payments.ReasonInvalid}, "conformance-nobody"
	b.admitBatch(b.batch("a", 2), payments.VerdictStored)
	taken := b.batch("taken", 2)
	other := taken.Children()[1]
	other.Amount++
	b.admit(payments.AdmitRequest{Intent: other, Lane: payments.LaneBulk}, payments.VerdictStored)
	for n, c := range []struct {
		request payments.BatchRequest
		verdict payments.Verdict
	}{
		{b.batch("new", 2), payments.VerdictStored}, {b.batch("a", 2), payments.VerdictExists}, {conflict, payments.VerdictConflict},
		{refused, payments.VerdictRefused}, {stranger, payments.VerdictTenantUnknown}, {taken, payments.VerdictConflict},
	} {
		letter := payments.DeadLetter{Reason: payments.ReasonHandlerPanic, Origin: payments.MessageOrigin{
			Stream: "PAYMENTS_BULK", StreamCreated: b.Now(), Sequence: uint64(n + 1), Subject: "payments.batch.x",
		}}
		for range 2 {
			if _, err := b.Store.Suspect(b.ctx, letter); err != nil {
				b.t.Fatalf("Suspect: %v", err)
			}
		}
		c.request.Suspect = &letter.Origin
		b.admitBatch(c.request, c.verdict)
		if starts, err := b.Store.Suspect(b.ctx, letter); err != nil || starts != 1 {
			b.t.Errorf("%s: started %d times, %v; want once", c.verdict, starts, err)
		}
	}
}

// batchAtOnce: of the same batch many times at once one is stored, and of two that share a key one, whole.
func (b *storeBench) batchAtOnce() {
	for name, want := range map[string]map[payments.Verdict]int{
		"same":  {payments.VerdictStored: 1, payments.VerdictExists: 19},
		"other": {payments.VerdictStored: 1, payments.VerdictExists: 9, payments.VerdictConflict: 10},
	} {
		verdicts := make([]payments.Verdict, 20)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for n := range verdicts {
			wg.Go(func() {
				r := b.batch(name, 20)
				if name == "other" && n%2 == 1 {
					r.Payments[3].Amount++
				}
				<-start
				a, err := b.Batches.AdmitBatch(b.ctx, r)
				if err != nil {
					b.t.Errorf("caller %d: %v", n, err)
				}
				verdicts[n] = a.Verdict
			})
		}
		close(start)
		wg.Wait()
		got := map[payments.Verdict]int{}
		for _, v := range verdicts {
			got[v]++
		}
		for v, n := range want {
			if got[v] != n {
				b.t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	if claims := b.takeFrom(b.Store, payments.LaneBulk, 100); len(claims) != 40 {
		b.t.Errorf("%d tickets, want 40", len(claims))
	}
}
