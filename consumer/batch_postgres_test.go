package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// ledger is Stripe with a memory: whoever looks finds what was charged.
type ledger struct {
	*fakeGateway
	mu      sync.Mutex
	charged map[payments.ID]payments.PaymentIntent
}

func newLedger() *ledger {
	return &ledger{fakeGateway: &fakeGateway{}, charged: map[payments.ID]payments.PaymentIntent{}}
}

func (l *ledger) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	o := l.fakeGateway.Submit(ctx, s)
	if o.Object != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.charged[s.Payment.ID] = *o.Object
	}
	return o
}

func (l *ledger) Look(_ context.Context, p payments.Payment, progress func() error) payments.Observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if progress() != nil {
		return payments.Observation{Kind: payments.ObservedNoRecords, Account: testAccount}
	}
	o := payments.Observation{Kind: payments.ObservedRecords, Account: testAccount}
	if pi, ok := l.charged[p.ID]; ok {
		o.Found = []payments.PaymentIntent{pi}
	}
	return o
}

// sums is how many payments were charged, and their amounts together.
func (l *ledger) sums() (n int, amount int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pi := range l.charged {
		n, amount = n+1, amount+pi.Amount
	}
	return n, amount
}

// batchField is a worker on PostgreSQL and JetStream, and a relay of its outboxes.
type batchField struct {
	*field
	store  *postgres.Store
	ledger *ledger

	mu     sync.Mutex
	events []payments.OutboxItem
}

func newBatchField(t *testing.T, change ...func(*Config)) *batchField {
	b := &batchField{store: openStore(t), ledger: newLedger()}
	b.field = newField(t, append([]func(*Config){onPostgres(b.store), b.charges}, change...)...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait(ctx, 10*time.Millisecond) {
			b.relay(ctx)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// charges lets a worker's payments go to the field's ledger.
func (b *batchField) charges(c *Config) { c.Processor.Gateway = b.ledger }

// relay publishes the copies of payments, twice, and keeps events.
func (b *batchField) relay(ctx context.Context) {
	copies := b.store.Intents(payments.LaneBulk)
	items, err := copies.Pending(ctx, 100, time.Minute)
	if err != nil {
		return
	}
	var sent []int64
	for _, item := range items {
		for range 2 {
			if _, err := b.js.Publish(ctx, b.Subjects.Prefix+".bulk."+item.TenantID, item.Body); err != nil {
				return
			}
		}
		sent = append(sent, item.ID)
	}
	_ = copies.Sent(ctx, sent)
	if items, err = b.store.Pending(ctx, 100, time.Minute); err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, item := range items {
		if item.Kind == payments.OutboxEvent {
			b.events = append(b.events, item)
		}
	}
}

// told lists the events of completion, in which order the outbox had them.
func (b *batchField) told() (list []payments.OutboxItem, newestOfOthers int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.EventType == schema.EventBatchCompleted {
			list = append(list, e)
		} else {
			newestOfOthers = max(newestOfOthers, e.ID)
		}
	}
	return list, newestOfOthers
}

func (b *batchField) publishBatch(tenant string, body []byte) {
	b.t.Helper()
	if _, err := b.js.Publish(b.ctx(), b.Subjects.Prefix+".batch."+tenant, body); err != nil {
		b.t.Fatal(err)
	}
}

func (b *batchField) complete(key string) bool {
	s, err := b.store.Batch(context.Background(), "acme", payments.NewID("acme", key))
	return err == nil && s.Complete()
}

// wantCharged demands that a batch of n was charged once, and told of once, after everything else.
func (b *batchField) wantCharged(key string, n int) {
	b.t.Helper()
	waitFor(b.t, "the event of the batch's completion", func() bool { list, _ := b.told(); return len(list) > 0 })
	waitFor(b.t, "all acks", func() bool { return b.quiet(payments.LaneBulk) })
	if !b.complete(key) {
		b.t.Error("told before all payments are final")
	}
	list, others := b.told()
	id := payments.NewID("acme", key).Format(payments.KindBatch)
	if len(list) != 1 || list[0].EventID != schema.EventID(id, 1, schema.EventBatchCompleted) || list[0].TenantID != "acme" {
		b.t.Errorf("%+v", list)
	}
	if list[0].ID <= others {
		b.t.Errorf("told as item %d, before a payment's event %d", list[0].ID, others)
	}
	wantAmount := int64(0)
	for i := range n {
		wantAmount += int64(1000 + i)
	}
	all, most := b.ledger.calls()
	if got, amount := b.ledger.sums(); got != n || amount != wantAmount || most != 1 || all != n {
		b.t.Errorf("%d payments of %d in all, %d calls, %d under one key", got, amount, all, most)
	}
	if l := letters(b.t, b.store); len(l) != 0 {
		b.t.Errorf("%+v", l)
	}
}

func TestBatchOverNATS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, times int }{{1, 1}, {100, 1}, {100, 5}} {
		t.Run(fmt.Sprintf("%d payments, %d times", c.n, c.times), func(t *testing.T) {
			t.Parallel()
			b := newBatchField(t)
			b.run()
			for range c.times {
				b.publishBatch("acme", batchJSON("b", c.n))
			}
			b.wantCharged("b", c.n)
		})
	}
}

