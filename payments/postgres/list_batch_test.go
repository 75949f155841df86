package postgres

import (
	"context"
	"strconv"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestListOfABatch: the payments of one batch and no others, in its order, page by page, and with the other filters.
func TestListOfABatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	batch := batchOf("B", 7)
	b.admitBatch(batch, payments.VerdictStored)
	b.admitBatch(batchOf("B2", 3), payments.VerdictStored)
	b.settle(4, succeeded)
	list := func(r payments.ListRequest) (keys []string) {
		t.Helper()
		for r.TenantID, r.Batch = "acme", batch.ID(); ; {
			page, next, err := b.List(ctx, r)
			if err != nil || r.Limit > 0 && len(page) > r.Limit {
				t.Fatalf("%+v: %d payments, %v", r, len(page), err)
			}
			for _, p := range page {
				keys = append(keys, p.IdempotencyKey)
			}
			if r.Cursor = next; next == "" {
				return keys
			}
		}
	}
	for _, limit := range []int{0, 1, 2, 7} {
		keys := list(payments.ListRequest{Limit: limit})
		if len(keys) != 7 {
			t.Fatalf("by %d: %q", limit, keys)
		}
		for i, key := range keys {
			if key != "B::"+strconv.Itoa(i) {
				t.Errorf("by %d: %q", limit, keys)
			}
		}
	}
	done, left := list(payments.ListRequest{Limit: 2, Status: payments.StatusSucceeded}), list(payments.ListRequest{Limit: 2, Status: payments.StatusReceived})
	if len(done)+len(left) != 7 || len(list(payments.ListRequest{IdempotencyKey: "B::3"})) != 1 || len(list(payments.ListRequest{Customer: "nobody"})) != 0 {
		t.Errorf("%q and %q", done, left)
	}
	for _, tenant := range []string{"other", ""} {
		if _, _, err := b.List(ctx, payments.ListRequest{TenantID: tenant, Batch: batch.ID()}); payments.ErrorCode(err) != payments.CodeNotFound {
			t.Errorf("of %q: %v", tenant, err)
		}
	}
}
