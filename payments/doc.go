// Package payments is the domain of Oncepay: what a payment is, which request its key names, what may happen to it next, and what an answer
// of Stripe means. It imports nothing but the standard library; PostgreSQL, Stripe and NATS are reached through the ports in ports.go.
//
// The way of a payment can be read from the file names: intent -> key, fingerprint -> ticket -> next -> decide -> processor. Every business
// branch stands in the pure functions Next and Decide; Processor only runs them around the ports.
package payments
