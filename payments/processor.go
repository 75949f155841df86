package payments

import (
	"context"
	"errors"
	"time"
)

// Step numbers the points at which a process may die; the crash matrix stops dead at each of them.
type Step string

// The steps of a payment's way, in order. Each stands for the moment before or after the named commit or call.
const (
	StepBeforeAdmit  Step = "before_admit"
	StepAfterAdmit   Step = "after_admit"
	StepBeforeTake   Step = "before_take"
	StepAfterTake    Step = "after_take"
	StepBeforeSubmit Step = "before_submit"
	StepAfterSubmit  Step = "after_submit"
	StepBeforeCancel Step = "before_cancel"
	StepAfterCancel  Step = "after_cancel"
	StepBeforeRecord Step = "before_record"
	StepAfterRecord  Step = "after_record"
	StepBeforeAck    Step = "before_ack"
	StepAfterAck     Step = "after_ack"
)

// Steps lists all steps in order.
func Steps() []Step {
	return []Step{
		StepBeforeAdmit, StepAfterAdmit, StepBeforeTake, StepAfterTake, StepBeforeSubmit, StepAfterSubmit,
		StepBeforeCancel, StepAfterCancel, StepBeforeRecord, StepAfterRecord, StepBeforeAck, StepAfterAck,
	}
}

// Processor takes one claimed payment to a recorded outcome: Next, the call, Decide, Record. It holds no business rule of its own.
type Processor struct {
	Store   Store
	Gateway Gateway
	// FollowUps and FollowUpGateway are for captures, cancels and refunds; nil: a claim of one is an error.
	FollowUps       FollowUps
	FollowUpGateway FollowUpGateway
	Clock           Clock
	Namespace       string
	Lease           time.Duration
	// CallTimeout is the Gateway's own limit for one call: a send that could outlive the lease does not leave.
	CallTimeout time.Duration
	TriesMax    int
	// ResubmitAfterAbsent is Policy's.
	ResubmitAfterAbsent bool
	Backoff             Backoff
	// Held, when set, says why nothing may be sent from this process at present, "" when it may. It is asked right before a write.
	Held func() (reason string)
	// Random returns a number in [0, n); nil: the runtime's.
	Random func(n int64) int64
	// OnStep, when set, is told of every step; tests stop the process in it.
	OnStep func(Step, ID)
	// NoTries, when set, reports that nothing but probes is sent to an account now: a probe that could not leave costs no try.
	NoTries func(Account) bool
	// Aside, when set, is where this claim's owner waits while Stripe's records are read.
	Aside Aside
	// OnObservation, when set, is told of every answer, for metrics and logs.
	OnObservation func(Payment, Observation)
}

// Settlement is what became of a claim.
type Settlement struct {
	Recorded Recorded
	// Lost: another owner has the payment by now; it records the outcome.
	Lost bool
	// Err: the outcome could not be recorded; the ticket and the same key bring it back.
	Err error
}

// errHeld, errLeaseOver and errWindowOver hold a request back.
var (
	errHeld       = errors.New("this process may send nothing at present")
	errLeaseOver  = errors.New("the lease would end before the call's time-out")
	errWindowOver = errors.New("the idempotency key may be forgotten by Stripe, or expires_at has passed")
)

// Settle works on a claimed payment until its outcome is recorded. ctx ends the calls to Stripe; recording goes on until recordCtx ends.
func (p *Processor) Settle(ctx, recordCtx context.Context, c Claim) Settlement {
	if c.Payment.Kind.FollowUp() {
		return p.settleFollowUp(ctx, recordCtx, c)
	}
	now := p.Clock.Now()
	var t Transition
	var err error
	switch Next(c.Payment, now) {
	case ActionSend:
		t, err = p.sendUncanceled(ctx, c)
	case ActionLook:
		t, c, err = p.look(ctx, c)
	case ActionRetrieve:
		o := p.Gateway.Retrieve(ctx, c.Payment)
		t, err = p.decide(ctx, c, o)
	case ActionCancel:
		t, err = p.cancel(ctx, c)
	case ActionExpire:
		t = Expire(c.Payment)
	default:
		err = Errorf(CodeInternal, "a ticket stands for the payment %s in status %s", c.Payment.ID, c.Payment.Status)
	}
	if err == nil && !t.Status.Stored() {
		// Only a gateway that answers a submit with a listing gets here; to record it would be to lose the payment.
		err = Errorf(CodeInternal, "the payment %s has no status to record", c.Payment.ID)
	}
	if err != nil {
		return Settlement{Lost: TicketLost(err), Err: err}
	}
	return p.record(recordCtx, c, t)
}

