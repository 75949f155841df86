package payments

import "context"

// settleFollowUp is Settle for a capture, a cancel or a refund.
func (p *Processor) settleFollowUp(ctx, recordCtx context.Context, c Claim) Settlement {
	if p.FollowUps == nil || p.FollowUpGateway == nil {
		return Settlement{Err: Errorf(CodeInternal, "this processor does no captures, cancels and refunds")}
	}
	s, err := p.followUpState(ctx, c)
	if err != nil {
		return Settlement{Err: err}
	}
	c.Payment = s.bind(c.Payment)
	run := followUpRun{p: p, c: c, s: s}
	act, t := NextFollowUp(c.Payment, s)
	switch act {
	case ActionSettle:
		if t.Target != nil && p.held() {
			t = c.Payment.waits(ReasonHeldBack) // a database that was restored may have forgotten that the charge was sent
		}
	case ActionCapture, ActionCancel, ActionRefund:
		t, err = run.post(ctx)
	case ActionRetrieve, ActionLookRefunds, ActionRetrieveRefund:
		t, err = run.read(ctx, act)
	default:
		err = Errorf(CodeInternal, "a ticket stands for %s in status %s", c.Payment.ID.Format(c.Payment.Kind), c.Payment.Status)
	}
	if err == nil && !t.Status.Stored() {
		err = Errorf(CodeInternal, "%s has no status to record", c.Payment.ID.Format(c.Payment.Kind))
	}
	if err != nil {
		return Settlement{Lost: TicketLost(err), Err: err}
	}
	return run.record(recordCtx, t)
}

// followUpState reads what must be known beside the claim, for as long as the lease allows: a token that is left behind counts as that of an owner who died.
func (p *Processor) followUpState(ctx context.Context, c Claim) (FollowUpState, error) {
	for attempt := 1; ; attempt++ {
		s, err := p.FollowUps.FollowUpState(ctx, c.Payment)
		if !Retryable(err) || !p.outlastsCall(c, p.Clock.Now().Round(0)) || !sleep(ctx, p.Backoff.After(Delay{Step: attempt, Soon: true}, p.Random)) {
			return s, err
		}
	}
}

// followUpRun is the work on one claim of a follow-up.
type followUpRun struct {
	p    *Processor
	c    Claim
	s    FollowUpState
	sent bool // something may have left for it
}

// post sends the capture, the cancel or the refund once and decides.
func (r *followUpRun) post(ctx context.Context) (Transition, error) {
	p, pay := r.p, r.c.Payment
	s := Submission{
		Payment:   pay,
		StripeKey: StripeKey(p.Namespace, pay.Kind, pay.TenantID, pay.IdempotencyKey),
		MayLeave:  func() error { return p.mayCancel(r.c) },
	}
	r.sent = true
	var o Observation
	var did Action
	switch pay.Kind {
	case KindCapture:
		did = ActionCapture
		p.step(StepBeforeSubmit, pay.ID)
		o = p.FollowUpGateway.Capture(ctx, s)
		p.step(StepAfterSubmit, pay.ID)
	case KindCancel:
		did = ActionCancel
		p.step(StepBeforeCancel, pay.ID)
		o = p.Gateway.Cancel(ctx, s)
		p.step(StepAfterCancel, pay.ID)
	default:
		did = ActionRefund
		s.MayLeave = func() error { return p.mayLeave(r.c) } // a refund alone could be made twice
		p.step(StepBeforeSubmit, pay.ID)
		o = p.FollowUpGateway.Refund(ctx, s)
		p.step(StepAfterSubmit, pay.ID)
	}
	return r.decide(ctx, did, o)
}

// read reads what Stripe has, and sends, under the same key, when that shows that it may be done.
func (r *followUpRun) read(ctx context.Context, act Action) (Transition, error) {
	p := r.p
	var o Observation
	switch act {
	case ActionRetrieve:
		o = p.Gateway.Retrieve(ctx, r.c.Payment)
	case ActionRetrieveRefund:
		o = p.FollowUpGateway.RetrieveRefund(ctx, r.c.Payment, r.s.StripeRefund)
	default:
		var lost error
		o = p.FollowUpGateway.LookRefunds(ctx, r.c.Payment, p.keepLease(ctx, &r.c, &lost))
		if lost != nil {
			return Transition{}, lost
		}
	}
	t, err := r.decide(ctx, act, o)
	if err != nil || !t.ThenSend {
		return t, err
	}
	// The time of this send must be committed before it leaves: absence is proven only from the last one on.
	if r.c, err = p.Store.Extend(ctx, r.c, p.Lease, true); err != nil {
		return Transition{}, err
	}
	return r.post(ctx)
}

func (r *followUpRun) decide(ctx context.Context, did Action, o Observation) (Transition, error) {
	policy := r.p.observed(ctx, r.c, o)
	return DecideFollowUp(r.c.Payment, r.s, did, o, r.p.Clock.Now(), policy)
}

// record commits the transition with what it does to the charge. A charge that does not allow that, as it stands by now, is looked at again soon.
func (r *followUpRun) record(ctx context.Context, t Transition) Settlement {
	done := r.p.write(ctx, r.c, t, r.p.FollowUps.RecordFollowUp)
	if ErrorCode(done.Err) != CodeTargetMoved {
		return done
	}
	return r.p.write(ctx, r.c, TargetMoved(r.c.Payment, t, r.sent), r.p.FollowUps.RecordFollowUp)
}
