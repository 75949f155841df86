package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const (
	// storePause is how long a message that has begun waits before PostgreSQL is asked again.
	storePause = 250 * time.Millisecond
	// stopGrace is how long a message that has begun may take to its end when the process is asked to stop.
	stopGrace = 3 * time.Second
)

// replay takes one message up again. Its beginning is committed first: of a message that ended the process that read it, the next one to come sees
// that, and does not begin it again.
func (r *Runner) replay(ctx context.Context, w payments.ReplayWork) error {
	starts, err := r.Replays.StartReplayed(ctx, w)
	if err != nil || starts == 0 {
		return err
	}
	r.step(StepStarted, w)
	ctx, cancel := lasting(ctx, stopGrace)
	defer cancel()
	var o payments.ReplayOutcome
	if err := r.seeThrough(ctx, func() error { o, err = r.outcome(ctx, w, starts); return err }); err != nil {
		return err
	}
	if err := r.seeThrough(ctx, func() error { return r.Replays.FinishReplayed(ctx, w, o) }); err != nil {
		return err
	}
	r.step(StepFinished, w)
	return nil
}

// lasting is a context that ends so long after ctx: a message that was begun and not ended is held to have ended its process, and a process that is
// asked to stop must not leave one.
func lasting(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}

// seeThrough repeats what PostgreSQL could not do: the message has begun, and time without PostgreSQL must not count against it.
func (r *Runner) seeThrough(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !payments.Retryable(err) || !wait(ctx, storePause) {
			return err
		}
	}
}

// outcome says what a message comes to. A panic in it is an outcome, too.
func (r *Runner) outcome(ctx context.Context, w payments.ReplayWork, starts int) (o payments.ReplayOutcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.Error("a replayed message made the worker panic", "dead_letter", w.Letter.ID, "panic", fmt.Sprintf("%T", v))
			o, err = failed(payments.ReasonHandlerPanic, "the worker panicked when the message was replayed"), nil
		}
	}()
	if w.Letter.State != payments.DeadLetterOpen {
		return skipped("the dead letter is " + string(w.Letter.State) + " by now"), nil
	}
	if w.Letter.Reason == payments.ReasonCardNumber {
		return skipped("cannot be replayed: the message held a card number, and nothing of it is kept"), nil
	}
	if starts > 1 {
		lost, err := r.killed(ctx, w, starts)
		if err != nil || lost {
			return failed(payments.ReasonWorkerKilled, "the worker ended when it began with this message again"), err
		}
	}
	read := consumer.ReadAgain(r.Subjects, w.Letter)
	if len(w.Set) > 0 {
		if read, o, err = r.edited(ctx, w, read, starts); err != nil || o.Result != "" {
			return o, err
		}
	}
	r.step(StepRead, w)
	if read.Reason != "" {
		return failed(read.Reason, read.Message), nil
	}
	return r.admit(ctx, w, read)
}

// killed reports whether an earlier start has ended its process before it stored anything. One that has stored its payment goes on.
func (r *Runner) killed(ctx context.Context, w payments.ReplayWork, starts int) (bool, error) {
	_, err := r.Store.Find(ctx, w.Letter.TenantID, payments.NewID(w.Letter.TenantID, w.Letter.IdempotencyKey))
	switch payments.ErrorCode(err) {
	case "":
		return starts > payments.SuspectStartsMax, nil
	case payments.CodeNotFound:
		return true, nil
	}
	return false, err
}

