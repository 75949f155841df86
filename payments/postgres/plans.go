package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgreSQL keeps a statement's plan for as long as nothing is learned about its tables. Those of the queue and the outboxes are empty for hours and
// then have tens of thousands of rows: a plan for one row compares each ticket with each of the batch, for seconds, until autovacuum comes by. So what
// took long is taken for a sign of that: all connections make their plans anew, from what PostgreSQL is asked to learn about these tables.
const (
	slowStatement = 250 * time.Millisecond
	renewEvery    = 10 * time.Second // at most: slowness has other reasons, too
	renewTimeout  = 5 * time.Second
)

// analyze passes over what somebody else is analyzing, and, with a warning that nobody reads, over tables that are another role's.
const analyze = "ANALYZE (SKIP_LOCKED) queue, outbox, outbox_intents"

// plans are those that the connections of one pool keep.
type plans struct {
	generation atomic.Int64 // of plans; a connection that has older ones discards them
	renewedAt  atomic.Int64 // Unix time in nanoseconds

	mu       sync.Mutex
	closed   bool
	renewing sync.WaitGroup
}

// planGeneration is under what a connection remembers the generation of its plans.
const planGeneration = "oncepay.plans"

// took is told how long a flush or a write has taken.
func (p *plans) took(d time.Duration, now time.Time, pool *pgxpool.Pool, log *slog.Logger) {
	last := p.renewedAt.Load()
	if d < slowStatement || now.UnixNano()-last < int64(renewEvery) || !p.renewedAt.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.renewing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
		defer cancel()
		if _, err := pool.Exec(ctx, analyze, pgx.QueryExecModeSimpleProtocol); err != nil {
			log.Debug("the tables of tickets and messages could not be analyzed", "error", err)
		}
		p.generation.Add(1)
	})
}

// close begins no renewal any more, and waits for one that runs.
func (p *plans) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.renewing.Wait()
}

// prepare discards the plans of a connection that is about to be used, if they are older than the last renewal.
func (p *plans) prepare(ctx context.Context, c *pgx.Conn) (ok bool, err error) {
	now := p.generation.Load()
	if had, _ := c.PgConn().CustomData()[planGeneration].(int64); had == now {
		return true, nil
	}
	if _, err := c.PgConn().Exec(ctx, "DISCARD PLANS").ReadAll(); err != nil {
		return false, nil // the connection is broken: the pool takes another one
	}
	c.PgConn().CustomData()[planGeneration] = now
	return true, nil
}
