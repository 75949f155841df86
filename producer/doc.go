// Package producer puts messages on the streams: Publisher sends payment intents,
// Relay sends what committed transactions left in an outbox: events and copies of
// dead letters, and the intents that were accepted by other ways than their stream,
// such as over HTTP or as a part of a batch. The published copy of such an intent is
// a nudge and a journal; the payment is in the database, and a copy that is late,
// or comes twice, changes nothing.
//
// Both say exactly what they know of a message: it is stored, it is definitely
// not, or nobody knows. Not knowing is harmless by design, since an intent is
// repeated under the same idempotency key and an event under the same event id.
//
//	result, err := publisher.Publish(ctx, message)
//	switch {
//	case err == nil: // stored, as message result.Sequence of result.Stream
//	case errors.Is(err, producer.ErrInvalid): // never as it is: a *payments.ValidationError names the field
//	case producer.Retryable(err): // publish the same again, under the same key: it changes nothing if it was stored
//	default: // not stored, and the error says what has to change first
//	}
//
// Publishing coalesces. There is one committer a stream; while one group is under
// way the next one gathers, without a timer, so a lone message leaves at once and
// many callers share their writes to disk. Below 20 messages a group leaves as plain
// asynchronous publishes, from 20 to 1,000 as one atomic batch. A caller may leave
// as long as its message is queued; from then on it gets the true answer, within
// Options.AckTimeout.
//
// What happens to a batch on the way:
//
//   - Its answer is lost, with the connection or without: it is sent again. The
//     stream recognises it by a random Nats-Msg-Id and says that it is stored, and
//     where. After the stream's duplicate window it stores it once more, which
//     changes nothing but the sequence. If no answer comes in time the outcome of
//     each of its messages is Unknown.
//   - The connection is lost before its end: none of it is stored, and it is sent
//     again on the next connection. Where there is no connection to begin with,
//     messages are refused at once.
//   - A message of it was lost (10176): it is sent again once, then singly.
//   - Too many batches are open on the stream (10210): after a few short pauses its
//     messages leave singly, and further groups as well for a while.
//   - The stream refuses it as a whole, for instance because it is full (10077): each
//     message gets an attempt of its own, so that what still fits is stored.
//
// There is one relay an outbox, and one outbox for the events, one for the intents
// of each lane: a stream that is full, which may last for hours, holds up nobody
// else. What cannot leave stays in the outbox, however long, and a bounded part of
// it in memory.
//
// It imports the domain, the wire contract and group commit, and knows neither
// the database nor Stripe.
package producer
