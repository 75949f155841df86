package payments

import (
	"fmt"
	"slices"
	"time"
)

// Policy is what an installation may set about failures.
type Policy struct {
	// TriesMax is how many answers that prove that nothing was executed a payment may have.
	TriesMax int
	// ResubmitAfterAbsent submits a payment again whose absence at Stripe is proven, instead of leaving that to a person.
	ResubmitAfterAbsent bool
	// NoTries: what could not be sent costs no try, since it is known that nothing can be sent.
	NoTries bool
	// Cancel is the charge's (FollowUps.CancelOpen). Once a charge is proven to be absent while one is open, it is canceled; and with one that may have
	// succeeded and be forgotten, nothing is sent for it any more.
	Cancel OpenCancel
}

// Decide says what an observation means for a payment. p is the state as it was before the present owner came: p.InDoubt tells of an earlier
// owner's send, and p.FirstSubmitAt is zero when this owner's send was the first. It is pure, and the only place where an answer of Stripe
// gets its meaning.
//
// Two rules stand above all others. A send without a definite answer is unknown, never failed (I7). And while an earlier send is in doubt,
// nothing that a later one is answered proves that the earlier did not charge: only Stripe's records do.
func Decide(p Payment, o Observation, now time.Time, policy Policy) (Transition, error) {
	o.RetryAfter = min(max(o.RetryAfter, 0), RetryAfterMax)
	p.InDoubt = p.InDoubt || p.Status == StatusUnknown
	if !slices.Contains(ObservationKinds(), o.Kind) || p.Kind.FollowUp() {
		return Transition{}, Errorf(CodeInternal, "no rule for the observation %q of a %s", o.Kind, p.Kind)
	}
	if p.Status == StatusPending {
		return decidePending(p, o, now), nil
	}
	if p.Cancelling() && !p.InDoubt {
		return decideCancelling(p, o, now, policy), nil
	}
	if t, ok := decideNoAnswer(p, o, policy); ok {
		return t, nil
	}
	switch o.Kind {
	case ObservedAnswer:
		return decideAnswer(p, o, now), nil
	case ObservedDecline:
		return decideDecline(p, o), nil
	case ObservedInvalid:
		return decideInvalid(p, o), nil
	case ObservedRecords:
		return decideRecords(p, o, now, policy), nil
	case ObservedNoRecords:
		return decideNoRecords(p, o), nil
	default: // an object that nobody asked for: only pending payments are retrieved
		return decideUnaskedObject(p, o, now), nil
	}
}

// decideNoAnswer is what a send comes to that Stripe did not execute, or of which nobody can say: whatever was sent. ok is false for all else.
func decideNoAnswer(p Payment, o Observation, policy Policy) (t Transition, ok bool) {
	switch o.Kind {
	case ObservedNotSent, ObservedHeldBack, ObservedAccountUnknown, ObservedForeignAccount, ObservedUnauthorized, ObservedRateLimited, ObservedLocked:
		return decideNothingExecuted(p, o, policy), true
	case ObservedKeyConflict:
		return unknown(p, ReasonKeyConflict, nextLook(p, o)), true
	case ObservedInUse:
		return unknown(p, ReasonKeyInUse, nextLook(p, o)), true
	case ObservedUnclear:
		return unknown(p, ReasonNoAnswer, nextLook(p, o)), true
	}
	return t, false
}

// Expire ends a payment whose expires_at passed before anything was sent.
func Expire(p Payment) Transition {
	return Transition{Status: StatusExpired, Reason: ReasonExpired, ClearSubmit: p.FirstSubmitAt.IsZero()}
}

// decideAnswer: a 2xx to our submit.
func decideAnswer(p Payment, o Observation, now time.Time) Transition {
	if o.Object == nil || o.Object.ID == "" || o.Object.Status == "" {
		return unknown(p, ReasonNoAnswer, nextLook(p, o))
	}
	if p.InDoubt && !o.Replayed && !SabotageNoLook {
		// This send was executed anew, so what became of the earlier one is still open: one more look.
		return unknown(p, ReasonConfirming, Delay{Step: 1, Soon: true})
	}
	return adopt(p, o, *o.Object, now)
}

// decideDecline: a 402. Once an earlier send is in doubt it may have been another attempt that was declined; and a decline that comes with a
// PaymentIntent which holds or moves money contradicts itself.
func decideDecline(p Payment, o Observation) Transition {
	if p.InDoubt && !SabotageNoLook || o.Object != nil && o.Object.Status.movesMoney() {
		return unknown(p, ReasonConfirming, nextLook(p, o))
	}
	return decline(p, o.Object, o.Failure)
}

// decideInvalid: a 4xx proves that this send was not executed, and nothing about an earlier one: validation runs before the idempotency layer.
func decideInvalid(p Payment, o Observation) Transition {
	if p.InDoubt {
		return unknown(p, ReasonLookingUp, Delay{Step: p.Rounds + 1})
	}
	return Transition{Status: StatusRejected, Reason: ReasonInvalidRequest, Failure: o.Failure}
}

