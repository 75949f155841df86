package postgres

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// killBackends terminates one of the other backends each time that every has passed and something was done since, until it is told to end: on a slow
// machine nothing would be if they died faster than connections are made. kills counts them; whoever has done something says so on done.
func (b *bench) killBackends(every time.Duration) (kills *atomic.Int64, done chan struct{}, end func()) {
	kills, done = new(atomic.Int64), make(chan struct{}, 1)
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
			select {
			case <-stop:
				return
			case <-done:
			}
			var hit int
			if err := b.pool.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) p`).Scan(&hit); err == nil {
				kills.Add(int64(hit))
			}
		}
	})
	return kills, done, func() {
		close(stop)
		killer.Wait()
	}
}

// poke says something once to whoever listens, or will.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TestBackendsKilled takes payments through Admit and Record while PostgreSQL's backends are terminated all the time. Whoever is told that
// PostgreSQL is away repeats the same call with the same token. In the end everything is there once.
func TestBackendsKilled(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	s := b.another(Options{Clock: b.clock, PoolSize: 4, Committed: b.sent.add})
	const (
		atLeast, atMost = 150, 100_000
		killsWanted     = 10
	)
	kills, worked, calm := b.killBackends(15 * time.Millisecond)
	var callers sync.WaitGroup
	next := make(chan int)
	for range 16 {
		callers.Go(func() {
			for i := range next {
				r := b.claiming(intent("acme", "k"+strconv.Itoa(i), 100))
				a, err := s.Admit(ctx, r)
				for payments.Retryable(err) {
					a, err = s.Admit(ctx, r)
				}
				if err != nil || a.Verdict != payments.VerdictClaimed {
					t.Errorf("Admit: %s, %v", a.Verdict, err)
					continue
				}
				rec := payments.Recording{Claim: a.Claim, Transition: succeeded(a.Claim.Payment), At: b.clock.Now()}
				done, err := s.Record(ctx, rec)
				for payments.Retryable(err) {
					done, err = s.Record(ctx, rec)
				}
				if err != nil || done.Sequence != 1 {
					t.Errorf("Record: %+v, %v", done, err)
				}
				poke(worked)
			}
		})
	}
	n := 0
	for ; n < atMost && (n < atLeast || kills.Load() < killsWanted); n++ { // a fast machine takes more payments than one
		next <- n
		b.clock.Advance(time.Millisecond)
	}
	close(next)
	callers.Wait()
	calm()
	if kills.Load() < killsWanted {
		t.Errorf("only %d backends were terminated", kills.Load())
	}
	var stored, events, outbox, tickets int
	read := `SELECT (SELECT count(*) FROM payments WHERE status = 'succeeded' AND sequence = 1 AND NOT in_doubt), (SELECT count(*) FROM payment_events),
		(SELECT count(*) FROM outbox), (SELECT count(*) FROM queue)`
	if err := b.pool.QueryRow(ctx, read).Scan(&stored, &events, &outbox, &tickets); err != nil {
		t.Fatal(err)
	}
	if stored != n || events != n || outbox != n || tickets != 0 {
		t.Errorf("%d payments, %d events, %d outbox rows, %d tickets after %d kills; want %d, %d, %d, 0", stored, events, outbox, tickets, kills.Load(), n, n, n)
	}
	t.Logf("%d backends terminated, %d payments", kills.Load(), n)
}