// Batches of two tenants under one key are two; a batch beside a payment under the same key is a conflict.
func TestBatchKeysOfTenants(t *testing.T) {
	t.Parallel()
	b := newBatchField(t)
	b.run()
	b.publish(payments.LaneInteractive, intentJSON("single"))
	b.publishBatch("acme", batchJSON("b", 3))
	b.publishBatch("globex", batchJSON("b", 3))
	waitFor(t, "both events", func() bool { list, _ := b.told(); return len(list) == 2 })
	waitFor(t, "the payment", func() bool { n, _ := b.ledger.sums(); return n == 7 })
	b.publishBatch("acme", batchJSON("single", 3))
	b.publish(payments.LaneInteractive, intentJSON("b"))
	b.publishBatch("nobody", batchJSON("b", 3))
	waitFor(t, "three dead letters", func() bool { return len(letters(t, b.store)) == 3 })
	reasons := map[payments.Reason]int{}
	for _, l := range letters(t, b.store) {
		reasons[l.Reason]++
	}
	if n, _ := b.ledger.sums(); n != 7 || reasons[payments.ReasonKeyReused] != 2 || reasons[payments.ReasonTenantUnknown] != 1 {
		t.Errorf("%d charged, %v", n, reasons)
	}
}

// Whatever changes in a batch under its key is a dead letter that says what, and charges nothing.
func TestChangedBatchOverNATS(t *testing.T) {
	t.Parallel()
	b := newBatchField(t)
	b.run()
	b.publishBatch("acme", batchJSON("b", 3))
	b.wantCharged("b", 3)
	var parts struct {
		Key      string            `json:"idempotency_key"`
		Payments []json.RawMessage `json:"payments"`
	}
	if err := json.Unmarshal(batchJSON("b", 3), &parts); err != nil {
		t.Fatal(err)
	}
	parts.Payments[0], parts.Payments[2] = parts.Payments[2], parts.Payments[0]
	turned, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		body   []byte
		reason payments.Reason
		says   string
	}{
		{bytes.Replace(batchJSON("b", 3), []byte("1001"), []byte("1"), 1), payments.ReasonKeyReused, "payments[1].amount"},
		{turned, payments.ReasonKeyReused, "payments[0].amount, payments[2].amount"},
		{batchJSON("b", 1), payments.ReasonKeyReused, "payments"},
		{batchJSON("b", 4), payments.ReasonKeyReused, "payments"},
		{batchJSON("new", 0), payments.ReasonInvalid, "payments"},
		{batchJSON("new", 101), payments.ReasonInvalid, "payments"},
		{bytes.Replace(batchJSON("new", 3), []byte("usd"), []byte("zzz"), 1), payments.ReasonInvalid, "payments[0].currency"},
		{batchJSON("b::0", 3), payments.ReasonKeyInvalid, "::"},
	}
	for _, c := range cases {
		b.publishBatch("acme", c.body)
	}
	waitFor(t, "a dead letter each", func() bool { return len(letters(t, b.store)) == len(cases) })
	for i, l := range letters(t, b.store) {
		if c := cases[i]; l.Reason != c.reason || !strings.Contains(l.Message, c.says) || !bytes.Equal(l.Payload, c.body) || l.TenantID != "acme" {
			t.Errorf("%d: %+v", i, l)
		}
	}
	if n, _ := b.ledger.sums(); n != 3 {
		t.Errorf("%d payments are charged", n)
	}
	if list, _ := b.told(); len(list) != 1 {
		t.Errorf("%d events", len(list))
	}
}

// A worker that dies on a batch's way leaves it to the next one, which charges what was not charged, and tells of it.
func TestWorkerDiesOnABatch(t *testing.T) {
	t.Parallel()
	const n = 10
	for _, step := range []payments.Step{
		payments.StepBeforeAdmit, payments.StepAfterAdmit, payments.StepBeforeAck, payments.StepBeforeSubmit, payments.StepAfterSubmit,
		payments.StepAfterRecord,
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			short := func(c *Config) {
				c.Lease, c.Processor.Lease, c.Processor.CallTimeout = 2*time.Second, 2*time.Second, time.Second
			}
			died, end := make(chan struct{}), make(chan struct{})
			die := sync.OnceFunc(func() { close(died) })
			onStep := func(s payments.Step, _ payments.ID) {
				if s == step {
					die()
				}
				select {
				case <-died: // from now on nothing moves in that process
					<-end
				default:
				}
			}
			b := newBatchField(t, short, func(c *Config) { c.OnStep, c.Processor.OnStep = onStep, onStep })
			b.run()
			t.Cleanup(func() { close(end) })
			b.publishBatch("acme", batchJSON("b", n))
			select {
			case <-died:
			case <-time.After(standstill):
				t.Fatal("the step was not reached")
			}
			b.stop()
			second := newRig(t, onPostgres(b.store), b.charges, short, func(c *Config) {
				c.JetStream, c.Subjects = b.js, b.Subjects
				c.NewToken = func() payments.Token { token := b.NewToken(); token[0] = 2; return token }
			})
			next := &field{rig: second}
			next.run()
			waitFor(t, "all payments", func() bool { return b.complete("b") })
			second.Worker.complete.sweepOnce(context.Background()) // what the dead one did not say
			b.wantCharged("b", n)
		})
	}
}

