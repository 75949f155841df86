// Package doctor asks PostgreSQL, NATS and Stripe whether an installation is fit for other people's money, and says of everything that is not
// what to do about it.
//
// It changes nothing: what it asks PostgreSQL runs in transactions that can only read, of NATS it requests information and never a message, and
// to Stripe it sends nothing but GET. A check that fails does not keep others from running, but for those that need what is away.
//
//	settings    postgres ──▶ schema ──▶ namespace, tickets, due, outbox, unpublished, attention
//	            nats ──▶ permissions ──▶ jetstream ──▶ streams, consumers ──▶ replicas, space, lag
//	            stripe ──▶ account
package doctor
