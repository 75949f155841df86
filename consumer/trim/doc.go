// Package trim takes what is done off the intents' streams, so that acked history never refuses a new intent and the last three days stay
// there to be read again.
//
// JetStream purges up to whatever sequence it is told, past unacked and undelivered messages too, and says nothing. So each step asks anew:
//
//	STREAM.INFO ─▶ how far would we like to? ─▶ CONSUMER.LIST ─▶ how far may we? ─▶ STREAM.INFO ─▶ still the same stream? ─▶ STREAM.PURGE
//
// How far we would like to: to what is older than KeepFor; and, once a stream is fuller than 70%, the oldest first until it is down to 50%.
// How far we may: to the lowest ack floor of any durable consumer that acks, whoever made it, and nowhere while the lane's own durable is
// missing. A floor is the sequence up to which everything is acked: what is acked above an unacked message has to stay.
//
//   - A durable counts whatever its deliver policy: what it starts behind it will never be given, and its floor begins there. A paused one
//     counts as it stands. One that was just made has a floor below the first message, so nothing is trimmed until it has worked itself up.
//   - The reported floor of a durable with a filter is the last message that it acked; the messages of others do not move it. One that has
//     nothing unacked and nothing to come holds nothing, once the stream's leader has found nothing above its floor that its filter matches.
//   - Ephemeral and ordered consumers, and those that ack nothing, hold nothing: nobody promised them that a message waits. Nor do mirrors and
//     sources, which keep no floor here. Whoever needs history for longer makes a durable.
//   - Floors come from the leader of each consumer. A list that is not whole (a leader is away, the list changed between its pages) trims
//     nothing.
//
// Any number of processes may run a Trimmer. A step that another has made already purges nothing, and who finds that leaves the rest of the
// round to the other.
//
// # What remains
//
// A purge names a stream by its name and has no precondition; none of its other forms (by subject, by count, one message) has one either. A
// stream that is deleted and made again between the last STREAM.INFO and the purge loses what was published to it in between. We keep that
// time to one round trip, send nothing by what is older than two seconds, take no connection that would buffer a purge for later, and say so loudly
// when the stream turns out to have been made anew around a purge. A durable that is deleted and made again, or set back, in that time loses
// at most one step of acked history.
//
// A stream that begins at a sequence made of the time (first_seq) would be out of reach of any older purge. We do not: dead letters and answers would
// name messages by numbers of sixteen digits, and what is made again by hand, which is how this comes about, would begin at 1 all the same.
//
// A stream that is full of work that nobody has done yet refuses new intents, and that is right: they are the ones that must not be lost. And
// a group of intents that needs more room at once than what is free, three tenths of the stream, may be refused; give a stream room for
// several such groups.
package trim
