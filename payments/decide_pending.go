package payments

import "time"

// decidePending: Stripe has the PaymentIntent and says processing, so nothing but its own word about that object ends it. Whatever else a
// retrieve may show, as a rate limit or a time-out, leaves it where it is: from waiting it would be sent again, days later, when Stripe has
// forgotten the key.
func decidePending(p Payment, o Observation, now time.Time) Transition {
	switch o.Kind {
	case ObservedObject:
		return decideObject(p, o, now)
	case ObservedRecords:
		// Only a pending payment whose PaymentIntent is not stored is looked up.
		switch {
		case len(o.Found) > 1:
			return review(ReasonSeveral, nil)
		case len(o.Found) == 1:
			return adopt(p, o, o.Found[0], now)
		case !foreign(p, o.Account):
			return review(ReasonMissingAtStripe, nil)
		}
	}
	return unreadPending(p, o)
}

// unreadPending: what Stripe is processing could not be read.
func unreadPending(p Payment, o Observation) Transition {
	t := stillPending(p, Delay{Step: p.Rounds + 1, AtLeast: o.RetryAfter})
	switch { // what only a person can mend must be seen
	case o.Account.ID != "" && foreign(p, o.Account):
		t.Reason, t.Delay = ReasonAccountChanged, Delay{Long: true}
	case o.unreadable():
		t.Reason = ReasonAuthentication
	}
	return t
}

// decideObject: the PaymentIntent of a pending payment, read again.
func decideObject(p Payment, o Observation, now time.Time) Transition {
	if o.Object == nil || p.StripePaymentIntent == "" || o.Object.ID != p.StripePaymentIntent {
		return review(ReasonMissingAtStripe, nil)
	}
	t := adopt(p, o, *o.Object, now)
	if t.Status == StatusPending && t.Reason == p.Reason {
		return stillPending(p, Delay{Step: p.Rounds + 1})
	}
	return t
}

// decideUnaskedObject: without a stored PaymentIntent nothing says that the object is the one of this payment, and while a send is in doubt it
// says nothing of a second one.
func decideUnaskedObject(p Payment, o Observation, now time.Time) Transition {
	if p.InDoubt {
		return unknown(p, ReasonConfirming, nextLook(p, o))
	}
	return decideObject(p, o, now)
}

func stillPending(p Payment, d Delay) Transition {
	return Transition{Status: StatusPending, Reason: p.Reason, InDoubt: p.InDoubt, Rounds: p.Rounds + 1, Delay: d}
}
