package payments

import (
	"fmt"
	"slices"
	"time"
)

// DecideFollowUp is Decide for a follow-up: what the observation of what was done means for it, and, by Transition.Target, for its charge. p and s are
// the state as it was before the present owner came. It is pure, and knows the same two rules.
func DecideFollowUp(p Payment, s FollowUpState, did Action, o Observation, now time.Time, policy Policy) (Transition, error) {
	o.RetryAfter = min(max(o.RetryAfter, 0), RetryAfterMax)
	p.InDoubt = p.InDoubt || p.Status == StatusUnknown
	if !slices.Contains(FollowUpObservationKinds(), o.Kind) || !p.Kind.FollowUp() {
		return Transition{}, Errorf(CodeInternal, "no rule for the observation %q of a %s", o.Kind, p.Kind)
	}
	switch {
	case did == ActionRetrieve || did == ActionLookRefunds || did == ActionRetrieveRefund:
		t := decideRead(p, s, did, o, now, policy)
		if !t.Status.Final() {
			t.Failure = p.Failure // of an answer that has still to be understood
		}
		return t, nil
	case did == ActionCapture && p.Kind == KindCapture, did == ActionCancel && p.Kind == KindCancel, did == ActionRefund && p.Kind == KindRefund:
		return decidePost(p, s, o, now, policy), nil
	default:
		return Transition{}, Errorf(CodeInternal, "a %s is not what is done for a %s", did, p.Kind)
	}
}

// decidePost: what a capture, a cancel or a refund that was sent shows.
func decidePost(p Payment, s FollowUpState, o Observation, now time.Time, policy Policy) Transition {
	if t, ok := decideNoAnswer(p, o, policy); ok {
		return t
	}
	switch p.Kind {
	case KindCapture:
		return decideCapture(p, s, o, now)
	case KindCancel:
		return decideCancel(p, s, o, policy)
	default:
		return decideRefund(p, o)
	}
}

// decideRead: what reading the PaymentIntent or its refunds shows, before or after something was sent.
func decideRead(p Payment, s FollowUpState, did Action, o Observation, now time.Time, policy Policy) Transition {
	switch {
	case did == ActionRetrieve && o.Kind == ObservedObject && p.Kind == KindCapture:
		return decideCaptureSeen(p, s, o, now)
	case did == ActionRetrieve && o.Kind == ObservedObject && p.Kind == KindCancel:
		return decideCancelSeen(p, s, o)
	case did == ActionLookRefunds && o.Kind == ObservedRecords && p.Kind == KindRefund:
		return decideRefunds(p, s, o, now, policy)
	case did == ActionLookRefunds && o.Kind == ObservedObject && o.Object == nil && p.Kind == KindRefund && !foreign(p, o.Account):
		// Stripe knows no such PaymentIntent: its data was deleted, another account answers, or a person has named a wrong one. None of that says
		// that nothing was given back, and to send the refund could give nothing back.
		return review(ReasonMissingAtStripe, nil)
	case did == ActionRetrieveRefund && o.Kind == ObservedRefund && p.Kind == KindRefund:
		return decideRefundSeen(p, s, o)
	case p.Status == StatusPending:
		return unreadPending(p, o)
	}
	return unread(p, o)
}

// unread: nothing was read, so that all stays as it is.
func unread(p Payment, o Observation) Transition {
	reason, d := ReasonLookingUp, Delay{Step: p.Rounds + 1, AtLeast: o.RetryAfter}.Advised(o.ShouldRetry)
	switch {
	case o.Account.ID != "" && foreign(p, o.Account):
		reason, d = ReasonAccountChanged, Delay{Long: true}
	case o.Kind == ObservedAccountUnknown:
		reason = ReasonAccountUnknown
	case p.InDoubt && p.Reason == ReasonInvalidRequest:
		reason = p.Reason // what Stripe refused is still to be understood
	case o.unreadable():
		reason = ReasonAuthentication
	}
	t := p.waits(reason)
	t.Delay = d
	return t
}

// notItself names what differs between the PaymentIntent and the one of the follow-up's charge, or returns "".
func notItself(p Payment, s FollowUpState, o Observation) string {
	charge := s.Target
	charge.StripeAccount, charge.Livemode, charge.StripePaymentIntent = p.StripeAccount, p.Livemode, p.StripePaymentIntent
	return disagreement(charge, o.Account, *o.Object)
}

func disagrees(field string) Transition {
	return review(fmt.Sprintf("%s: %s", ReasonDisagrees, field), nil)
}

// halfDone is a follow-up whose PaymentIntent stands where nobody can say yet what becomes of it.
func halfDone(p Payment, now time.Time) Transition {
	if !p.LastSubmitAt.IsZero() && !now.Before(p.LastSubmitAt.Add(AbsenceAfter)) {
		return review(ReasonConfirming, nil)
	}
	t := p.waits(ReasonConfirming)
	t.Delay.Soon = p.Rounds < soonRounds
	return t
}