// A process that dies with hints that nobody heard: the next one's sweep tells.
func TestHintsOfADeadWorker(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	l := newLedger()
	r := newRig(t, onPostgres(store), func(c *Config) { c.Processor.Gateway = l })
	for _, key := range []string{"a", "b", "open"} {
		msg := batchMsg(batchJSON(key, 3), 1)
		msg.sequence = uint64(len(key))
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 1 {
			t.Fatalf("%s: %d acks", key, msg.acks())
		}
	}
	got, err := store.Take(context.Background(), payments.TakeRequest{Lane: payments.LaneBulk, Limit: 9, Lease: r.Lease, Account: testAccount})
	if err != nil || len(got.Claims) != 9 {
		t.Fatalf("%d claims, %v", len(got.Claims), err)
	}
	for _, c := range got.Claims {
		if c.Payment.IdempotencyKey != "open::2" {
			r.settle(context.Background(), c, time.Time{})
		}
	}
	if len(r.complete.hints) != 3 {
		t.Errorf("%d batches hinted, want 3", len(r.complete.hints))
	}
	told := 0
	next := newRig(t, onPostgres(store), func(c *Config) { c.Observer.Completed = func(n int) { told += n } })
	for range 3 {
		next.complete.sweepOnce(context.Background())
	}
	open, err := store.OpenBatches(context.Background(), payments.BatchRef{}, 10)
	if err != nil || told != 2 || len(open) != 1 || open[0].ID != payments.NewID("acme", "open") {
		t.Errorf("%d told, open %+v, %v", told, open, err)
	}
	r.complete.last(context.Background()) // the first one was not dead after all
	if open, err = store.OpenBatches(context.Background(), payments.BatchRef{}, 10); err != nil || len(open) != 1 {
		t.Errorf("open %+v, %v", open, err)
	}
}

// Where the account's rate has no room a backlog of batches stays in the stream: the lane pulls no more until most of the tickets that it stored
// have been taken.
func TestBacklogOfBatchesStaysInTheStream(t *testing.T) {
	t.Parallel()
	const batches, size, rate = 40, 100, 400
	f := newField(t, func(c *Config) { c.Concurrency = 64 })
	f.store.bucket = &bucket{rate: rate}
	for i := range batches {
		if _, err := f.js.Publish(f.ctx(), f.Subjects.Prefix+".batch.acme", batchJSON(key(i), size)); err != nil {
			t.Fatal(err)
		}
	}
	f.run()
	waitFor(t, "three batches' outcomes", func() bool { return f.store.outcomes() >= 3*size })
	f.store.mu.Lock()
	stored, done := len(f.store.rows), f.store.recorded
	f.store.mu.Unlock()
	if waiting := stored - done; waiting > batches*size/2 || stored == batches*size {
		t.Errorf("%d payments are stored and wait, of %d", waiting, batches*size)
	}
	f.store.mu.Lock()
	f.store.bucket = nil
	f.store.mu.Unlock()
	waitFor(t, "all outcomes, acks and completions", func() bool {
		return f.store.outcomes() == batches*size && f.quiet(payments.LaneBulk) && len(f.store.completed()) == batches
	})
	if all, most := f.gateway.calls(); all != batches*size || most != 1 || len(f.store.open()) != 0 {
		t.Errorf("%d calls, %d under one key, %+v", all, most, f.store.open())
	}
}

// A worker that drains tells of the batch whose last payment it settles on the way.
func TestDrainTellsOfTheLastBatch(t *testing.T) {
	t.Parallel()
	f := newField(t)
	release := make(chan struct{})
	f.gateway.submit = func(_ context.Context, p payments.Payment) {
		if p.IdempotencyKey == "b::4" {
			<-release
		}
	}
	f.run()
	if _, err := f.js.Publish(f.ctx(), f.Subjects.Prefix+".batch.acme", batchJSON("b", 5)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all calls", func() bool { all, _ := f.gateway.calls(); return all == 5 && f.store.outcomes() == 4 })
	f.stop()
	waitFor(t, "the drain's beginning", f.stopping.Load)
	close(release)
	if err := <-f.ended; err != nil {
		t.Fatal(err)
	}
	if got := f.store.completed(); len(got) != 1 || got[0].ID != payments.NewID("acme", "b") {
		t.Errorf("%v", got)
	}
}