// decideNothingExecuted: this attempt moved nothing. What was open before it is open still.
func decideNothingExecuted(p Payment, o Observation, policy Policy) Transition {
	step := Delay{Step: p.Rounds + 1, AtLeast: o.RetryAfter}
	t := Transition{Status: StatusWaiting, Rounds: p.Rounds + 1, Delay: step, InDoubt: p.InDoubt}
	nothingLeft := false // not one byte left this process
	switch o.Kind {
	case ObservedNotSent:
		t.Reason, t.CountTry, nothingLeft = ReasonNotSent, !policy.NoTries, true
	case ObservedHeldBack:
		t.Reason, nothingLeft = ReasonHeldBack, true
	case ObservedAccountUnknown:
		t.Reason, nothingLeft = ReasonAccountUnknown, true
	case ObservedForeignAccount:
		t.Reason, t.Delay, nothingLeft = ReasonAccountChanged, Delay{Long: true}, true
	case ObservedUnauthorized:
		t.Reason = ReasonAuthentication
	case ObservedRateLimited:
		t.Reason = ReasonRateLimited
	case ObservedLocked:
		t.Reason, t.Delay.Soon = ReasonLocked, p.Rounds < soonRounds
	}
	// Only the owner that set first_submit_at may clear it: a later one that cannot dial must not erase the time of an earlier send.
	t.ClearSubmit = nothingLeft && p.FirstSubmitAt.IsZero()
	t.Delay = t.Delay.Advised(o.ShouldRetry)
	if p.InDoubt {
		t.Status, t.CountTry = StatusUnknown, false
		return t
	}
	if t.CountTry && p.Tries+1 >= policy.TriesMax {
		return Transition{Status: StatusStalled, Reason: t.Reason, CountTry: true, ClearSubmit: t.ClearSubmit, DeadLetter: ReasonAttemptsExhausted}
	}
	return t
}

// decideRecords: a complete listing of Stripe's records, asked because an earlier send is in doubt.
func decideRecords(p Payment, o Observation, now time.Time, policy Policy) Transition {
	switch {
	case len(o.Found) > 1:
		return review(ReasonSeveral, nil)
	case len(o.Found) == 1:
		return adopt(p, o, o.Found[0], now)
	default:
		return decideAbsent(p, o, p.StripePaymentIntent != "", now, policy)
	}
}

// decideAbsent: a complete listing of Stripe's records without anything of the payment. named says that Stripe has named it before.
func decideAbsent(p Payment, o Observation, named bool, now time.Time, policy Policy) Transition {
	switch {
	case foreign(p, o.Account):
		return unknown(p, ReasonAccountChanged, Delay{Long: true}) // another account's empty list proves nothing
	case !policy.Cancel.Forgotten && !p.FirstSubmitAt.IsZero() && MaySend(p, p.FirstSubmitAt, now):
		return Transition{ThenSend: true}
	}
	last := p.LastSubmitAt
	if last.Before(p.FirstSubmitAt) {
		last = p.FirstSubmitAt
	}
	switch {
	case last.IsZero():
		return review(ReasonAbsent, nil) // sent at a time that nobody knows: absence cannot be proven
	case now.Before(last.Add(AbsenceAfter)):
		return unknown(p, ReasonLookingUp, Delay{Step: p.Rounds + 1})
	case p.AbsentAt.IsZero(), p.AbsentAt.After(now): // a time to come was written by a clock that was wrong, and might never be reached
		t := unknown(p, ReasonLookingUp, Delay{AtLeast: AbsenceApart})
		t.AbsentAt = now
		return t
	case now.Before(p.AbsentAt.Add(AbsenceApart)):
		t := unknown(p, ReasonLookingUp, Delay{AtLeast: p.AbsentAt.Add(AbsenceApart).Sub(now)})
		t.AbsentAt = p.AbsentAt
		return t
	case named:
		return review(ReasonMissingAtStripe, nil) // Stripe has named it before: that it is not listed does not make it absent
	case policy.Cancel.Open:
		return CanceledUnsent()
	case p.Expired(now):
		return Transition{Status: StatusExpired, Reason: ReasonAbsent, ClearSubmit: true}
	case policy.ResubmitAfterAbsent && !p.Orphan(): // an orphan is never sent
		// A submit like the first: what was sent before is proven not to exist, and Stripe has long forgotten the key.
		return Transition{Status: StatusWaiting, Reason: ReasonAbsent, ClearSubmit: true, Rounds: p.Rounds + 1, Delay: Delay{Step: 1}}
	default:
		return Transition{Status: StatusNeedsReview, Reason: ReasonAbsent, ClearSubmit: true}
	}
}

