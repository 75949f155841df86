package postgres

import "time"

// clocksApartMax is how far this process's clock and PostgreSQL's may be apart for something to be sent: look-ups search around the times that
// PostgreSQL wrote, from 5 minutes before, and must not miss what Stripe dated by a true clock.
const clocksApartMax = 2 * time.Minute

// leaseEnd is the end of a lease that counts from the process's time from, while now is PostgreSQL's of the same commit. When the two clocks
// disagree, as they may after a failover or without NTP, it is over at once: nothing is sent at a time that was written wrongly, and the payment
// waits, held back.
func (s *Store) leaseEnd(from time.Time, lease time.Duration, now time.Time) time.Time {
	apart := from.Sub(now)
	wrong := apart.Abs() > clocksApartMax
	if s.clocksApart.Swap(wrong) != wrong && wrong {
		s.opts.Logger.Error("this machine's clock and PostgreSQL's disagree, so nothing is sent to Stripe: set both (NTP)", "apart", apart.Round(time.Second).String())
	}
	if wrong {
		return from
	}
	return from.Add(lease)
}
