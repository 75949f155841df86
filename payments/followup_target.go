package payments

// bind is the follow-up's row with the PaymentIntent and the account that its charge has: one that was accepted before its charge was sent has none of
// its own.
func (s FollowUpState) bind(p Payment) Payment {
	if s.Target.StripePaymentIntent != "" {
		p.StripePaymentIntent = s.Target.StripePaymentIntent
	}
	if s.Target.StripeAccount != "" {
		p.StripeAccount, p.Livemode = s.Target.StripeAccount, s.Target.Livemode
	}
	return p
}

// cancelUnsent cancels a charge of which nothing is at Stripe, if that is still so.
func cancelUnsent(charge Payment) (Transition, error) {
	switch {
	case charge.Status == StatusCanceled:
		return charge.stays(), nil
	case !charge.unsent():
		return Transition{}, targetMoved(charge)
	}
	return CanceledUnsent(), nil
}

// CanceledUnsent ends a charge of which nothing is at Stripe, since a cancel of it was accepted.
func CanceledUnsent() Transition {
	return Transition{Status: StatusCanceled, Reason: ReasonCanceledOnRequest, ClearSubmit: true}
}

// asShown gives a charge the state of its PaymentIntent as Stripe showed it to a follow-up. reason is why one is canceled.
func asShown(pi PaymentIntent, reason string) TargetChange {
	return func(charge Payment) (Transition, error) {
		if charge.unsettled() || charge.StripePaymentIntent != pi.ID {
			return Transition{}, targetMoved(charge)
		}
		t := charge.stays()
		switch pi.Status {
		case StripeSucceeded:
			t = settled(StatusSucceeded, "", &pi)
		case StripeCanceled:
			t = settled(StatusCanceled, reason, &pi)
		case StripeProcessing:
			t = Transition{Status: StatusPending, Reason: ReasonProcessing, Object: &pi, Rounds: 1, Delay: Delay{Step: 1}}
		}
		corrects := charge.Status.Final() && t.Status == StatusSucceeded
		if t.Status == charge.Status || !charge.Status.CanMove(t.Status) && !corrects {
			return charge.stays(), nil
		}
		return t, nil
	}
}

// givenBack adds to what was refunded.
func givenBack(amount int64) TargetChange {
	return func(charge Payment) (Transition, error) {
		t := charge.stays()
		t.Refunded = amount
		return t, nil
	}
}

// stays is the transition that changes nothing.
func (p Payment) stays() Transition {
	return Transition{Status: p.Status, Reason: p.Reason, Failure: p.Failure, InDoubt: p.InDoubt, AbsentAt: p.AbsentAt, Rounds: p.Rounds}
}

func targetMoved(charge Payment) error {
	return Errorf(CodeTargetMoved, "the payment %s is %s by now", charge.ID, charge.ShownStatus())
}

// TargetMoved is what is recorded of a follow-up in place of t, whose Target was refused with CodeTargetMoved: it looks at its charge again soon. What may
// have been sent for it stays in doubt.
func TargetMoved(p Payment, t Transition, sent bool) Transition {
	p.InDoubt = p.InDoubt || p.Status == StatusUnknown || sent
	moved := p.waits(ReasonPaymentOpen)
	moved.Refund = t.Refund
	return moved
}
