// Package producer puts messages on the streams: Publisher sends payment intents,
// Relay sends what committed transactions left in the outbox.
//
// Both say exactly what they know of a message: it is stored, it is definitely
// not, or nobody knows. Not knowing is harmless by design, since an intent is
// repeated under the same idempotency key and an event under the same event id.
//
// It imports the domain, the wire contract and group commit, and knows neither
// the database nor Stripe.
package producer
