package consumer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// commitTimeout bounds a commit that is made outside the payment's own way.
const commitTimeout = 10 * time.Second

// handle takes one message from its bytes to its ack.
func (w *Worker) handle(ctx context.Context, from origin, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		w.Log.Error("a message without JetStream metadata was left alone", "subject", msg.Subject(), "error", err)
		return
	}
	m := held{Msg: msg, stream: from.stream, origin: payments.MessageOrigin{
		Stream: from.name, StreamCreated: from.created, Sequence: meta.Sequence.Stream, Subject: msg.Subject(),
	}, deliveries: int(meta.NumDelivered), published: meta.Timestamp}
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v)
			w.bury(ctx, m, m.filed, refusal{reason: payments.ReasonHandlerPanic, message: "the worker panicked while it read this message"})
		}
	}()
	r := read(w.Subjects, message{subject: msg.Subject(), headers: msg.Headers(), data: msg.Data()})
	m.filed = r
	if r.refusal != nil {
		w.bury(ctx, m, r, *r.refusal)
		return
	}
	w.admit(ctx, m, r)
}

// held is a message in hand.
type held struct {
	jetstream.Msg
	stream     jetstream.Stream
	origin     payments.MessageOrigin
	deliveries int
	published  time.Time
	filed      reading
}

// admit stores the payment, settles it if the ticket is ours, and acks once PostgreSQL has what must not be lost.
func (w *Worker) admit(ctx context.Context, m held, r reading) {
	request := payments.AdmitRequest{
		Intent: r.intent, Lane: r.lane, Claim: !w.stopping.Load(), Token: w.NewToken(), Lease: w.Lease,
		Account: w.Processor.Gateway.Account(r.tenant), Refused: r.refused, ExistingOnly: r.existingOnly,
	}
	id := r.intent.ID()
	admitted := func() {} // lets the next suspect message start
	if m.deliveries >= payments.SuspectFrom {
		release, ok := w.suspect(ctx, m, r, &request)
		if !ok {
			return
		}
		admitted = sync.OnceFunc(release)
		defer admitted()
	}
	w.step(payments.StepBeforeAdmit, id)
	a, err := w.Store.Admit(ctx, request)
	admitted()
	w.noteStore(err)
	if err != nil {
		w.message(r.lane, "unavailable")
		w.Log.Warn("a payment could not be stored; its message comes back", "payment", id.String(), "tenant", r.tenant, "error", err)
		return
	}
	w.step(payments.StepAfterAdmit, id)
	w.message(r.lane, string(a.Verdict))
	if a.Verdict == payments.VerdictClaimed {
		if w.settle(ctx, a.Claim, m.published) == deliverAck {
			w.ack(m, id)
		}
		return
	}
	switch what, reason := afterAdmission(a); what {
	case deliverAck:
		w.ack(m, id)
		if !a.Payment.Owned {
			w.WakeDue()
		}
	case deliverBury:
		w.bury(ctx, m, r, explain(reason, a, r))
	}
}

// explain words the dead letter of a message that met a row, or none.
func explain(reason payments.Reason, a payments.Admission, r reading) refusal {
	switch reason {
	case payments.ReasonKeyReused:
		return refusal{reason: reason, message: "idempotency_key: already names another request; differs: " + strings.Join(a.Differs, ", ") + ". Publish a new payment under a new key"}
	case payments.ReasonTenantUnknown:
		return refusal{reason: reason, message: "tenant: does not exist; create it with `oncepay tenants create`, then replay"}
	case payments.ReasonKeyInvalid:
		return refusal{reason: reason, message: "idempotency_key: :: is reserved for the children of a batch, and no batch has this child"}
	default:
		return refusal{reason: r.refused.Reason, message: r.refused.Error()}
	}
}

// settle runs the processor on a claim; a panic in it becomes a dead letter, and never ends the process.
func (w *Worker) settle(ctx context.Context, c payments.Claim, published time.Time) (what delivery) {
	if c.Abandoned >= payments.AbandonedAlone {
		w.alone.Lock()
		defer w.alone.Unlock()
		var err error
		if c, err = w.Store.Extend(ctx, c, w.Lease, false); err != nil {
			return deliverAck // somebody else has it, or the ticket brings it back
		}
	} else {
		w.alone.RLock()
		defer w.alone.RUnlock()
	}
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v)
			what = w.buryPayment(ctx, c, payments.ReasonHandlerPanic, "the worker panicked while it worked on this payment")
		}
	}()
	// What Stripe has answered is recorded even when the calls are told to end; after the lease somebody else would.
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	s := w.Processor.Settle(ctx, record, c)
	if s.Err != nil && !s.Lost {
		w.noteStore(s.Err)
		w.Log.Warn("an outcome could not be recorded; the ticket brings the payment back", "payment", c.Payment.ID.String(), "tenant", c.Payment.TenantID, "error", s.Err)
	}
	if w.Observer.Settled != nil {
		var waited time.Duration
		if !published.IsZero() {
			waited = w.Clock.Now().Sub(published)
		}
		w.Observer.Settled(c.Lane, s, waited)
	}
	return afterSettlement(s)
}

// ack says the one word. It is not waited for: a lost ack only brings a message back to a row that is there.
func (w *Worker) ack(m held, id payments.ID) {
	w.step(payments.StepBeforeAck, id)
	if err := m.Ack(); err != nil {
		w.Log.Warn("an ack was not sent; the message comes back and finds its row", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
		return
	}
	w.step(payments.StepAfterAck, id)
}

// bury commits a dead letter and acks. If the row cannot be written, nothing is said and the message comes back.
func (w *Worker) bury(ctx context.Context, m held, r reading, why refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err := w.Store.BuryMessage(ctx, letterOf(m, r, why, payments.DeadLetterOpen))
	w.noteStore(err)
	if err != nil {
		w.message(r.lane, "unavailable")
		w.Log.Warn("a dead letter could not be stored; its message comes back", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
		return
	}
	if why.erase {
		if err := m.stream.SecureDeleteMsg(ctx, m.origin.Sequence); err != nil {
			w.Log.Error("a message with a card number could not be erased; it comes back", "stream", m.origin.Stream, "sequence", m.origin.Sequence, "error", err)
			return
		}
	}
	w.message(r.lane, string(why.reason))
	if w.Observer.Buried != nil {
		w.Observer.Buried(why.reason)
	}
	w.ack(m, r.intent.ID())
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

func (w *Worker) message(l payments.Lane, fate string) {
	if w.Observer.Message != nil {
		w.Observer.Message(l, fate)
	}
}
