package trim

import (
	"context"
	"fmt"
	"time"
)

// A stream that is fuller than highPercent is trimmed, oldest first, until it is down to lowPercent or only what is not acked is left. To stop
// at half, where all acked history might go, keeps what a rewind would read; the room for new intents between two looks is the same, since it
// is what is above highPercent that counts. Above urgentPercent, or where a round does not keep up, speed matters more than the publishers' pace.
const (
	highPercent   = 70
	lowPercent    = 50
	urgentPercent = 85
)

// above reports whether more than percent of the stream's room is in use. One without a limit is never full.
func (s streamState) above(percent uint64) bool {
	return s.maxBytes > 0 && s.bytes > s.share(percent)
}

// share is so much of the stream's room, in bytes.
func (s streamState) share(percent uint64) uint64 { return uint64(s.maxBytes) / 100 * percent }

// messageBytes is what a message of the stream takes, on average and at least 1.
func (s streamState) messageBytes() uint64 {
	if s.messages == 0 {
		return 1
	}
	return max(1, s.bytes/s.messages)
}

// wantForRoom is the first sequence to keep so that the stream is down to lowPercent, by the average size of its messages; 0 is all of them.
func (s streamState) wantForRoom() uint64 {
	if !s.above(lowPercent) {
		return 0
	}
	over := s.bytes - s.share(lowPercent)
	return s.first + over/s.messageBytes() + 1
}

// wantForAge is the first sequence to keep that is not older than cutoff; 0 is all of them.
func (l *lane) wantForAge(ctx context.Context, s streamState, cutoff time.Time) (uint64, error) {
	if s.messages == 0 || !s.firstTime.Before(cutoff) {
		return 0, nil
	}
	sequence, at, found, err := l.api.next(ctx, l.Stream, position{Since: &cutoff, Subject: anySubject})
	switch {
	case err != nil:
		return 0, err
	case !found && s.lastTime.Before(cutoff):
		return s.last + 1, nil
	case !found, at.Before(cutoff): // a store that cannot be read, or a server that does not know start_time
		return 0, fmt.Errorf("STREAM.MSG.GET.%s: the first message since %s was not found, though the last is of %s; NATS 2.15 or newer finds it",
			l.Stream, cutoff.UTC().Format(time.RFC3339), s.lastTime.UTC().Format(time.RFC3339))
	}
	return sequence, nil
}

// step is how far one purge goes: towards want, not past limit, and at most most sequences. The newest message stays, so that the stream never
// has to remember its sequence without a message: dead letters are named by it. It goes only where it alone fills the stream.
func (s streamState) step(want, limit, most uint64) uint64 {
	to := min(want, limit, s.first+most)
	if alone := s.first == s.last && s.above(highPercent); !alone {
		to = min(to, s.last)
	}
	return to
}
