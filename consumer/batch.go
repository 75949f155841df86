package consumer

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

// admitBatch stores a batch with its payments, and acks once PostgreSQL has it. Its payments' tickets are due: this worker or another takes them.
func (w *Worker) admitBatch(ctx context.Context, m held, r reading) {
	a, err := start(ctx, w, m, r, func(suspect *payments.MessageOrigin) (payments.BatchAdmission, error) {
		r.batch.Suspect = suspect
		return w.Batches.AdmitBatch(ctx, *r.batch)
	})
	due := w.due(r.lane)
	wake := false
	for _, child := range a.Children {
		if w.isDue(child) {
			wake = true
			if a.Verdict == payments.VerdictStored {
				// The lane waits for them to be taken, so that a backlog of batches stays in the stream.
				due.unclaimed.add(r.tenant, child.ID, true)
			}
		}
	}
	m.decided(err == nil && a.Verdict != payments.VerdictStored)
	if err != nil {
		w.notAdmitted(ctx, m, r, err)
		return
	}
	w.step(payments.StepAfterAdmit, r.id)
	w.message(r.lane, string(a.Verdict))
	switch what, reason := afterAdmission(a.Verdict); what {
	case deliverAck:
		w.ack(m, r.id)
		if wake {
			due.wakeUp()
		}
	case deliverBury:
		w.bury(ctx, m, r, explain(reason, a.Differs, r))
	}
}
