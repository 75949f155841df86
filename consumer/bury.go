package consumer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// commitTimeout bounds a commit that is made outside the payment's own way.
const commitTimeout = 10 * time.Second

// bury commits a dead letter and acks. If the row cannot be written, or may not be since the database is not to be trusted, nothing is said and the message
// comes back.
func (w *Worker) bury(ctx context.Context, m held, r reading, why refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if !w.sameStream(m, r) {
		return
	}
	if w.held() && !why.erase { // a database that was restored says of much that it is not there
		w.message(r.lane, fateUnavailable)
		return
	}
	err := w.Store.BuryMessage(ctx, letterOf(m, r, why, payments.DeadLetterOpen))
	w.noteStore(err)
	if err != nil {
		w.message(r.lane, fateUnavailable)
		w.Log.Warn("a dead letter could not be stored; its message comes back", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
		return
	}
	if why.erase {
		if err := erase(ctx, m); err != nil {
			w.Log.Error("a message with a card number could not be erased; it comes back", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
			return
		}
	}
	w.message(r.lane, string(why.reason))
	if w.Observer.Buried != nil {
		w.Observer.Buried(why.reason)
	}
	w.ack(m, r.id)
}

// sameStream reports whether the message's origin is still what it was taken for; if not, the message comes back under its true one.
func (w *Worker) sameStream(m held, r reading) bool {
	err := m.from.confirm()
	if err != nil {
		w.message(r.lane, fateUnavailable)
		w.Log.Warn("the origin of a message could not be confirmed; it comes back", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
	}
	return err == nil
}

// erase overwrites the message in its stream. One that is gone already is erased.
func erase(ctx context.Context, m held) error {
	err := m.from.stream.SecureDeleteMsg(ctx, m.origin.Sequence)
	if err == nil {
		return nil
	}
	if _, missing := m.from.stream.GetMsg(ctx, m.origin.Sequence); errors.Is(missing, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// buryPayment dead-letters a payment that is ours.
func (w *Worker) buryPayment(ctx context.Context, c payments.Claim, reason payments.Reason, text string) delivery {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	now := w.Clock.Now()
	id := c.Payment.ID
	err := w.Store.BuryPayment(ctx, c, payments.DeadLetter{
		TenantID: c.Payment.TenantID, IdempotencyKey: c.Payment.IdempotencyKey, PaymentID: &id, Reason: reason, Message: text,
		Tries: c.Payment.Tries, State: payments.DeadLetterOpen, FirstSeen: now, LastSeen: now,
	}, w.Processor.Backoff.After(payments.Delay{Long: true}, w.Processor.Random))
	w.noteStore(err)
	if err != nil && !payments.TicketLost(err) {
		w.Log.Warn("a dead letter could not be stored; the ticket brings the payment back", "payment", id.String(), "tenant", c.Payment.TenantID, "error", err)
		return deliverLeave
	}
	if err == nil && w.Observer.Buried != nil {
		w.Observer.Buried(reason)
	}
	return deliverAck
}

// letterOf files a message. Of one with a card number only length and hash are kept, and nothing that might repeat it.
func letterOf(m held, r reading, why refusal, state payments.DeadLetterState) payments.DeadLetter {
	data := m.Data()
	now := m.published
	letter := payments.DeadLetter{
		TenantID: r.tenant, IdempotencyKey: r.key, Reason: why.reason, Message: why.message, Origin: m.origin,
		PayloadLength: len(data), PayloadSHA256: sha256.Sum256(data), Tries: m.deliveries, State: state, FirstSeen: now, LastSeen: now,
	}
	if why.erase {
		letter.IdempotencyKey = ""
		letter.Origin.Subject = ""
		return letter
	}
	letter.Headers, letter.Payload = wireHeaders(m.Headers()), data
	return letter
}

func (w *Worker) panicked(v any) {
	w.Log.Error("a handler panicked", "panic", panicText(v), "stack", string(debug.Stack()))
	if w.Observer.Panicked != nil {
		w.Observer.Panicked()
	}
}

// panicText keeps only the type of a value that is no error of the runtime or a plain constant: a payload must not reach a log.
func panicText(v any) string {
	if err, ok := v.(interface{ RuntimeError() }); ok {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%T", v)
}

// survive ends a panic that would end the process.
func (w *Worker) survive() {
	if v := recover(); v != nil {
		w.panicked(v)
	}
}

// explain words the dead letter of a message that met a row, or none.
func explain(reason payments.Reason, differs []string, r reading) refusal {
	switch reason {
	case payments.ReasonKeyReused:
		what := "payment"
		if kind := r.kind(); kind != payments.KindCharge {
			what = string(kind)
		}
		text := "idempotency_key: already names another request; differs: " + strings.Join(differs, ", ") + ". Publish a new " + what + " under a new key"
		return refusal{reason: reason, message: text}
	case payments.ReasonTenantUnknown:
		return refusal{reason: reason, message: "tenant: does not exist; `oncepay tenants create " + r.tenant + "`, then `oncepay dlq replay`"}
	case payments.ReasonKeyInvalid:
		return refusal{reason: reason, message: "idempotency_key: :: is reserved for the children of a batch, and no batch has this child"}
	}
	if r.refused == nil { // it is valid, and its payment does not allow it
		return refusal{reason: reason, message: r.why + ". Nothing of it is stored; `oncepay dlq replay` asks again, under its own key"}
	}
	return refusal{reason: r.refused.Reason, message: r.refused.Error()}
}
