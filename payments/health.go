package payments

import "net/http"

// Health is what one observation says of the account's way to Stripe, whatever it says of the payment. Circuit breakers count it.
type Health string

// What an observation may say of the way.
const (
	// HealthNothing: nobody was asked, or the reason lies in this payment, in this process, or in a right that charges do not need.
	HealthNothing Health = ""
	// HealthGood: Stripe answered in its own form, so that it works for this account, be the answer a refusal. A 429 is one of these: it bounds
	// the rate (Store.Throttle), and is no reason to stop.
	HealthGood Health = "good"
	// HealthBad: Stripe, or the way to it, is in trouble: no connection, no answer in time, a 5xx, an answer that cannot be read.
	HealthBad Health = "bad"
	// HealthRefused: Stripe works and refuses the account's key (401, 403). A person must mend it.
	HealthRefused Health = "refused"
)

// Health says what the observation tells of the account's way to Stripe. It is pure.
func (o Observation) Health() Health {
	if o.LacksRight {
		return HealthNothing // charges go on without it
	}
	switch o.Kind {
	case ObservedAnswer, ObservedDecline, ObservedInvalid, ObservedKeyConflict, ObservedInUse, ObservedLocked, ObservedRateLimited, ObservedRecords,
		ObservedObject, ObservedRefund:
		return HealthGood
	case ObservedNotSent, ObservedUnclear:
		return HealthBad
	case ObservedUnauthorized:
		return HealthRefused
	case ObservedNoRecords:
		return o.healthOfReading()
	default: // held back, no account known, another account: nothing was sent
		return HealthNothing
	}
}

// healthOfReading: the records could not be read to their end, for one of many reasons.
func (o Observation) healthOfReading() Health {
	switch {
	case o.HTTPStatus == http.StatusUnauthorized, o.HTTPStatus == http.StatusForbidden:
		return HealthRefused
	case o.Trouble:
		return HealthBad
	case o.HTTPStatus >= 400 && o.HTTPStatus <= 499:
		return HealthGood
	default:
		return HealthNothing
	}
}
