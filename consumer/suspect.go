package consumer

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

// suspect deals with a message that has been delivered often. If its row is there, somebody else has the payment and nothing is suspect. If
// not, every earlier start may have killed its worker: the raw bytes are committed first, one message at a time, and at the third unfinished
// start the message is dead. A count is a commit, so time without PostgreSQL never counts, and a bystander clears itself by being admitted.
// It returns the function that lets the next suspect start, or false when the message has been dealt with.
func (w *Worker) suspect(ctx context.Context, m held, r reading, request *payments.AdmitRequest) (release func(), ok bool) {
	_, err := w.Store.Find(ctx, r.tenant, r.intent.ID())
	if err == nil {
		return func() {}, true
	}
	w.noteStore(err)
	if payments.ErrorCode(err) != payments.CodeNotFound {
		w.message(r.lane, "unavailable")
		return nil, false
	}
	w.starting.Lock()
	why := refusal{reason: payments.ReasonWorkerKilled, message: "the worker ended each time it began with this message"}
	starts, err := w.Store.Suspect(ctx, letterOf(m, r, why, payments.DeadLetterSuspect))
	w.noteStore(err)
	if err != nil {
		w.starting.Unlock()
		w.message(r.lane, "unavailable")
		return nil, false
	}
	if starts > payments.SuspectStartsMax {
		w.starting.Unlock()
		w.bury(ctx, m, r, why)
		return nil, false
	}
	origin := m.origin
	request.Suspect = &origin
	return w.starting.Unlock, true
}