// sendUncanceled sends, unless a cancel was accepted while an earlier owner had the charge, whose send was not executed: that cancel could not keep the
// ticket back (HoldsBack). What was never sent has no earlier owner, and costs no question.
func (p *Processor) sendUncanceled(ctx context.Context, c Claim) (Transition, error) {
	if c.Payment.Status == StatusWaiting && p.FollowUps != nil {
		if p.held() { // asked first: what a database that was restored says of cancels neither sends nor ends anything
			return heldBack(c.Payment, p.Clock.Now())
		}
		cancel, err := p.FollowUps.CancelOpen(ctx, c.Payment)
		if err != nil {
			return Transition{}, err
		}
		if cancel.Open {
			return CanceledUnsent(), nil
		}
	}
	return p.send(ctx, c)
}

// send submits the request once and decides.
func (p *Processor) send(ctx context.Context, c Claim) (Transition, error) {
	pay := c.Payment
	p.step(StepBeforeSubmit, pay.ID)
	o := p.Gateway.Submit(ctx, Submission{
		Payment:   pay,
		StripeKey: StripeKey(p.Namespace, pay.Kind, pay.TenantID, pay.IdempotencyKey),
		MayLeave:  func() error { return p.mayLeave(c) },
	})
	p.step(StepAfterSubmit, pay.ID)
	return p.decide(ctx, c, o)
}

// cancel cancels the PaymentIntent of an on-session decline, under a key of its own.
func (p *Processor) cancel(ctx context.Context, c Claim) (Transition, error) {
	pay := c.Payment
	p.step(StepBeforeCancel, pay.ID)
	o := p.Gateway.Cancel(ctx, Submission{
		Payment:   pay,
		StripeKey: StripeKey(p.Namespace, KindCancel, pay.TenantID, pay.IdempotencyKey),
		MayLeave:  func() error { return p.mayCancel(c) },
	})
	p.step(StepAfterCancel, pay.ID)
	return p.decide(ctx, c, o)
}

// mayCancel is the last check before a cancel leaves. It charges nobody, so that neither expires_at nor the age of its key holds it back. But a
// database that was restored may have forgotten that the customer was faster, and a cancel would release the money that is held since.
func (p *Processor) mayCancel(c Claim) error {
	if p.held() {
		return errHeld
	}
	if !p.outlastsCall(c, p.Clock.Now().Round(0)) {
		return errLeaseOver
	}
	return nil
}

// mayLeave is the last check before the write. It looks at the wall clock, since a process can sleep between token and send.
func (p *Processor) mayLeave(c Claim) error {
	if p.held() {
		return errHeld
	}
	now := p.Clock.Now().Round(0)
	if !MaySend(c.Payment, c.WindowStart(), now) {
		return errWindowOver
	}
	if !p.outlastsCall(c, now) {
		return errLeaseOver
	}
	return nil
}

func (p *Processor) held() bool { return p.Held != nil && p.Held() != "" }

// heldBack is what becomes of a payment for which nothing was sent, since this process is held.
func heldBack(p Payment, now time.Time) (Transition, error) {
	return Decide(p, Observation{Kind: ObservedHeldBack}, now, Policy{})
}

// outlastsCall reports whether a call that begins now ends within the lease.
func (p *Processor) outlastsCall(c Claim, now time.Time) bool {
	return !now.Add(p.CallTimeout).After(c.LeaseUntil.Round(0))
}

