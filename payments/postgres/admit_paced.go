package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/payments"
)

// asks reports whether the request asks for its token in this flush.
func (f *admitting) asks(a *admission) bool { return a.Claim && f.held[a.key()] == 0 }

// pace finds out which accounts the flush is to debit, and makes their budgets where there are none. Without a rate it does nothing.
func (s *Store) pace(ctx context.Context, f *admitting, now time.Time) error {
	if s.opts.Rate == 0 {
		return nil
	}
	f.held = map[key]time.Duration{}
	for k, a := range f.first {
		if !a.Claim {
			continue
		}
		if wait := s.budgets.held(a.Account, a.Lane, now); wait > 0 {
			f.held[k] = wait
		} else {
			f.paying = append(f.paying, a.Account)
		}
	}
	f.paying = sortedAccounts(f.paying)
	return s.makeBudgets(ctx, f.paying)
}

// queuePaced adds the insert that debits the accounts' budgets, and the question what is left: it costs no further round trip.
func (s *Store) queuePaced(b *pgx.Batch, f *admitting, keys []key, columns []any) {
	place := make(map[*admission]int32, len(f.batch))
	for i, a := range f.batch {
		place[a] = int32(i)
	}
	arrivals := make([]int32, len(keys))
	for i, k := range keys {
		arrivals[i] = place[f.first[k]]
	}
	ids, livemodes := accountArrays(f.paying)
	b.Queue(query("admit_paced"), append(columns, arrivals, s.opts.Rate)...).Query(func(rows pgx.Rows) error {
		return f.inserted(rows, s.opts.RequestVersion)
	})
	b.Queue(query("budgets"), ids, livemodes, s.now(), s.opts.Rate).Query(func(rows pgx.Rows) error {
		f.budgets = make(map[payments.Account]budget, len(f.paying))
		for rows.Next() {
			var a payments.Account
			var left budget
			if err := rows.Scan(&a.ID, &a.Livemode, &left.tokens, &left.rate, &left.interactiveWaits); err != nil {
				return err
			}
			f.budgets[a] = left
		}
		return rows.Err()
	})
}

// wait is how long the budget of a request that was stored and not given its token has no room, or when to ask again where that is not why; 0: it
// asked for none.
func (f *admitting) wait(a *admission) time.Duration {
	if !a.Claim {
		return 0
	}
	if wait := f.held[a.key()]; wait > 0 {
		return min(max(wait, waitMin), time.Second) // a budget that was locked may be free again long before
	}
	if !f.short[a.key()] {
		return pausePoll // paused, or to be looked up first
	}
	left, there := f.budgets[a.Account]
	if !there {
		return waitMin
	}
	return left.wait(a.Lane, 0)
}

// noteBudgets remembers, after the commit, which accounts had no room for a request, so that flushes leave their budgets alone until there can be
// some; and that a row is gone which was there.
func (s *Store) noteBudgets(f *admitting) {
	if len(f.paying) == 0 {
		return
	}
	for _, a := range f.paying {
		if _, there := f.budgets[a]; !there {
			s.budgets.forget(a)
		}
	}
	now := s.wall()
	for k, a := range f.first {
		if f.fresh[k] && f.asks(a) && f.short[k] {
			s.budgets.ranOut(a.Account, a.Lane, now.Add(min(f.wait(a), lockedPause)))
		}
	}
}

// lockedPause is for how long new requests are stored without tokens after a flush has waited in vain for a lock.
const lockedPause = 10 * time.Second

// noteLocked remembers, after a flush that waited too long for a lock, that its budgets may be what somebody keeps locked: without them the requests
// can be stored, and Take gives their tickets out.
func (s *Store) noteLocked(f *admitting, err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != lockNotAvailable {
		return
	}
	until := s.wall().Add(lockedPause)
	for _, a := range f.paying {
		s.budgets.ranOut(a, payments.LaneInteractive, until)
		s.budgets.ranOut(a, payments.LaneBulk, until)
	}
}
