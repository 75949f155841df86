package payments

import "time"

// ResendWindow is how long after the first send the same idempotency key may still be sent: Stripe may forget a key after 24 h, and then
// charges again (docs.stripe.com/api/idempotent_requests). One hour is left for clocks and for the send itself.
const ResendWindow = 23 * time.Hour

// ClockMargin is how far apart the clocks of PostgreSQL, Stripe and ours may be.
const ClockMargin = 5 * time.Minute

// AbsenceAfter is how long after the last send a complete listing without our PaymentIntent begins to count as proof, and AbsenceApart is
// how far two such listings must lie apart.
const (
	AbsenceAfter = 24 * time.Hour
	AbsenceApart = time.Hour
)

// Action is what the owner of a ticket must do now.
type Action string

// The actions of Next.
const (
	ActionRest     Action = "rest"     // nothing: nobody should hold a ticket for it
	ActionSend     Action = "send"     // submit the request to Stripe
	ActionLook     Action = "look"     // an earlier send had no definite answer: ask Stripe's records
	ActionRetrieve Action = "retrieve" // read the PaymentIntent that Stripe is still processing, or that a cancel did not show
	ActionCancel   Action = "cancel"   // cancel the PaymentIntent of an on-session decline, which its customer could still confirm
	ActionExpire   Action = "expire"   // expires_at has passed and nothing was ever sent
)

// Next says what to do with a payment, from its stored state as it was before the present owner came. Unknown outcomes, takeover, replay,
// rewind and re-sending are all one rule: while an earlier send has no definite answer, look first. It is pure.
func Next(p Payment, now time.Time) Action {
	switch {
	case !p.Status.HasTicket():
		return ActionRest
	case p.Kind.FollowUp():
		return ActionFollowUp
	case p.Status == StatusPending && p.StripePaymentIntent != "":
		return ActionRetrieve
	case (p.InDoubt || p.Status == StatusUnknown || p.Status == StatusPending) && !SabotageNoLook:
		return ActionLook // unknown and pending are in doubt by their meaning
	case p.Cancelling():
		return cancelNext(p) // also after expires_at: a cancel charges nobody
	case p.Expired(now):
		return ActionExpire
	default:
		return ActionSend
	}
}

// MaySend reports whether a POST that can create a charge may still leave: not after expires_at, and not when the re-send window, which began
// at windowStart, is over and Stripe may have forgotten the key. A window that is still to begin was dated by a clock that was wrong: nobody
// knows when it began, and look-ups around it do not see what was sent. It is asked again right before the write.
func MaySend(p Payment, windowStart, now time.Time) bool {
	inWindow := now.Before(windowStart.Add(ResendWindow)) && !windowStart.After(now.Add(ClockMargin))
	return !p.Expired(now) && !p.Orphan() && (SabotageNoResendLimit || windowStart.IsZero() || inWindow)
}
