// Package consumer is the worker: it takes intents and batches from JetStream and due tickets from the store, and sees each payment to a recorded
// outcome.
//
// A message goes intake -> Admit -> Settle -> ack, in one goroutine of straight-line code; a due ticket goes Take -> Settle. No more is pulled
// than there are slots for. A message is held until its payment's outcome is recorded and gets one word, ack: no nak, no heartbeat. Where
// nothing could be committed nothing is said, and AckWait brings the message back.
//
// A batch is stored whole, with a ticket for each of its payments, and acked; the tickets carry the work. The copies of its payments that the outbox
// publishes on the bulk lane come back here as any message does: they find their rows, wake Take and are acked, and never make a row. When all
// payments of a batch are final the store is asked to tell so, once: by a hint of whoever settled the last one, and by a sweep (complete.go).
//
// Where an account's rate has no room a payment is stored without its ticket, and Take gives tickets out as there is room. The lane lets its
// backlog stay in the stream meanwhile (flow.go), and a scout looks ahead in it for tenants that have less than their share (scout.go); Take serves
// tenants in turn, and a lane's messages and tickets share its slots.
//
// Everybody passes the gate before claiming: a payment whose owners vanished three times is worked on alone in its process. A message that was
// delivered often and has no row is started as a suspect, its bytes committed first, one at a time. Neither may take the slots of the others.
//
// Meaning is decided in package payments; what is done with a message follows from it in outcome.go, which knows nothing of Stripe.
package consumer
