package consumer

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

// errNoFollowUps: the worker was made without a store of follow-ups.
var errNoFollowUps = payments.Errorf(payments.CodeInternal, "this worker takes no captures, cancels and refunds")

// admitFollowUp stores a capture, a cancel or a refund, and acks once PostgreSQL has it. It is never claimed here: its ticket is due, and what was accepted
// before it for the same payment comes first.
func (w *Worker) admitFollowUp(ctx context.Context, m held, r reading) {
	request := payments.FollowUpRequest{Intent: r.intent, Lane: r.lane, Refused: r.refused, ExistingOnly: r.existingOnly, Allowed: w.trusted}
	a, err := start(ctx, w, m, r, func(suspect *payments.MessageOrigin) (payments.FollowUpAdmission, error) {
		request.Suspect = suspect
		return w.storeFollowUp(ctx, request)
	})
	stored := err == nil && a.Verdict == payments.VerdictStored
	due := w.due(r.lane)
	if stored {
		due.unclaimed.add(r.tenant, r.id, true) // the lane waits for it to be taken, so that a backlog stays in the stream
	}
	m.decided(err == nil && !stored)
	if err != nil {
		w.notAdmitted(ctx, m, r, err)
		return
	}
	w.step(payments.StepAfterAdmit, r.id)
	w.message(r.lane, string(a.Verdict))
	switch what, reason := afterAdmission(a.Verdict); what {
	case deliverAck:
		w.ack(m, r.id)
		if w.isDue(a.FollowUp.Payment) {
			w.due(a.FollowUp.Lane).wakeUp()
		}
	case deliverBury:
		r.why = whyRefused(a)
		w.bury(ctx, m, r, explain(reason, a.Differs, r))
	}
}

// trusted refuses what a database that was restored says of a payment's past. The message comes back when it has been rewound.
func (w *Worker) trusted() error {
	if w.held() {
		return payments.Errorf(payments.CodeUnavailable, "nothing is accepted while this process is held: %s", w.Held())
	}
	return nil
}

func (w *Worker) storeFollowUp(ctx context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error) {
	if w.Processor.FollowUps == nil {
		return payments.FollowUpAdmission{}, errNoFollowUps
	}
	return w.Processor.FollowUps.AdmitFollowUp(ctx, r)
}

// goOn looks for tickets at once when a follow-up has ended: the next of its payment is due then, on either lane. Otherwise each would wait for a
// PollInterval, and a hundred refunds of one payment for a hundred of them.
func (w *Worker) goOn(s payments.Settlement) {
	if p := s.Recorded.Payment; s.Err == nil && p.Kind.FollowUp() && !p.Status.HasTicket() {
		for _, d := range w.dues {
			d.wakeUp()
		}
	}
}

// whyRefused names the member that a follow-up was not accepted for, and says why.
func whyRefused(a payments.FollowUpAdmission) string {
	if a.Verdict == payments.VerdictAmountExceeds || a.Verdict == payments.VerdictAmountInvalid {
		return "amount: " + a.Why
	}
	return "payment_id: " + a.Why
}
