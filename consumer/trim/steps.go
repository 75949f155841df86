package trim

import (
	"context"
	"errors"
	"time"
)

var (
	// errRemade: the stream was deleted and made again under our hands.
	errRemade = errors.New("the stream was made anew while it was looked at")
	// errSlow: what was read is too old to purge by.
	errSlow = errors.New("JetStream answers too slowly to trim by its answers")
	// errStuck: a purge that succeeded changed nothing.
	errStuck = errors.New("a purge succeeded and the messages are still there")
)

// freshFor is how old the floors and the look after them may be when a purge is sent.
const freshFor = 2 * time.Second

// look reads the stream's state. A stream that was made anew since the last look may have lost messages to a purge that was on its way.
func (l *lane) look(ctx context.Context) (streamState, error) {
	s, err := l.api.stream(ctx, l.Stream)
	if err != nil {
		return s, err
	}
	if l.Observer.Looked != nil {
		l.Observer.Looked(l.Stream, s.bytes, s.maxBytes)
	}
	remade := !l.created.IsZero() && !l.created.Equal(s.created)
	if remade && l.doubt > 0 && l.hold(HeldRemade) {
		l.Log.Error("the stream was deleted and made again while a trim was on its way: messages with lower sequences that were published to the "+
			"new one in that moment may be gone unread; their producers publish them again under the same keys, which changes nothing for the others",
			"stream", l.Stream, "sequence", l.doubt, "created", s.created)
	}
	if remade {
		l.lookedAt, l.aged = 0, time.Time{}
	}
	l.created, l.doubt = s.created, 0
	return s, nil
}

// trim goes step by step until there is nothing more to trim, or held by a floor. s is the stream as it was just looked at; messages from
// before cutoff have aged, none have where it is zero.
func (l *lane) trim(ctx context.Context, s streamState, cutoff time.Time) (_ streamState, held bool, err error) {
	aged := uint64(0)
	if !cutoff.IsZero() {
		if aged, err = l.wantForAge(ctx, s, cutoff); err != nil {
			return s, false, err
		}
	}
	for full, start := s.above(highPercent), s.bytes; ; {
		want := aged
		if full {
			want = max(want, s.wantForRoom())
		}
		if want <= s.first || s.messages == 0 {
			return s, false, nil
		}
		want = min(want, s.first+stepMax)
		began, before := l.now(), s
		b, err := l.bound(ctx, s, want)
		if err != nil {
			return s, false, err
		}
		if s, err = l.look(ctx); err != nil {
			return s, false, err
		}
		switch {
		case !s.created.Equal(before.created):
			return s, false, errRemade
		case b.own > s.last:
			return s, false, errAhead
		}
		urgent := s.above(urgentPercent) || full && s.bytes > start // the publishers are faster
		to := s.step(want, b.limit, l.pace.next(urgent))
		if to <= s.first {
			if held = b.limit <= s.first && (aged > s.first || s.above(highPercent)); held {
				l.heldBy(ctx, s, b)
				l.held.aged = !s.above(highPercent)
			}
			// Where another Trimmer was faster there may be more to do; the next look comes soon enough.
			return s, held, nil
		}
		purged, took, err := l.purge(ctx, s, to, began)
		if err != nil {
			return s, false, err
		}
		before = s
		if s, err = l.look(ctx); err != nil {
			return s, false, err
		}
		switch {
		case !s.created.Equal(before.created):
			return s, false, errRemade
		case s.first <= before.first:
			return s, false, errStuck
		case purged == 0 && !urgent:
			return s, false, nil // another Trimmer is at it
		case !wait(ctx, rest(took, urgent)):
			return s, false, ctx.Err()
		}
	}
}

// purge takes one step: everything below to. began is when the floors were asked for.
func (l *lane) purge(ctx context.Context, s streamState, to uint64, began time.Time) (purged uint64, took time.Duration, err error) {
	start := l.now()
	if age := start.Sub(began); age < 0 || age > freshFor {
		return 0, 0, errSlow
	}
	l.doubt = to
	purged, err = l.api.purge(ctx, l.Stream, to)
	took = max(0, l.now().Sub(start))
	if err != nil {
		return 0, took, err
	}
	l.pace.took(to-s.first, took)
	if purged > 0 && l.Observer.Trimmed != nil {
		l.Observer.Trimmed(l.Stream, purged, purged*s.messageBytes())
	}
	l.Log.Debug("trimmed a stream", "stream", l.Stream, "below", to, "messages", purged, "took", took.String())
	return purged, took, nil
}

// now is the wall clock's time, which goes on while a machine sleeps.
func (l *lane) now() time.Time { return l.Clock.Now().Round(0) }
