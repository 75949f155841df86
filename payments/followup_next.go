package payments

// The actions that only follow-ups have. A capture and a cancel read their charge's PaymentIntent by ActionRetrieve, and a cancel is ActionCancel.
const (
	ActionFollowUp       Action = "follow_up"       // what Next says of every follow-up: NextFollowUp decides
	ActionSettle         Action = "settle"          // nothing is asked: what is known of the charge decides
	ActionCapture        Action = "capture"         // take what is held
	ActionRefund         Action = "refund"          // give it back
	ActionLookRefunds    Action = "look_refunds"    // list the refunds that Stripe has of the PaymentIntent
	ActionRetrieveRefund Action = "retrieve_refund" // read the refund that Stripe is still processing
)

// NextFollowUp is Next for a follow-up: what to do with it, from its stored state as it was before the present owner came, and from what is known of its
// charge. With ActionSettle the transition is what is recorded. It is pure.
//
// What was sent and has no definite answer is looked at first, as every charge is. A refund is looked for before its first send, too: a database that
// was restored may have forgotten that it was made, and Stripe its key.
func NextFollowUp(p Payment, s FollowUpState) (Action, Transition) {
	switch {
	case !p.Status.HasTicket():
		return ActionRest, Transition{}
	case p.Status == StatusPending && s.StripeRefund != "":
		return ActionRetrieveRefund, Transition{}
	case p.Status == StatusPending:
		return ActionLookRefunds, Transition{}
	}
	p.InDoubt = p.InDoubt || p.Status == StatusUnknown
	// A charge that nobody has sent waits for its cancel, and what is ahead of that can only wait for the charge.
	if s.Ahead && !p.InDoubt && !(p.Kind == KindCancel && s.Target.unsent()) {
		return ActionSettle, p.waits(ReasonBehind)
	}
	if p.InDoubt && p.Kind != KindCancel && p.StripePaymentIntent == "" && !s.Target.unsettled() {
		return ActionSettle, review(ReasonMissingAtStripe, nil) // its charge has ended without one: there is nothing in which it could ever be looked for
	}
	switch p.Kind {
	case KindCapture:
		return nextCapture(p, s)
	case KindCancel:
		return nextCancel(p, s)
	default:
		return nextRefund(p, s)
	}
}

func nextCapture(p Payment, s FollowUpState) (Action, Transition) {
	switch {
	case s.Target.unsettled():
		return ActionSettle, p.waits(ReasonPaymentOpen)
	case s.Target.Status != StatusRequiresCapture, p.InDoubt && !SabotageNoLook:
		return ActionRetrieve, Transition{}
	}
	return ActionCapture, Transition{}
}

func nextCancel(p Payment, s FollowUpState) (Action, Transition) {
	charge := s.Target
	switch {
	case charge.unsent():
		t := p.ends(StatusSucceeded, "")
		t.Target = cancelUnsent
		return ActionSettle, t
	case charge.unsettled():
		return ActionSettle, p.waits(ReasonPaymentOpen)
	case charge.Status == StatusCanceled:
		return ActionSettle, p.ends(StatusSucceeded, "")
	case charge.Status == StatusSucceeded:
		return ActionSettle, p.ends(StatusFailed, ReasonPaid)
	case charge.Status.Final():
		return ActionSettle, p.ends(StatusFailed, ReasonPaymentEnded)
	case p.InDoubt && !SabotageNoLook:
		return ActionRetrieve, Transition{}
	}
	return ActionCancel, Transition{}
}

func nextRefund(p Payment, s FollowUpState) (Action, Transition) {
	switch {
	case p.InDoubt && !SabotageNoLook:
		return ActionLookRefunds, Transition{}
	case !s.Target.taken():
		return ActionSettle, p.untaken(s)
	case SabotageNoLook:
		return ActionRefund, Transition{}
	}
	return ActionLookRefunds, Transition{}
}

// unsent reports whether nothing of the charge can be at Stripe, and nobody has its ticket: it can be canceled here alone.
func (p Payment) unsent() bool {
	return (p.Status == StatusReceived || p.Status == StatusWaiting) && !p.Owned && !p.InDoubt && p.StripePaymentIntent == ""
}

// HoldsBack reports whether a follow-up that is accepted comes before its charge's own ticket: what was not sent when its cancel was accepted never is.
func HoldsBack(charge Payment, i Intent) bool { return i.Kind == KindCancel && charge.unsent() }

// unsettled reports whether somebody has to find out first how the charge stands: a worker or a person.
func (p Payment) unsettled() bool {
	return p.Status.HasTicket() || p.Status == StatusNeedsReview || p.Status == StatusStalled
}

// taken reports whether the customer's money was taken.
func (p Payment) taken() bool { return p.Status == StatusSucceeded && p.AmountCaptured > 0 }

// untaken is what becomes of a refund, or of what is left of its look-up, while nothing was taken. Of a charge that was never captured Stripe makes no
// refund, so that one that was sent all the same was not executed.
func (p Payment) untaken(s FollowUpState) Transition {
	if s.Target.unsettled() {
		return p.waits(ReasonPaymentOpen)
	}
	return p.ends(StatusFailed, ReasonNotCaptured)
}

// waits is a follow-up that can do nothing now, and for which this owner has sent nothing.
func (p Payment) waits(reason string) Transition {
	d := Delay{Step: p.Rounds + 1, Soon: p.Rounds < soonRounds}
	if p.InDoubt {
		t := unknown(p, reason, d)
		t.AbsentAt = p.AbsentAt
		return t
	}
	return Transition{Status: StatusWaiting, Reason: reason, Rounds: p.Rounds + 1, Delay: d, ClearSubmit: p.FirstSubmitAt.IsZero()}
}

// ends is a follow-up's outcome for which this owner has sent nothing.
func (p Payment) ends(s Status, reason string) Transition {
	return Transition{Status: s, Reason: reason, ClearSubmit: !p.InDoubt && p.FirstSubmitAt.IsZero()}
}
