package document

import (
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Batch is the document of a batch and how far it is.
func Batch(s payments.BatchState) schema.Batch {
	doc := schema.Batch{
		ID: s.ID().Format(payments.KindBatch), IdempotencyKey: s.IdempotencyKey, Parent: schema.Null(s.Parent), Count: s.Count,
		ByStatus: map[string]schema.StatusTotal{}, Complete: s.Complete(),
	}
	for _, t := range s.Totals {
		total := doc.ByStatus[string(t.Status)]
		if total.Amount == nil {
			total.Amount = map[string]int64{}
		}
		total.Count += t.Count
		total.Amount[t.Currency] += t.Amount
		doc.ByStatus[string(t.Status)] = total
	}
	return doc
}

// BatchAccepted is the answer to a batch: which payment each of its intents is.
func BatchAccepted(b payments.Batch, children []payments.Payment) schema.BatchAccepted {
	doc := schema.BatchAccepted{ID: b.ID().Format(payments.KindBatch), Payments: make([]schema.BatchPayment, len(children))}
	for i, p := range children {
		doc.Payments[i] = schema.BatchPayment{Index: i, ID: p.ID.Format(p.Kind), IdempotencyKey: p.IdempotencyKey, Status: string(p.ShownStatus())}
	}
	return doc
}