// decideNoRecords: the records could not be read to their end; the payment stays where it is.
func decideNoRecords(p Payment, o Observation) Transition {
	if p.InDoubt && p.StripeAccount == "" {
		t := review(ReasonAccountUnclear, nil) // there is no account in which it could ever be looked for
		t.AbsentAt = p.AbsentAt
		return t
	}
	reason := ReasonLookingUp
	if o.unreadable() {
		reason = ReasonAuthentication
	}
	t := unknown(p, reason, Delay{Step: p.Rounds + 1, AtLeast: o.RetryAfter}.Advised(o.ShouldRetry))
	t.AbsentAt = p.AbsentAt
	return t
}

// adopt gives a payment the state of Stripe's object, if that is the object which the intent asked for.
func adopt(p Payment, o Observation, pi PaymentIntent, now time.Time) Transition {
	if field := disagreement(p, o.Account, pi); field != "" {
		return review(fmt.Sprintf("%s: %s", ReasonDisagrees, field), &pi)
	}
	switch pi.Status {
	case StripeSucceeded:
		return settled(StatusSucceeded, "", &pi)
	case StripeRequiresCapture:
		return settled(StatusRequiresCapture, "", &pi)
	case StripeRequiresAction:
		return settled(StatusRequiresAction, "", &pi)
	case StripeProcessing:
		return Transition{Status: StatusPending, Reason: ReasonProcessing, Object: &pi, Rounds: 1, Delay: Delay{Step: 1}}
	case StripeCanceled:
		if failure := declineBehind(p, pi); failure != nil {
			t := settled(StatusFailed, failure.Code, &pi)
			t.Failure = failure
			return t
		}
		return settled(StatusCanceled, ReasonStripeCanceled, &pi)
	case StripeRequiresPaymentMethod:
		if pi.LastError == nil {
			break // it is still being confirmed
		}
		return decline(p, &pi, pi.LastError)
	case StripeRequiresConfirmation:
	default:
		return review(ReasonUnknownStatus, &pi)
	}
	if p.InDoubt && !p.LastSubmitAt.IsZero() && !now.Before(p.LastSubmitAt.Add(AbsenceAfter)) {
		return review(ReasonConfirming, &pi) // Stripe has left it half done: nobody else will end it
	}
	return unknown(p, ReasonConfirming, Delay{Step: p.Rounds + 1})
}

// declineBehind returns the decline for which a canceled PaymentIntent was canceled by us, or nil: it was another's doing.
func declineBehind(p Payment, pi PaymentIntent) *Failure {
	switch {
	case p.OffSession || authenticationRequired(pi.LastError):
		return nil
	case p.Failure != nil:
		return p.Failure
	}
	return pi.LastError
}

// disagreement names what differs between the object and what the payment asked for, or returns "".
func disagreement(p Payment, account Account, pi PaymentIntent) string {
	switch {
	case p.StripeAccount != "" && account.ID != p.StripeAccount:
		return "account"
	case foreign(p, account), pi.Livemode != account.Livemode:
		return "livemode"
	case pi.Amount != p.Amount:
		return "amount"
	case pi.Currency != p.Currency:
		return "currency"
	case pi.Customer != p.Customer:
		return "customer"
	case p.StripePaymentIntent != "" && p.StripePaymentIntent != pi.ID:
		return "payment_intent"
	}
	return ""
}

// foreign reports whether the payment is pinned to another account, or to the other mode of this one.
func foreign(p Payment, a Account) bool {
	return p.StripeAccount != "" && (a.ID != p.StripeAccount || a.Livemode != p.Livemode)
}

func authenticationRequired(f *Failure) bool {
	return f != nil && (f.Code == "authentication_required" || f.DeclineCode == "authentication_required")
}

// settled is a status that nobody has to act on.
func settled(s Status, reason string, pi *PaymentIntent) Transition {
	return Transition{Status: s, Reason: reason, Object: pi}
}

// review leaves the decision to a person. The doubt stays: should the payment be taken up again, it is looked up before anything is sent.
func review(reason string, pi *PaymentIntent) Transition {
	t := settled(StatusNeedsReview, reason, pi)
	t.InDoubt = true
	return t
}

// soonRounds is for how many rounds a payment that stays in doubt is looked up soon: then an outage of hours is on, and the delay grows.
const soonRounds = 3

// nextLook is when to look after a send that proved nothing: soon after the first one. What Stripe says of sending the request again is no
// word on reading its records.
func nextLook(p Payment, o Observation) Delay {
	return Delay{Step: p.Rounds + 1, Soon: !p.InDoubt || p.Rounds < soonRounds, AtLeast: o.RetryAfter}
}

// unknown: a charge may exist.
func unknown(p Payment, reason string, d Delay) Transition {
	return Transition{Status: StatusUnknown, Reason: reason, InDoubt: true, Rounds: p.Rounds + 1, Delay: d}
}
