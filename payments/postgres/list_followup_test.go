package postgres

import (
	"context"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestListOperations: who asks for captures, cancels and refunds, too, is shown them among the charges, page by page, each once; a list of payments stays one.
func TestListOperations(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	every := []payments.Kind{payments.KindCharge, payments.KindCapture, payments.KindCancel, payments.KindRefund}
	charge := b.taken("k")
	refund, _ := b.reviewed(charge)
	b.exec("UPDATE operations SET stripe_refund = 're_7' WHERE id = $1", refund.ID[:])
	capture := b.ask(asking(payments.KindCapture, b.held("h"), "c", 0), payments.VerdictStored).FollowUp
	b.admitBatch(batchOf("b", 1), payments.VerdictStored)
	for name, c := range map[string]struct {
		r    payments.ListRequest
		want int
	}{
		"all":              {payments.ListRequest{Kinds: every}, 6},
		"of a tenant":      {payments.ListRequest{Kinds: every, TenantID: "acme"}, 6},
		"payments":         {payments.ListRequest{}, 3},
		"refunds":          {payments.ListRequest{Kinds: []payments.Kind{payments.KindRefund}}, 2},
		"for a person":     {payments.ListRequest{Kinds: every, Status: payments.StatusNeedsReview}, 1},
		"payments for one": {payments.ListRequest{Status: payments.StatusNeedsReview}, 0},
		"by a key":         {payments.ListRequest{Kinds: every, TenantID: "acme", IdempotencyKey: "c"}, 1},
		"by a batch's key": {payments.ListRequest{Kinds: append(every[:4:4], payments.KindBatch), TenantID: "acme", IdempotencyKey: "b"}, 0},
		"of a batch":       {payments.ListRequest{Kinds: every, TenantID: "acme", Batch: payments.NewID("acme", "b")}, 1},
		"none of a batch":  {payments.ListRequest{Kinds: every[1:], TenantID: "acme", Batch: payments.NewID("acme", "b")}, 0},
	} {
		seen := map[payments.ID]bool{}
		for c.r.Limit = 1; ; {
			page, next, err := b.List(ctx, c.r)
			if err != nil || len(page) > 1 {
				t.Fatalf("%s: %+v, %v", name, page, err)
			}
			for _, p := range page {
				if seen[p.ID] || !c.r.Lists(p.Kind) {
					t.Errorf("%s: %+v", name, p)
				}
				seen[p.ID] = true
			}
			if c.r.Cursor = next; next == "" {
				break
			}
		}
		if len(seen) != c.want {
			t.Errorf("%s: %d, want %d", name, len(seen), c.want)
		}
	}
	whole, err := b.WithRefunds(ctx, []payments.Payment{charge, refund.Payment, capture.Payment})
	if err != nil || len(whole) != 3 || whole[0].ID != charge.ID || whole[0].Number != 0 || whole[1].StripeRefund != "re_7" || whole[1].Number != 1 || whole[2].ID != capture.ID || whole[2].StripeRefund != "" {
		t.Errorf("WithRefunds: %+v, %v", whole, err)
	}
}
