package doctor

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// otherReaders names the durables of others that keep a stream from being trimmed: those that have not acked what our own have. They are asked
// for only where a stream fills up, and where the user may ask: whoever may not cannot trim beside them either, which nats_permissions tells.
func otherReaders(ctx context.Context, x *examination) []string {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var behind []string
	for _, s := range x.streams {
		if s.Config.Discard != jetstream.DiscardNew || s.Config.MaxBytes <= 0 || percent(s.State.Bytes, s.Config.MaxBytes) <= spaceWarn || !x.mayList(s.Config.Name) {
			continue
		}
		stream, err := x.js.Stream(ctx, s.Config.Name)
		if err != nil {
			continue
		}
		own := x.ownOf(s.Config.Name)
		list := stream.ListConsumers(ctx)
		for c := range list.Info() {
			if own != nil && keepsFromTrim(c, own) {
				behind = append(behind, fmt.Sprintf("%s/%s (%s)", c.Stream, c.Name, count(int(c.NumPending)+c.NumAckPending, "message")))
			}
		}
	}
	return behind
}

// ownOf is the workers' durable on the stream, nil if there is none.
func (x *examination) ownOf(stream string) *jetstream.ConsumerInfo {
	for _, c := range x.consumers {
		if c.Stream == stream {
			return c
		}
	}
	return nil
}

// mayList reports whether the stream's consumers may be listed. Where the user's rights cannot be seen nothing is tried.
func (x *examination) mayList(stream string) bool {
	return x.permissions != nil && x.permissions.publish.permits("$JS.API.CONSUMER.LIST."+stream) && x.permissions.publish.permits("$JS.API.STREAM.INFO."+stream)
}

// keepsFromTrim reports whether c is somebody else's durable that acks, and is behind the workers' own.
func keepsFromTrim(c, own *jetstream.ConsumerInfo) bool {
	return c.Name != own.Name && c.Config.Durable != "" && c.Config.AckPolicy != jetstream.AckNonePolicy && c.NumPending+uint64(c.NumAckPending) > 0 &&
		c.AckFloor.Stream < own.AckFloor.Stream
}
