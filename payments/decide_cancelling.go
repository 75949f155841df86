package payments

import "time"

// An on-session decline leaves a PaymentIntent behind that its customer could still confirm with another card, on a page that is still open.
// So it is no outcome until that PaymentIntent is canceled: the payment waits with ReasonCancelling, and the cancel is its next step. A cancel
// creates no charge, whatever becomes of its answer, so it is neither in doubt nor stopped by expires_at, and it is repeated under one key.

// Cancelling reports whether the payment was declined on session and its PaymentIntent is being canceled.
func (p Payment) Cancelling() bool {
	return p.Status == StatusWaiting && p.Reason == ReasonCancelling && p.StripePaymentIntent != ""
}

// confirmable reports whether the decline of p left a PaymentIntent that somebody in front of a page could still confirm.
func confirmable(p Payment, pi *PaymentIntent, f *Failure) bool {
	return !p.OffSession && pi != nil && pi.ID != "" && pi.Status != StripeCanceled && !authenticationRequired(f)
}

// decline is the decline f of p, which left pi behind if Stripe named it.
func decline(p Payment, pi *PaymentIntent, f *Failure) Transition {
	t := settled(StatusFailed, "", pi)
	if t.Failure = f; f != nil {
		t.Reason = f.Code
	}
	switch {
	case authenticationRequired(f):
		t.Status, t.Reason = StatusRequiresAction, "authentication_required"
	case confirmable(p, pi, f):
		// The tries of the charge end with its answer: the cancel has all of its own, or one that failed once would be left to a person.
		t.Status, t.Reason, t.ResetTries = StatusWaiting, ReasonCancelling, !p.Cancelling()
	}
	return t
}

// cancelNext tells the rounds in which the cancel is sent from those in which the PaymentIntent is read: an answer that Stripe has stored under
// the key of the cancel, as a 500, would be all that the cancel ever shows, so that it is read after each cancel that did not show it.
func cancelNext(p Payment) Action {
	if p.Rounds%2 == 0 {
		return ActionCancel
	}
	return ActionRetrieve
}

// decideCancelling: what a cancel, or a retrieve after it, shows of a declined payment.
func decideCancelling(p Payment, o Observation, now time.Time, policy Policy) Transition {
	switch o.Kind {
	case ObservedObject:
		return decideCanceled(p, o, now, policy)
	case ObservedInvalid, ObservedKeyConflict, ObservedUnclear, ObservedDecline, ObservedAnswer:
		// It may be canceled or not, and was there to be read: the other action of cancelNext.
		return stillCancelling(p, 1, o)
	default:
		t := stillCancelling(p, 2, o) // the same again
		t.Delay.Long = o.Kind == ObservedForeignAccount || foreign(p, o.Account) && o.Account.ID != ""
		t.Delay.Soon = (o.Kind == ObservedInUse || o.Kind == ObservedLocked) && p.Rounds < 2*soonRounds
		return t
	}
}

func stillCancelling(p Payment, rounds int, o Observation) Transition {
	return Transition{
		Status: StatusWaiting, Reason: ReasonCancelling, Failure: p.Failure, Rounds: p.Rounds + rounds,
		Delay: Delay{Step: p.Rounds/2 + 1, AtLeast: o.RetryAfter}.Advised(o.ShouldRetry),
	}
}

// decideCanceled: the PaymentIntent of a declined payment as it stands.
func decideCanceled(p Payment, o Observation, now time.Time, policy Policy) Transition {
	pi := o.Object
	switch {
	case pi == nil || pi.ID != p.StripePaymentIntent:
		t := review(ReasonMissingAtStripe, nil)
		t.Failure = p.Failure
		return t
	case disagreement(p, o.Account, *pi) != "":
		t := adopt(p, o, *pi, now)
		t.Failure = p.Failure
		return t
	case o.Replayed && pi.Status != StripeCanceled && pi.Status != StripeSucceeded:
		// Stripe repeats what it said to an earlier cancel, and what it showed then has changed since: it is read. To believe it would be to go
		// back to a status that the payment has left, and from there to this cancel, again and again.
		return stillCancelling(p, 1, o)
	}
	switch pi.Status {
	case StripeRequiresPaymentMethod, StripeRequiresConfirmation:
		// The cancel has not been executed. Should that be so for ever, a person must hear of it.
		if p.Tries+1 >= policy.TriesMax {
			t := review(ReasonCancelRefused, nil)
			t.Failure, t.CountTry = p.Failure, true
			return t
		}
		t := stillCancelling(p, 1, o)
		if p.Rounds%2 == 0 {
			t.Rounds++ // it was the cancel itself that showed it: nothing to read
		}
		t.CountTry = true
		return t
	case StripeCanceled:
		t := settled(StatusFailed, "", pi)
		if t.Failure = p.Failure; t.Failure == nil {
			t.Failure = pi.LastError
		}
		if t.Failure != nil {
			t.Reason = t.Failure.Code
		}
		return t
	default: // its customer was faster
		return adopt(p, o, *pi, now)
	}
}
