package trim

import (
	"context"
	"log/slog"
	"time"
)

// Why says what kept a stream from being trimmed although it should have been.
type Why string

// The reasons for which nothing is trimmed.
const (
	HeldNoStream  Why = "no_stream"      // there is no such stream
	HeldNoDurable Why = "no_durable"     // the lane's own durable is missing
	HeldUnacked   Why = "unacked"        // most of what lies above the oldest unacked message of the lane is acked
	HeldBacklog   Why = "backlog"        // the lane's messages are not worked off yet
	HeldConsumer  Why = "other_consumer" // another durable consumer has not acked what the lane has
	HeldAhead     Why = "ahead"          // the lane's durable has acked more than the stream holds
	HeldRemade    Why = "remade"         // the stream was deleted and made again around a purge, and may have lost messages
	HeldError     Why = "error"          // JetStream did not answer, or refused
)

// warnEvery is how often a hold that lasts is told in the log.
const warnEvery = time.Minute

// holding remembers what was told in the log. Only its lane uses it.
type holding struct {
	told map[Why]time.Time
	open bool // told, and its end not told yet
	aged bool // for what has aged alone, which not every round looks for
}

// hold counts a hold and reports whether the log should be told: at once, and then once a minute for each reason.
func (l *lane) hold(why Why) bool {
	if l.Observer.Held != nil {
		l.Observer.Held(l.Stream, why)
	}
	now := l.Clock.Now()
	if told, known := l.held.told[why]; known && now.Sub(told) < warnEvery {
		return false
	}
	if l.held.told == nil {
		l.held.told = map[Why]time.Time{}
	}
	l.held.told[why], l.held.open = now, true
	return true
}

// release tells the end of a hold that was told.
func (l *lane) release() {
	if l.held.open {
		l.held.open, l.held.aged = false, false
		l.Log.Info("nothing keeps the stream from being trimmed any more", "stream", l.Stream)
	}
}

// heldBy tells of a stream that is too full or too old, and cannot be trimmed past a floor.
func (l *lane) heldBy(ctx context.Context, s streamState, b bound) {
	r := b.holder
	why := HeldConsumer
	switch {
	case r.name != l.Durable:
	case r.delivered > r.floor+r.ackPending && r.delivered-r.floor-r.ackPending > r.ackPending+r.pending:
		why = HeldUnacked
	default:
		why = HeldBacklog
	}
	if !l.hold(why) {
		return
	}
	attributes := []slog.Attr{
		slog.String("stream", l.Stream), slog.String("consumer", r.name), slog.Uint64("sequence", l.oldestUnacked(ctx, b)), slog.Bool("paused", r.paused),
		slog.Uint64("ack_pending", r.ackPending), slog.Uint64("pending", r.pending), slog.Uint64("bytes", s.bytes), slog.Int64("max_bytes", s.maxBytes),
	}
	text := map[Why]string{
		HeldUnacked: "the stream cannot be trimmed: one message that is not acked holds back what is acked after it, and a full stream refuses new " +
			"intents; find in the workers' log why the message of this sequence is not finished, or raise ONCEPAY_STREAM_MAX_BYTES meanwhile",
		HeldBacklog: "the stream cannot be trimmed: it holds work that is not done yet, and a full stream refuses new intents; " +
			"add workers, see whether they are paused or failing, or raise ONCEPAY_STREAM_MAX_BYTES",
		HeldConsumer: "the stream cannot be trimmed: a durable consumer that is not the workers' has not acked what they have, and a full stream " +
			"refuses new intents; let it catch up, or delete it (nats consumer rm STREAM CONSUMER)",
	}[why]
	l.Log.LogAttrs(ctx, slog.LevelWarn, text, attributes...)
}

// oldestUnacked is the first message above the holder's floor; the sequence after the floor may have been erased, or be of another subject.
func (l *lane) oldestUnacked(ctx context.Context, b bound) uint64 {
	subjects := b.holder.filters
	if len(subjects) == 0 {
		subjects = []string{anySubject}
	}
	oldest := uint64(0)
	for _, subject := range subjects {
		if next, _, found, err := l.api.next(ctx, l.Stream, position{Sequence: b.limit, Subject: subject}); err == nil && found && (oldest == 0 || next < oldest) {
			oldest = next
		}
	}
	if oldest == 0 {
		return b.limit
	}
	return oldest
}