// look asks Stripe's records, and sends again under the same key when they show that nothing is there yet.
func (p *Processor) look(ctx context.Context, c Claim) (Transition, Claim, error) {
	abandoned := c.Abandoned
	c, err := p.stepAside(ctx, c)
	if err != nil {
		return Transition{}, c, err
	}
	var lost error
	o := p.Gateway.Look(ctx, c.Payment, p.keepLease(ctx, &c, &lost))
	if lost != nil {
		return Transition{}, c, lost
	}
	if c, err = p.stepBack(ctx, c, abandoned); err != nil {
		return Transition{}, c, err
	}
	policy, held := p.observed(ctx, c, o), false
	if p.FollowUps != nil && o.Kind == ObservedRecords && len(o.Found) == 0 {
		// Asked before the cancels are: a rewind that ends between the two has brought one back that the database did not know yet.
		held = p.held()
		// Whoever was told that it is canceled must not be charged: a database that was restored may have forgotten that.
		if policy.Cancel, err = p.FollowUps.CancelOpen(ctx, c.Payment); err != nil {
			return Transition{}, c, err
		}
	}
	t, err := Decide(c.Payment, o, p.Clock.Now(), policy)
	if err != nil || !t.ThenSend {
		return t, c, err
	}
	if held {
		t, err = heldBack(c.Payment, p.Clock.Now())
		return t, c, err
	}
	// The time of this send must be committed before it leaves: absence is proven only from the last one on.
	next, err := p.Store.Extend(ctx, c, p.Lease, true)
	if err != nil {
		return Transition{}, c, err
	}
	t, err = p.send(ctx, next)
	return t, next, err
}

// keepLease is what a look-up asks before each page: it extends the lease, and ends the look-up when the ticket is lost.
func (p *Processor) keepLease(ctx context.Context, c *Claim, lost *error) func() error {
	return func() error {
		// A listing can have hundreds of pages, and hundreds of payments share it: a commit for each of them before each page is one too
		// many while the lease outlasts the page.
		if p.outlastsCall(*c, p.Clock.Now().Round(0)) {
			return nil
		}
		next, err := p.Store.Extend(ctx, *c, p.Lease, false)
		switch {
		case err == nil:
			*c = next
		case TicketLost(err):
			*lost = err
		}
		return err
	}
}

func (p *Processor) decide(ctx context.Context, c Claim, o Observation) (Transition, error) {
	policy := p.observed(ctx, c, o)
	return Decide(c.Payment, o, p.Clock.Now(), policy)
}

// observed tells of an observation, and returns the policy that holds for it.
func (p *Processor) observed(ctx context.Context, c Claim, o Observation) Policy {
	if p.OnObservation != nil {
		p.OnObservation(c.Payment, o)
	}
	if o.limited() {
		_ = p.Store.Throttle(ctx, o.Account) // should that fail, the next 429 says it again
	}
	return Policy{TriesMax: p.TriesMax, ResubmitAfterAbsent: p.ResubmitAfterAbsent, NoTries: p.NoTries != nil && p.NoTries(o.Account)}
}

// record commits the transition. While PostgreSQL is away it is tried again as long as recordCtx allows: what Stripe has answered should not
// have to be asked again.
func (p *Processor) record(ctx context.Context, c Claim, t Transition) Settlement {
	return p.write(ctx, c, t, p.Store.Record)
}

// write is record by the store's method for the kind.
func (p *Processor) write(ctx context.Context, c Claim, t Transition, record func(context.Context, Recording) (Recorded, error)) Settlement {
	r := Recording{Claim: c, Transition: t, Delay: p.Backoff.After(t.Delay, p.Random), At: p.Clock.Now()}
	p.step(StepBeforeRecord, c.Payment.ID)
	for attempt := 1; ; attempt++ {
		done, err := record(ctx, r)
		if err == nil {
			p.step(StepAfterRecord, c.Payment.ID)
			return Settlement{Recorded: done}
		}
		if !Retryable(err) || !sleep(ctx, p.Backoff.After(Delay{Step: attempt, Soon: true}, p.Random)) {
			return Settlement{Lost: TicketLost(err), Err: err}
		}
	}
}

func (p *Processor) step(s Step, id ID) {
	if p.OnStep != nil {
		p.OnStep(s, id)
	}
}

// sleep waits and reports whether ctx still stands.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
