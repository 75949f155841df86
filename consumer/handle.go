package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// handle takes one message from its bytes to its ack.
func (w *Worker) handle(ctx context.Context, from *origin, msg jetstream.Msg) {
	var once sync.Once
	decided := func(room bool) { once.Do(func() { from.pull.decided(room) }) }
	defer decided(true)
	if !w.gate.enter(ctx, 1) {
		return
	}
	defer w.gate.leave(1)
	if w.held() {
		return // it comes back
	}
	meta, err := msg.Metadata()
	if err != nil {
		w.Log.Error("a message without JetStream metadata was left alone", "stream", from.name)
		return
	}
	from.pull.rest.note(meta.Sequence.Consumer, meta.NumPending)
	m := held{Msg: msg, from: from, origin: payments.MessageOrigin{
		Stream: from.name, StreamCreated: from.created, Sequence: meta.Sequence.Stream, Subject: msg.Subject(),
	}, deliveries: int(meta.NumDelivered), published: meta.Timestamp, decided: decided}
	var r reading
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v)
			defer w.survive() // it comes back, and at last as a suspect
			why := refusal{reason: payments.ReasonHandlerPanic, message: "the worker panicked while it read this message"}
			if r.lane == 0 { // it was not read to its end
				if where := cardIn(m.wire()); where != "" {
					why = refusal{reason: payments.ReasonCardNumber, message: where + " " + cardRemedy, erase: true}
				}
			}
			w.bury(ctx, m, r, why)
		}
	}()
	r = read(w.Subjects, m.wire())
	if r.refusal != nil {
		w.bury(ctx, m, r, *r.refusal)
		return
	}
	w.tally.note(r.lane, r.tenant)
	defer w.tally.begin(r.lane, r.tenant)()
	if r.batch != nil {
		w.admitBatch(ctx, m, r)
		return
	}
	if r.followUp() {
		w.admitFollowUp(ctx, m, r)
		return
	}
	w.admit(ctx, m, r)
}

// held is a message in hand.
type held struct {
	jetstream.Msg
	from       *origin
	origin     payments.MessageOrigin
	deliveries int
	published  time.Time
	decided    func(room bool) // to be told once its fate is known, and whether there was room for it
}

func (m held) wire() message {
	return message{subject: m.Subject(), headers: m.Headers(), data: m.Data()}
}

// admit stores the payment, settles it if the ticket is ours, and acks once PostgreSQL has what must not be lost.
func (w *Worker) admit(ctx context.Context, m held, r reading) {
	// Without its account the payment is stored all the same; its ticket waits for somebody who knows it.
	account, unknown := w.account(ctx, r.tenant)
	held := false
	if unknown == nil {
		pass, ok := w.breakers.enter(account)
		defer pass.end()
		pass.with(r.id)
		held = !ok
	}
	request := payments.AdmitRequest{
		Intent: r.intent, Lane: r.lane, Claim: unknown == nil && !held && !w.stopping.Load(), Token: w.NewToken(), Lease: w.Lease,
		Account: account, Refused: r.refused, ExistingOnly: r.existingOnly,
	}
	id := r.id
	a, err := start(ctx, w, m, r, func(suspect *payments.MessageOrigin) (payments.Admission, error) {
		request.Suspect = suspect
		return w.Store.Admit(ctx, request)
	})
	waits := a.Wait > 0 || held && a.Verdict == payments.VerdictStored
	if err == nil && waits {
		// The lane waits for such tickets of its own to be taken.
		w.due(r.lane).unclaimed.add(r.tenant, a.Payment.ID, true)
	}
	m.decided(err == nil && !waits)
	if err != nil {
		w.notAdmitted(ctx, m, r, err)
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
	switch what, reason := afterAdmission(a.Verdict); what {
	case deliverAck:
		w.ack(m, id)
		if w.isDue(a.Payment) {
			w.due(a.Payment.Lane).wakeUp()
		}
	case deliverBury:
		w.bury(ctx, m, r, explain(reason, a.Differs, r))
	}
}

// notAdmitted ends a message whose admission has failed.
func (w *Worker) notAdmitted(ctx context.Context, m held, r reading, err error) {
	switch {
	case errors.Is(err, errDealtWith):
	case unfit(err):
		w.bury(ctx, m, r, refusal{reason: payments.ReasonInvalid, message: err.Error()})
	default:
		w.message(r.lane, fateUnavailable)
		w.Log.Warn("a message could not be stored; it comes back", "id", r.id.Format(r.kind()), "tenant", r.tenant, "error", err)
	}
}

// account is where the tenant's payments go to. One that is not known is told of once in a while: every message of the tenant meets it.
func (w *Worker) account(ctx context.Context, tenant string) (payments.Account, error) {
	account, err := w.Processor.Gateway.Account(ctx, tenant)
	if err != nil && ctx.Err() == nil && w.seldom.now("account "+tenant, w.Clock.Now()) {
		w.Log.Warn("the tenant's Stripe account is not known, so nothing is sent for the tenant from here; the error says why", "tenant", tenant, "error", err)
	}
	return account, err
}

// start stores what the message asks for, by admit. A message that has been delivered often goes through suspect first, which may have dealt
// with it: errDealtWith.
func start[A any](ctx context.Context, w *Worker, m held, r reading, admit func(suspect *payments.MessageOrigin) (A, error)) (none A, err error) {
	var suspect *payments.MessageOrigin
	if m.deliveries >= payments.SuspectFrom {
		var release func()
		release, suspect, err = w.suspect(ctx, m, r)
		defer release() // the next suspect starts when this one is admitted
		if err != nil {
			return none, err
		}
	}
	w.step(payments.StepBeforeAdmit, r.id)
	for {
		a, err := admit(suspect)
		w.noteAdmit(err)
		// The start of a suspect has been counted. It did not end the worker, so it is seen through: time without PostgreSQL must not count.
		if suspect == nil || !payments.Retryable(err) || w.stopping.Load() || !wait(ctx, storePause) {
			return a, err
		}
	}
}

// isDue reports whether somebody could take the payment now, give or take the difference between two clocks.
func (w *Worker) isDue(p payments.Payment) bool {
	return p.Status.HasTicket() && !p.Owned && !p.NextAttemptAt.IsZero() && !p.NextAttemptAt.After(w.Clock.Now().Add(w.PollInterval))
}

// unfit reports whether the store can never keep the request, and says why in words fit for a dead letter.
func unfit(err error) bool {
	var e *payments.Error
	return errors.As(err, &e) && e.Code == payments.CodeInvalid && e.Field != "" && e.Err == nil
}

// settle runs the processor on a claim; a panic in it becomes a dead letter, and never ends the process.
func (w *Worker) settle(ctx context.Context, c payments.Claim, published time.Time) (what delivery) {
	return w.settleWith(ctx, w.Processor, c, published)
}

func (w *Worker) settleWith(ctx context.Context, p *payments.Processor, c payments.Claim, published time.Time) (what delivery) {
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v)
			what = w.buryPayment(ctx, c, payments.ReasonHandlerPanic, "the worker panicked while it worked on this payment")
		}
	}()
	// What Stripe has answered is recorded even when the calls are told to end, and however long PostgreSQL is away: nobody else can know it
	// without asking Stripe again.
	s := p.Settle(ctx, w.records, c)
	w.complete.settled(s)
	w.goOn(s)
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

// fateUnavailable is the fate of a message of which nothing could be committed.
const fateUnavailable = "unavailable"

func (w *Worker) message(l payments.Lane, fate string) {
	if w.Observer.Message != nil {
		w.Observer.Message(l, fate)
	}
}