// edited reads the message with its members changed. A message that has claimed a row is never changed: whoever sent it was told what it asks for.
func (r *Runner) edited(ctx context.Context, w payments.ReplayWork, read consumer.Reading, starts int) (consumer.Reading, payments.ReplayOutcome, error) {
	if kind, _, _ := r.Subjects.ParseSubject(w.Letter.Origin.Subject); kind == schema.SubjectBatch {
		return read, skipped("the message is a batch, whose payments cannot be changed here: publish it again under a new key"), nil
	}
	data, err := schema.EditIntent(w.Letter.Payload, w.Set)
	if err != nil {
		o := failed("", "")
		o.Detail = "the members could not be set: " + err.Error()
		return read, o, nil
	}
	changed := w.Letter
	changed.Payload = data
	read = consumer.ReadAgain(r.Subjects, changed)
	if read.Reason != "" || starts > 1 { // an earlier start may have stored it
		return read, payments.ReplayOutcome{}, nil
	}
	switch _, err := r.Store.Find(ctx, w.Letter.TenantID, read.ID); payments.ErrorCode(err) {
	case "":
		return read, skipped("a payment of its key is stored, and what a stored payment asks for is never changed: replay it as it is, without --set, or publish a new key"), nil
	case payments.CodeNotFound:
		return read, payments.ReplayOutcome{}, nil
	default:
		return read, payments.ReplayOutcome{}, err
	}
}

// admit stores what the message asks for, and claims nothing: whoever takes its ticket goes on.
func (r *Runner) admit(ctx context.Context, w payments.ReplayWork, read consumer.Reading) (payments.ReplayOutcome, error) {
	m, err := r.store(ctx, read)
	if unfit(err) {
		return failed(payments.ReasonInvalid, err.Error()), nil
	}
	if err != nil {
		return payments.ReplayOutcome{}, err
	}
	r.step(StepAdmitted, w)
	o := payments.ReplayOutcome{PaymentID: read.ID, Status: m.status}
	switch reason, text := m.reason, m.text; {
	case m.verdict == payments.VerdictConflict:
		o.Result, o.Reason, o.Message, o.Detail = payments.ReplayConflict, reason, text, text
	case reason != "":
		return failed(reason, text), nil
	case m.verdict == payments.VerdictExists && m.status.Settled():
		o.Result = payments.ReplayAlreadySettled
	case read.Batch != nil: // what it asks for, that its payments be accepted, is done
		o.Result, o.Detail = payments.ReplaySucceeded, "the batch is accepted, and its payments go on by themselves, with dead letters of their own: `oncepay batch show "+read.ID.Format(payments.KindBatch)+"` counts their outcomes"
	}
	return o, nil
}

// met is what storing a message's request met, and why it is still a dead letter; "": it is none any more.
type met struct {
	verdict payments.Verdict
	status  payments.Status
	reason  payments.Reason
	text    string
}

// store stores what the message asks for.
func (r *Runner) store(ctx context.Context, read consumer.Reading) (m met, err error) {
	switch {
	case read.Batch != nil:
		a, err := r.Batches.AdmitBatch(ctx, *read.Batch)
		m.verdict, m.status = a.Verdict, payments.StatusSucceeded
		m.reason, m.text = read.Explain(a.Verdict, a.Differs)
		return m, err
	case read.Intent.Kind.FollowUp():
		a, err := r.FollowUps.AdmitFollowUp(ctx, payments.FollowUpRequest{
			Intent: read.Intent, Lane: read.Lane, Refused: read.Refused, ExistingOnly: read.ExistingOnly,
		})
		m.verdict, m.status = a.Verdict, a.FollowUp.Status
		m.reason, m.text = read.ExplainFollowUp(a)
		return m, err
	}
	a, err := r.Store.Admit(ctx, payments.AdmitRequest{Intent: read.Intent, Lane: read.Lane, Refused: read.Refused, ExistingOnly: read.ExistingOnly})
	m.verdict, m.status = a.Verdict, a.Payment.Status
	m.reason, m.text = read.Explain(a.Verdict, a.Differs)
	return m, err
}

func failed(reason payments.Reason, text string) payments.ReplayOutcome {
	return payments.ReplayOutcome{Result: payments.ReplayFailedAgain, Reason: reason, Message: text, Detail: text}
}

func skipped(why string) payments.ReplayOutcome {
	return payments.ReplayOutcome{Result: payments.ReplaySkipped, Detail: why}
}

// unfit reports whether the store can never keep what the message asks for.
func unfit(err error) bool {
	var e *payments.Error
	return errors.As(err, &e) && e.Code == payments.CodeInvalid && e.Field != "" && e.Err == nil
}
