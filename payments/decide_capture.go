package payments

import "time"

// A capture happens once at Stripe, whatever is sent how often under which key. So the PaymentIntent tells what became of it, also days later, and it is
// sent again for as long as Stripe still holds the money.

// decideCapture: what Stripe answered to a capture.
func decideCapture(p Payment, s FollowUpState, o Observation, now time.Time) Transition {
	switch o.Kind {
	case ObservedAnswer, ObservedObject:
		return decideCaptureAnswer(p, s, o, now)
	case ObservedDecline:
		if p.InDoubt || o.Object != nil && (o.Object.Status == StripeSucceeded || o.Object.Status == StripeProcessing) {
			t := unknown(p, ReasonConfirming, nextLook(p, o))
			t.Failure = o.Failure // for captureAgain, should the money still be held when no earlier capture can be executed any more
			return t
		}
		t := settled(StatusFailed, "", nil)
		if t.Failure = o.Failure; o.Failure != nil {
			t.Reason = o.Failure.Code
		}
		if o.Object != nil && o.Object.Status == StripeCanceled {
			t.Target = asShown(*o.Object, ReasonStripeCanceled)
		}
		return t
	case ObservedInvalid:
		// Often because the PaymentIntent is captured or canceled already: it is read, and says whether this was about the request itself. An earlier
		// capture that is in doubt may still be executed, so that one is refused for good only when that cannot be any more.
		reason := ReasonInvalidRequest
		if p.InDoubt && p.Reason != ReasonInvalidRequest {
			reason = ReasonLookingUp
		}
		t := unknown(p, reason, nextLook(p, o))
		t.Failure = o.Failure
		return t
	}
	return unknown(p, ReasonConfirming, nextLook(p, o))
}

// decideCaptureAnswer: a 2xx with the PaymentIntent.
func decideCaptureAnswer(p Payment, s FollowUpState, o Observation, now time.Time) Transition {
	pi := o.Object
	switch {
	case pi == nil || pi.ID == "" || pi.Status == "":
		return unknown(p, ReasonNoAnswer, nextLook(p, o))
	case notItself(p, s, o) != "":
		return disagrees(notItself(p, s, o))
	case pi.Status == StripeSucceeded && pi.AmountReceived != p.Amount:
		t := disagrees("amount_received")
		t.Target = asShown(*pi, "")
		return t
	case pi.Status == StripeSucceeded || pi.Status == StripeCanceled:
		return decideCaptureSeen(p, s, o, now)
	}
	return unknown(p, ReasonConfirming, nextLook(p, o)) // it is read
}

// decideCaptureSeen: the PaymentIntent of a capture as it stands.
func decideCaptureSeen(p Payment, s FollowUpState, o Observation, now time.Time) Transition {
	pi := o.Object
	if pi == nil {
		return review(ReasonMissingAtStripe, nil)
	}
	if field := notItself(p, s, o); field != "" {
		return disagrees(field)
	}
	switch pi.Status {
	case StripeSucceeded:
		t := settled(StatusSucceeded, "", nil)
		if pi.AmountReceived != p.Amount {
			t = settled(StatusFailed, ReasonCapturedOtherwise, nil)
		}
		t.Target = asShown(*pi, "")
		return t
	case StripeCanceled:
		t := settled(StatusFailed, ReasonStripeCanceled, nil)
		t.Target = asShown(*pi, ReasonStripeCanceled)
		return t
	case StripeRequiresCapture:
		return captureAgain(p, s, now)
	case StripeProcessing:
		return halfDone(p, now)
	}
	return disagrees("status")
}

// captureAgain: the money is still held.
func captureAgain(p Payment, s FollowUpState, now time.Time) Transition {
	over := !p.FirstSubmitAt.IsZero() && !now.Before(p.FirstSubmitAt.Add(AbsenceAfter))
	switch {
	case p.Failure != nil && (p.Reason == ReasonInvalidRequest || over):
		t := settled(StatusRejected, ReasonInvalidRequest, nil)
		t.Failure = p.Failure
		return t
	case s.Target.Status != StatusRequiresCapture:
		return disagrees("status") // to take it would be against what is said of the payment
	case s.Ahead:
		return p.waits(ReasonBehind)
	}
	return Transition{ThenSend: true}
}
