package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// Store is a payments.Store, a payments.Batches, a payments.Reader, a payments.Keys, and the payments.Outbox of events and dead letters; Intents has
// those of intents. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	opts    Options
	tenants tenantCache
	admits  *coalesce.Group[*admission, *payments.Admission] // by pointer: they are large, and handed on often
	records *coalesce.Group[*payments.Recording, *payments.Recorded]

	budgets budgets
	turns   turns
	plans   plans
	// restored: accept has found what a rewind has stored, and is not asked any more.
	restored atomic.Bool
	// meetsUntil, as Unix time in nanoseconds: until then accept expects rows that are there already.
	meetsUntil atomic.Int64
	// clocksApart: the last lease found that our clock and PostgreSQL's disagree.
	clocksApart atomic.Bool
	// beforeCommit, when set, is called with the verb before a transaction's COMMIT is sent; tests hold transactions open in it.
	beforeCommit atomic.Pointer[func(verb string)]
}

var (
	_ payments.Store   = (*Store)(nil)
	_ payments.Batches = (*Store)(nil)
	_ payments.Reader  = (*Store)(nil)
	_ payments.Keys    = (*Store)(nil)
	_ payments.Outbox  = (*Store)(nil)
	_ payments.Replays = (*Store)(nil)

	_ payments.FollowUps      = (*Store)(nil)
	_ payments.FollowUpReader = (*Store)(nil)
)

// Limits of one flush.
const (
	flushItemsMax = 500
	flushBytesMax = 4 << 20
)

// Open connects to a database that has been migrated. The caller closes the Store. CodeInvalid: the DSN cannot be read; CodeUnavailable.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	s := &Store{opts: opts}
	var err error
	if s.pool, err = openPool(ctx, dsn, opts, s.now, &s.plans); err != nil {
		return nil, err
	}
	s.admits = coalesce.New(coalesce.Options[*admission]{
		MaxBatch: flushItemsMax, Committers: opts.Committers, MayWait: (*admission).mayWait, Timeout: opts.FlushTimeout,
		Weight: (*admission).weight, MaxWeight: flushBytesMax,
		RetrySingly: oneItems, Retry: flushRetry, Observe: s.observe("admit"),
	}, s.flushAdmit)
	s.records = coalesce.New(coalesce.Options[*payments.Recording]{
		MaxBatch: flushItemsMax, Committers: opts.Committers, Timeout: opts.FlushTimeout,
		RetrySingly: oneItems, Retry: flushRetry, Observe: s.observe("record"),
	}, s.flushRecord)
	return s, nil
}

// Close lets what is queued be flushed, as long as ctx allows, and closes all connections. When ctx ends first, what runs still is left to its
// own time limit.
func (s *Store) Close(ctx context.Context) error {
	err := s.admits.Close(ctx)
	if e := s.records.Close(ctx); err == nil {
		err = e
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.plans.close()
		s.pool.Close() // waits for connections that are in use
	}()
	select {
	case <-closed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping asks PostgreSQL for a sign of life. CodeUnavailable.
func (s *Store) Ping(ctx context.Context) error { return translate(s.pool.Ping(ctx)) }

// wall is this process's wall-clock time.
func (s *Store) wall() time.Time { return s.opts.wall() }

// now is the parameter that stands for the store's time in SQL: null for PostgreSQL's own.
func (s *Store) now() *time.Time {
	if s.opts.Clock == nil {
		return nil
	}
	t := s.opts.Clock.Now().UTC().Truncate(time.Microsecond)
	return &t
}

func (s *Store) newToken() (t payments.Token) {
	s.opts.Token(t[:])
	return t
}

func (s *Store) observe(verb string) func(coalesce.Stats) {
	return func(stats coalesce.Stats) {
		s.took(stats.Duration)
		if stats.Singly > 0 && !violates(stats.Err, intentTaken) {
			s.opts.Logger.Error("a flush was repeated one by one: a bound is not checked before it reaches SQL",
				"verb", verb, "items", stats.Singly, "error", stats.Err)
		}
		if s.opts.Observer != nil {
			s.opts.Observer(verb, stats)
		}
	}
}

// took is told how long PostgreSQL needed.
func (s *Store) took(d time.Duration) { s.plans.took(d, s.wall(), s.pool, s.opts.Logger) }

// committed hands messages on after their commit.
func (s *Store) committed(items []payments.OutboxItem) {
	if s.opts.Committed != nil && len(items) > 0 {
		s.opts.Committed(items)
	}
}

// hold is for how long new messages are kept from Pending: not at all when nobody is told of them.
func (s *Store) hold() time.Duration {
	if s.opts.Committed == nil {
		return 0
	}
	return s.opts.Hold
}
