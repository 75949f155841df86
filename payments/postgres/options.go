package postgres

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// Options are the settings of a Store; the zero value is usable.
type Options struct {
	// Name is what connections are called at the server (application_name), unless the URL says; "oncepay" unless set.
	Name string
	// PoolSize is the greatest number of connections; 16 unless set.
	PoolSize int
	// Committers is how many flushes of one verb may run side by side; 1 unless set: on two cores 14.6k payments/s went through Admit and
	// Record with one, and 10.4k with two, since the batches are smaller.
	Committers int
	// FlushTimeout bounds a flush with its repetitions, and every other write; 15 s unless set.
	FlushTimeout time.Duration
	// Clock, when set, is passed to PostgreSQL in place of its own now(), so that tests share one clock with everybody else. It is then also
	// the process's wall clock.
	Clock payments.Clock
	// Token makes the random tokens of Take and the secrets of API keys; crypto/rand unless set. It fills b or panics.
	Token func(b []byte)
	// Committed, when set, is called after each commit with the messages that it wants sent, of all outboxes: Kind and Lane tell whose. It must not
	// block: the next flush waits for it.
	Committed func([]payments.OutboxItem)
	// Hold is how long messages handed to Committed are kept from Pending; 10 s unless set.
	Hold time.Duration
	// Rate is how many calls a second may be begun on each Stripe account, all processes together: Admit and Take then give no more tickets
	// than that, and what was not used within 50 ms is gone: at once at most rate/20, or 2. 0, or what is no rate: unlimited, and nothing is
	// counted. All processes should have the same.
	Rate float64
	// RequestVersion is the form of the request to Stripe that new payments are bound to; 1 unless set.
	RequestVersion int
	// Namespace names the installation in events; "oncepay" unless set.
	Namespace string
	// Backoff turns the delays of Evidence into times; payments.BackoffDefault unless set.
	Backoff payments.Backoff
	// Logger hears of what should not happen; slog.Default unless set.
	Logger *slog.Logger
	// Connected, when set, is called for each new connection before anybody uses it, with what reads the database's mark on it.
	Connected func(ctx context.Context, mark func(context.Context) (payments.MarkState, error))
	// Observer, when set, is told of every flush of the verbs "admit" and "record". It must not block.
	Observer func(verb string, s coalesce.Stats)

	// wall is the process's wall clock, from which leases count.
	wall func() time.Time
}

func (o Options) withDefaults() Options {
	o.PoolSize = positive(o.PoolSize, 16)
	o.Committers = positive(o.Committers, 1)
	o.FlushTimeout = positive(o.FlushTimeout, 15*time.Second)
	o.Hold = positive(o.Hold, 10*time.Second)
	if !(o.Rate > 0) || math.IsInf(o.Rate, 1) {
		o.Rate = 0
	}
	o.RequestVersion = positive(o.RequestVersion, 1)
	o.wall = time.Now
	if o.Clock != nil {
		o.wall = o.Clock.Now
	}
	if o.Token == nil {
		o.Token = func(b []byte) { _, _ = rand.Read(b) } // crypto/rand.Read never fails: it ends the program instead
	}
	if o.Namespace == "" {
		o.Namespace = "oncepay"
	}
	if o.Backoff == (payments.Backoff{}) {
		o.Backoff = payments.BackoffDefault
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
