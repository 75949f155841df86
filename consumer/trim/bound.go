package trim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// errNoDurable: the stream has no consumer of the lane's name that could hold its floor, so nobody knows what is done.
var errNoDurable = errors.New("the durable consumer is missing")

// errAhead: the durable's floor is above the last message. It is not this stream's, or the stream lost its newest messages; either way nobody
// will be given what is published up to the floor.
var errAhead = errors.New("the durable consumer has acked more than the stream holds")

// bound is how far a stream may be trimmed: messages below limit are acked by every durable consumer that acks.
type bound struct {
	limit  uint64
	holder reader // the one that acked least
	own    uint64 // the floor of the lane's own durable
}

// bound reads the floors of all consumers. A floor that is not above want-1 anyway is looked at closer where its durable filters. s is the
// stream as it was before.
func (l *lane) bound(ctx context.Context, s streamState, want uint64) (bound, error) {
	list, err := l.api.readers(ctx, l.Stream)
	if err != nil {
		return bound{}, err
	}
	own := slices.IndexFunc(list, func(r reader) bool { return r.name == l.Durable && r.holds() })
	if own < 0 {
		return bound{}, fmt.Errorf("consumer %s/%s: %w", l.Stream, l.Durable, errNoDurable)
	}
	b := bound{limit: math.MaxUint64, own: list[own].floor}
	for _, r := range list {
		if !r.holds() {
			continue
		}
		floor := r.floor
		if floor+1 < want && len(r.filters) > 0 {
			if floor, err = l.filteredFloor(ctx, s, r); err != nil {
				return bound{}, err
			}
		}
		if floor < b.limit-1 {
			b.limit, b.holder = floor+1, r
		}
	}
	return b, nil
}

// filteredFloor is the floor of a durable with a filter. What JetStream reports is the last message that it acked, however many of others have
// come since: a quiet subject would hold up the stream for ever. Where it says that it has nothing unacked and nothing to come, and the leader of
// the stream finds nothing that matches above its floor either, it has no claim to what was there before; a leader of a consumer may lag behind
// that of the stream, and the stream's says that there is no message when it cannot read its store. An unacked message may have been given under
// an older filter, so then the floor stands as it is.
func (l *lane) filteredFloor(ctx context.Context, s streamState, r reader) (uint64, error) {
	if r.ackPending > 0 || r.pending > 0 {
		return r.floor, nil
	}
	floor := s.last
	for _, filter := range r.filters {
		next, _, found, err := l.api.next(ctx, l.Stream, position{Sequence: r.floor + 1, Subject: filter})
		if err != nil {
			return 0, err
		}
		if found {
			floor = min(floor, next-1)
		}
	}
	return max(floor, r.floor), nil
}
