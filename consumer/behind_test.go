package consumer

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// A tenant's batch on NATS does not wait for all that another tenant has accepted over HTTP, because a batch of that one stands behind it.
func TestBatchBesideABacklogOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBatchField(t, func(c *Config) { c.Concurrency = 16 })
	b.ledger.fakeGateway.submit = takes(150 * time.Millisecond) // 16 at once: the backlog takes half a minute
	const batches = 30
	ctx := context.Background()
	for i := range batches {
		r := payments.BatchRequest{TenantID: "acme", IdempotencyKey: "http-" + strconv.Itoa(i), Payments: make([]payments.Intent, payments.BatchSizeMax)}
		for j := range r.Payments {
			r.Payments[j] = testIntent("")
		}
		if a, err := b.store.AdmitBatch(ctx, r); err != nil || a.Verdict != payments.VerdictStored {
			t.Fatalf("%s, %v", a.Verdict, err)
		}
	}
	b.run()
	b.publishBatch("acme", batchJSON("nats", 100))
	waitFor(t, "the lane to wait for its own tickets", b.lanes[1].flow.isHolding)
	b.publishBatch("globex", batchJSON("other", 1))
	waitFor(t, "the lane to let messages through", func() bool {
		f := b.lanes[1].flow
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.through > 0
	})
	other := payments.NewID("globex", "other::0")
	waitFor(t, "the other tenant's payment", func() bool {
		p, err := b.store.Find(ctx, "globex", other)
		return err == nil && p.Status == payments.StatusSucceeded
	})
	if n, _ := b.ledger.sums(); n > batches*100*3/4 {
		t.Errorf("%d of %d before it were done first", n, batches*100)
	}
}
