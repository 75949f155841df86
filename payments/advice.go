package payments

// RetryAdvice is Stripe's own word on trying again (the header Stripe-Should-Retry). It is about the request as such, not about its outcome: a
// charge that is in doubt stays in doubt whatever it says.
type RetryAdvice string

// What Stripe may say of trying again.
const (
	RetryNotSaid RetryAdvice = ""
	RetrySoon    RetryAdvice = "soon"  // true: trying again is likely to help
	RetryLater   RetryAdvice = "later" // false: it is not, at least not at once
)

// Advised is the delay as Stripe's word on trying again changes it: sooner for the first rounds, or not soon. Never earlier than AtLeast, and what
// only a person can mend stays as long as it is.
func (d Delay) Advised(a RetryAdvice) Delay {
	switch {
	case d.Long || d.Step <= 0:
	case a == RetrySoon:
		d.Soon = d.Soon || d.Step <= soonRounds
	case a == RetryLater:
		d.Soon = false
	}
	return d
}
