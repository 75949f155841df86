package payments

// A cancel charges nobody and is executed once, so that it is repeated under its key until the PaymentIntent shows what became of it.

// decideCancel: what Stripe answered to a cancel.
func decideCancel(p Payment, s FollowUpState, o Observation, policy Policy) Transition {
	switch {
	case o.Kind == ObservedInvalid:
		// Often because it has ended: it is read.
		return stillToCancel(p, o, policy)
	case o.Kind != ObservedObject:
		return unknown(p, ReasonConfirming, nextLook(p, o))
	case o.Object == nil:
		return review(ReasonMissingAtStripe, nil)
	}
	if t, ok := cancelEnded(p, s, o); ok {
		return t
	}
	return stillToCancel(p, o, policy)
}

// stillToCancel: Stripe has not executed the cancel. Should that be so for ever, a person must hear of it.
func stillToCancel(p Payment, o Observation, policy Policy) Transition {
	if p.Tries+1 >= policy.TriesMax {
		t := review(ReasonCancelRefused, nil)
		t.Failure, t.CountTry = o.Failure, true
		return t
	}
	t := unknown(p, ReasonConfirming, nextLook(p, o))
	t.Failure, t.CountTry = o.Failure, true
	return t
}

// decideCancelSeen: the PaymentIntent of a cancel as it stands.
func decideCancelSeen(p Payment, s FollowUpState, o Observation) Transition {
	if o.Object == nil {
		return review(ReasonMissingAtStripe, nil)
	}
	t, ok := cancelEnded(p, s, o)
	switch {
	case ok:
		return t
	case s.Ahead:
		return p.waits(ReasonBehind)
	}
	return Transition{ThenSend: true}
}

// cancelEnded: what the PaymentIntent says when nothing is left to cancel.
func cancelEnded(p Payment, s FollowUpState, o Observation) (t Transition, ended bool) {
	pi := *o.Object
	if field := notItself(p, s, o); field != "" {
		return disagrees(field), true
	}
	switch pi.Status {
	case StripeCanceled:
		t = settled(StatusSucceeded, "", nil)
		t.Target = asShown(pi, ReasonCanceledOnRequest)
		return t, true
	case StripeSucceeded:
		t = settled(StatusFailed, ReasonPaid, nil)
		t.Target = asShown(pi, "")
		return t, true
	case StripeProcessing: // its charge waits for Stripe from now on, and this for its charge
		t = p.waits(ReasonPaymentOpen)
		t.Target = asShown(pi, "")
		return t, true
	case StripeRequiresCapture, StripeRequiresAction, StripeRequiresPaymentMethod, StripeRequiresConfirmation:
		return t, false
	}
	return review(ReasonUnknownStatus, nil), true
}
