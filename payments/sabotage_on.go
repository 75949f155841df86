//go:build sabotage

package payments

import "os"

// SabotageBuild tells a build that can be made to fail from all others.
const SabotageBuild = true

// The protections that ONCEPAY_SABOTAGE (look, token, owner, window, fingerprint or ticket) removes from a build made to fail.
var (
	SabotageNoLook        = os.Getenv("ONCEPAY_SABOTAGE") == "look"
	SabotageNoTokenCheck  = os.Getenv("ONCEPAY_SABOTAGE") == "token"
	SabotageIgnoreToken   = os.Getenv("ONCEPAY_SABOTAGE") == "owner"
	SabotageNoResendLimit = os.Getenv("ONCEPAY_SABOTAGE") == "window"
	SabotageNoFingerprint = os.Getenv("ONCEPAY_SABOTAGE") == "fingerprint"
	SabotageNoTicket      = os.Getenv("ONCEPAY_SABOTAGE") == "ticket"
)
