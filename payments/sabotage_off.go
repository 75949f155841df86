//go:build !sabotage

package payments

// SabotageBuild tells a build that can be made to fail from all others.
const SabotageBuild = false

// Each of these constants stands for one protection that is in force. A build with the tag sabotage can remove them one at a time
// (ONCEPAY_SABOTAGE), and tests show that the oracle then turns red: a proof that cannot fail proves nothing.
const (
	// SabotageNoLook sends again without asking Stripe's records first.
	SabotageNoLook = false
	// SabotageNoTokenCheck lets a write through whose token is no longer in the ticket.
	SabotageNoTokenCheck = false
	// SabotageIgnoreToken makes everybody who meets a payment its owner.
	SabotageIgnoreToken = false
	// SabotageNoResendLimit re-sends a key that Stripe may have forgotten.
	SabotageNoResendLimit = false
	// SabotageNoFingerprint treats every repeat of a key as the same request.
	SabotageNoFingerprint = false
	// SabotageNoTicket stores payments without a ticket.
	SabotageNoTicket = false
)
