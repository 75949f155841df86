// Package stripe is the payments.Gateway that speaks to Stripe, or to a simulator of it.
//
// The way of a submit: request (the form body, a pure function of the stored intent) -> submit -> transport (one request leaves, or none)
// -> observe (what the answer proves). lookup lists Stripe's records of a payment, retrieve reads one PaymentIntent again.
//
// Captures, cancels and refunds go the same way (followup_request, capture, cancel, refund); refund_lookup lists the refunds of a PaymentIntent.
//
// Three layers re-send a POST on their own: stripe-go, net/http's Client (redirects) and net/http's Transport (a keep-alive connection that dies,
// whenever an Idempotency-Key header is present). Calls go through the last alone, where that is switched off, and gate.go makes it certain:
// every connection asks a passage before its first byte, and a passage lets one connection through once.
//
// Answers are read by our own narrow decoding of the bytes that arrived, not through stripe-go's types: those accept "{}" or any other JSON
// object as a PaymentIntent, and refuse a good answer when a member that we do not need has a new shape. What is taken from stripe-go is the API
// version that bodies are made for; tests compare our forms with its own.
//
// Accounts sends each payment its tenant's way (tenant.go, keyref.go): by the installation's key, by that key for a connected account, or by a key
// of the tenant's own. What differs is a Gateway, which knows one account by one key; the connections are shared. A payment that is pinned to no
// account, or to another than its tenant's, goes nowhere.
//
// A look-up lists the customer's PaymentIntents; one without a customer lists all of the account in its window, and those share listings
// (share.go). What the list does not show is looked for among the events of the window as well (events.go).
package stripe
