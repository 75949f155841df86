package trim

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// KeepFor is how long acked history stays where there is room for it: a rewind reads it again.
const KeepFor = 72 * time.Hour

// Lane names a stream and the durable whose work it carries. Without that durable on it the stream is not trimmed.
type Lane struct {
	Stream  string
	Durable string
}

// Config is what a Trimmer needs. All fields without a default are required.
type Config struct {
	// JetStream must be made on a connection that buffers nothing while it is away (nats.ReconnectBufSize(-1)): a purge that waited for the
	// connection would meet whatever stream is there by then. Its user needs STREAM.INFO, STREAM.MSG.GET, STREAM.PURGE and CONSUMER.LIST of the
	// lanes' streams.
	JetStream jetstream.JetStream
	Lanes     []Lane
	// Clock is held against the times that the servers gave the messages.
	Clock payments.Clock
	// KeepFor is how old a message becomes before it goes; default 72 h.
	KeepFor time.Duration
	// Held, when set, reports whether the streams' history is needed at present: then nothing is trimmed.
	Held func() bool

	Log      *slog.Logger
	Observer Observer
}

// Observer is told what happens, for metrics. Every function may be nil and must be quick; those of two lanes may be called at once.
type Observer struct {
	// Looked: a stream holds so many bytes; maxBytes is 0 or less where it has no limit. Called at each look, once a second or more often.
	Looked func(stream string, bytes uint64, maxBytes int64)
	// Trimmed: a step of ours took so many messages off a stream; bytes is an estimate by their average size.
	Trimmed func(stream string, messages, bytes uint64)
	// Held: a stream should have been trimmed and was not; called at each look as long as that lasts.
	Held func(stream string, why Why)
}

// Validate names the first setting that a Trimmer cannot run with.
func (c *Config) Validate() error {
	switch {
	case c.JetStream == nil, c.Clock == nil:
		return errors.New("trim: JetStream and Clock are required")
	case c.JetStream.Conn().Opts.ReconnectBufSize >= 0:
		return errors.New("trim: the connection would keep a purge for later while it is away; connect with nats.ReconnectBufSize(-1)")
	case c.KeepFor < 0:
		return fmt.Errorf("trim: KeepFor is %v; give it a time to keep, or 0 for %v", c.KeepFor, KeepFor)
	case len(c.Lanes) == 0:
		return errors.New("trim: Lanes is empty; name the streams to trim, each with its durable consumer")
	}
	seen := map[string]bool{}
	for _, l := range c.Lanes {
		if l.Stream == "" || l.Durable == "" || strings.ContainsAny(l.Stream+l.Durable, ".*> \t\r\n/\\") {
			return fmt.Errorf("trim: %q with durable %q cannot be a lane; name a stream and a consumer as JetStream does", l.Stream, l.Durable)
		}
		if seen[l.Stream] {
			return fmt.Errorf("trim: stream %s is named twice; one lane trims it", l.Stream)
		}
		seen[l.Stream] = true
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.KeepFor == 0 {
		c.KeepFor = KeepFor
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
