package schema

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The values that streams and consumers have in common. The strings are
// JetStream's own words for them.
const (
	RetentionLimits = "limits"
	DiscardNew      = "new"
	DiscardOld      = "old"
	StorageFile     = "file"
	AckExplicit     = "explicit"
	DeliverAll      = "all"
	ReplayInstant   = "instant"
)

// The names of the durable consumers, one a lane.
const (
	ConsumerIntent = "worker-intent"
	ConsumerBulk   = "worker-bulk"
)

const (
	// DuplicateWindow is the smallest that JetStream allows. The window drops a
	// repeated Nats-Msg-Id whatever its tenant or body, so it must be short.
	DuplicateWindow = 100 * time.Millisecond
	// EventsMaxAge is how long outcome events stay in their stream.
	EventsMaxAge = 7 * 24 * time.Hour
	// DeadMaxAge is how long copies of dead letters stay in their stream.
	DeadMaxAge = 90 * 24 * time.Hour
	// MaxAckPending is how many messages of a lane may be held by all workers
	// together.
	MaxAckPending = 20_000
	// DefaultAckWait is how long a worker may hold a message.
	DefaultAckWait = 30 * time.Second
	// DefaultStreamMaxBytes is how large one stream may grow: 10 GiB.
	DefaultStreamMaxBytes = 10 << 30
)

// Unlimited is JetStream's word for no limit.
const Unlimited = -1

// Settings are the values that an installation chooses for its streams.
type Settings struct {
	// StreamMaxBytes bounds each stream; at least 1 MiB.
	StreamMaxBytes int64
	// Replicas of each stream: 1, 3 or 5.
	Replicas int
	// AckWait is how long a worker may hold a message; at least a second.
	AckWait time.Duration
}

// DefaultSettings are those of a single server.
func DefaultSettings() Settings {
	return Settings{StreamMaxBytes: DefaultStreamMaxBytes, Replicas: 1, AckWait: DefaultAckWait}
}

// ErrSettings is wrapped by every error about [Settings].
var ErrSettings = errors.New("impossible stream settings")

// Validate reports the first setting that no stream or consumer can have.
func (s Settings) Validate() error {
	switch {
	case s.StreamMaxBytes < 1<<20:
		return fmt.Errorf("%w: max bytes is %d: give each stream at least 1 MiB", ErrSettings, s.StreamMaxBytes)
	case s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5:
		return fmt.Errorf("%w: replicas is %d: choose 1, 3 or 5", ErrSettings, s.Replicas)
	case s.AckWait < time.Second:
		return fmt.Errorf("%w: ack wait is %v: choose at least 1s", ErrSettings, s.AckWait)
	}
	return nil
}

// Stream is the configuration of one JetStream stream, as data.
type Stream struct {
	Name      string
	Subjects  []string
	Retention string
	Discard   string
	Storage   string
	Replicas  int
	MaxBytes  int64
	// MaxMsgs and MaxMsgSize are Unlimited: an oversized message must become a
	// visible dead letter, not a refusal that plain publishers never hear of.
	MaxMsgs    int64
	MaxMsgSize int32
	// MaxAge is 0 where messages do not age.
	MaxAge             time.Duration
	DuplicateWindow    time.Duration
	AllowAtomicPublish bool
	// AllowDirect lets followers answer reads by sequence. It is off where a
	// stale answer could be taken for a lost intent.
	AllowDirect bool
}

// StreamIntents is the name of the interactive lane's stream.
func (s Subjects) StreamIntents() string { return s.streamName("INTENTS") }

// StreamBulk is the name of the bulk lane's stream.
func (s Subjects) StreamBulk() string { return s.streamName("BULK") }

// StreamEvents is the name of the outcome events' stream.
func (s Subjects) StreamEvents() string { return s.streamName("EVENTS") }

// StreamDead is the name of the dead letters' stream.
func (s Subjects) StreamDead() string { return s.streamName("DEAD") }

// BucketMark is the name of the key-value bucket that holds the copy of the
// database's mark.
func (s Subjects) BucketMark() string { return s.streamName("MARK") }

// KeyMark is the one key in it.
const KeyMark = "mark"

// StreamOfBucket is the stream that a key-value bucket is made of.
func StreamOfBucket(bucket string) string { return "KV_" + bucket }

// streamName replaces dots, which a stream's name may not contain. A valid prefix
// has no underscores of its own, so no two share a name.
func (s Subjects) streamName(suffix string) string {
	return strings.ToUpper(strings.ReplaceAll(s.prefix(), ".", "_")) + "_" + suffix
}

// Streams returns the four streams in the order in which to create them.
//
// Intents are never dropped: a full stream refuses the new message, so that its
// producer knows. Events and copies of dead letters are kept in PostgreSQL as
// well; there a full stream drops the oldest, so that a reader that fell asleep
// cannot hold up payments.
func (s Subjects) Streams(settings Settings) []Stream {
	base := Stream{
		Retention: RetentionLimits, Discard: DiscardNew, Storage: StorageFile, Replicas: settings.Replicas,
		MaxBytes: settings.StreamMaxBytes, MaxMsgs: Unlimited, MaxMsgSize: Unlimited,
		DuplicateWindow: DuplicateWindow, AllowAtomicPublish: true,
	}
	intents, bulk, events, dead := base, base, base, base
	intents.Name, intents.Subjects = s.StreamIntents(), []string{s.wildcard(SubjectIntent)}
	bulk.Name, bulk.Subjects = s.StreamBulk(), []string{s.wildcard(SubjectBulk), s.wildcard(SubjectBatch)}
	events.Name, events.Subjects = s.StreamEvents(), []string{s.wildcard(SubjectEvent) + ".*"}
	events.MaxAge, events.Discard, events.AllowDirect = EventsMaxAge, DiscardOld, true
	dead.Name, dead.Subjects = s.StreamDead(), []string{s.wildcard(SubjectDead)}
	dead.MaxAge, dead.Discard, dead.AllowDirect = DeadMaxAge, DiscardOld, true
	return []Stream{intents, bulk, events, dead}
}

// wildcard matches the subjects of every tenant.
func (s Subjects) wildcard(kind SubjectKind) string { return s.prefix() + "." + string(kind) + ".*" }

// Consumer is the configuration of one durable pull consumer, as data. There is
// no back-off: with one, its first entry would replace AckWait.
//
// There is no filter either, since a lane's durable reads all of its stream. A
// message published under the very subject payments.intent.> is stored, and a
// filter of payments.intent.* would pass it over for ever.
type Consumer struct {
	Stream  string
	Durable string
	// FilterSubjects picks messages by subject; none is all of the stream.
	FilterSubjects []string
	AckPolicy      string
	DeliverPolicy  string
	ReplayPolicy   string
	AckWait        time.Duration
	// MaxDeliver is Unlimited: a message that the server gives up on would
	// leave no trace that anyone reads.
	MaxDeliver    int
	MaxAckPending int
}

// Consumers returns the two lanes' durable consumers.
func (s Subjects) Consumers(settings Settings) []Consumer {
	base := Consumer{
		AckPolicy: AckExplicit, DeliverPolicy: DeliverAll, ReplayPolicy: ReplayInstant,
		AckWait: settings.AckWait, MaxDeliver: Unlimited, MaxAckPending: MaxAckPending,
	}
	intent, bulk := base, base
	intent.Stream, intent.Durable = s.StreamIntents(), ConsumerIntent
	bulk.Stream, bulk.Durable = s.StreamBulk(), ConsumerBulk
	return []Consumer{intent, bulk}
}
