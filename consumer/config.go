package consumer

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// ConcurrencyMin is the smallest number of slots: one for each lane.
const ConcurrencyMin = 2

// Config is what a Worker needs. All fields without a default are required.
type Config struct {
	JetStream jetstream.JetStream
	Subjects  schema.Subjects
	Store     payments.Store
	Batches   payments.Batches
	Processor *payments.Processor
	Clock     payments.Clock

	// Concurrency is how many payments may be in flight in this process; default 512.
	Concurrency int
	// Lease is how long a claim is good; it must be longer than the processor's CallTimeout.
	Lease time.Duration
	// PollInterval is how often due tickets are asked for while there are none; default 200 ms.
	PollInterval time.Duration
	// NewToken returns 128 random bits.
	NewToken func() payments.Token
	// Held, when set, says why nothing may be sent from this process at present, "" when it may: then nothing is pulled and taken either, and what
	// was pulled already is left to come back. It is asked often, by many, and must not wait.
	Held func() (reason string)
	// Random returns a number in [0, n), so that workers do not all do the same at the same moment; nil: the runtime's.
	Random func(n int64) int64

	Log      *slog.Logger
	Observer Observer
	// OnStep, when set, is told of the steps around Admit, Take and ack; tests stop the process in it.
	OnStep func(payments.Step, payments.ID)
}

// Observer is told what happens, for metrics. Every function may be nil and must be quick.
type Observer struct {
	// Message: a message was read and its fate decided: a verdict, a dead letter's reason, or unavailable; or scouted, when its payment was
	// stored before its turn. Its own fate then is exists.
	Message func(lane payments.Lane, fate string)
	// Settled: a claim ended. waited is the time since the message was published, zero for due tickets.
	Settled func(lane payments.Lane, s payments.Settlement, waited time.Duration)
	// Taken: due tickets were taken.
	Taken func(lane payments.Lane, n int)
	// Buried: a dead letter was committed.
	Buried func(reason payments.Reason)
	// Panicked: a handler panicked and was recovered.
	Panicked func()
	// Completed: so many batches were told to be complete.
	Completed func(batches int)
	// Breaker: nothing is sent to a Stripe account any more but probes, or it works again.
	Breaker func(a payments.Account, open bool)
	// InFlight: how many messages and claims are being worked on, after each pull and take.
	InFlight func(n int)
}

// Validate names the first setting that a worker cannot run with.
func (c *Config) Validate() error {
	invalid := func(field, text string) error {
		return &payments.Error{Code: payments.CodeInvalid, Field: field, Message: text}
	}
	switch {
	case c.JetStream == nil, c.Store == nil, c.Batches == nil, c.Processor == nil, c.Clock == nil, c.NewToken == nil:
		return invalid("consumer", "JetStream, Store, Batches, Processor, Clock and NewToken are required")
	case c.Processor.Store == nil, c.Processor.Gateway == nil, c.Processor.Clock == nil:
		return invalid("consumer", "the Processor needs a Store, a Gateway and a Clock")
	case c.Subjects.Validate() != nil:
		return invalid("subjects", "the prefix of the subjects cannot be one; use that of the streams")
	case c.Concurrency < ConcurrencyMin:
		return invalid("concurrency", "must be at least 2: one slot for each lane")
	case c.Lease <= c.Processor.CallTimeout, c.Processor.Lease <= c.Processor.CallTimeout:
		return invalid("lease", "must be longer than the time-out of one call to Stripe, or no call could ever be made within it")
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Concurrency == 0 {
		c.Concurrency = 512
	}
	if c.PollInterval <= 0 {
		c.PollInterval = 200 * time.Millisecond
	}
	if c.Random == nil {
		c.Random = rand.Int64N
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) step(s payments.Step, id payments.ID) {
	if c.OnStep != nil {
		c.OnStep(s, id)
	}
}
