package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Waits for budget.
const (
	// waitMin is the shortest. The bucket holds the tokens of 50 ms: many processes that come for each of them one by one get no more, and at high
	// rates do nothing else.
	waitMin = 20 * time.Millisecond
	// yieldPause is how long bulk waits at least while interactive tickets do.
	yieldPause = 30 * time.Millisecond
	// busyPause is how long a budget is left alone that somebody else had locked, as for a commit.
	busyPause = 5 * time.Millisecond
)

// budget is what an account's bucket held when it was read.
type budget struct {
	tokens, rate     float64
	interactiveWaits bool
}

// room is how many tickets of the lane may be given.
func (b budget) room(lane payments.Lane) int {
	if lane == payments.LaneBulk && b.interactiveWaits {
		return 0
	}
	return int(b.tokens + 1e-9)
}

// wait is the time until a ticket of the lane may be given, once used of the tokens are gone.
func (b budget) wait(lane payments.Lane, used int) time.Duration {
	least := waitMin
	if lane == payments.LaneBulk && b.interactiveWaits {
		least = yieldPause
	}
	return max(least, time.Duration((1-b.tokens+float64(used))/b.rate*float64(time.Second)))
}

// budgets is what a process remembers of its accounts' budgets.
type budgets struct {
	mu        sync.Mutex
	there     map[payments.Account]bool      // the row has been seen
	throttled map[payments.Account]time.Time // when we last said 429
	empty     map[laneAccount]time.Time      // until when there is no room for new requests
	busy      map[payments.Account]time.Time // until when somebody else has it
}

type laneAccount struct {
	account payments.Account
	lane    payments.Lane
}

// held is for how long there is no room for new requests of the lane on the account: a flush need not lock the budget to find none.
func (b *budgets) held(a payments.Account, lane payments.Lane, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.empty[laneAccount{a, lane}].Sub(now); left <= lockedPause {
		return left
	}
	return 0 // noted by a clock that has gone back since
}

// ranOut remembers that there is no room until then.
func (b *budgets) ranOut(a payments.Account, lane payments.Lane, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.empty == nil {
		b.empty = map[laneAccount]time.Time{}
	}
	b.empty[laneAccount{a, lane}] = until
}

// busyUntil remembers that somebody else has the account's budget.
func (b *budgets) busyUntil(a payments.Account, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == nil {
		b.busy = map[payments.Account]time.Time{}
	}
	b.busy[a] = until
}

// withoutBusy takes the tokens out of budgets that somebody else has: they are not asked for now.
func (b *budgets) withoutBusy(due []dueTicket, now time.Time) []dueTicket {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, d := range due {
		if until, noted := b.busy[d.account]; noted && !d.free {
			if left := until.Sub(now); left > 0 && left <= busyPause {
				due[i].budget.tokens = 0
				continue
			}
			delete(b.busy, d.account)
		}
	}
	return due
}

// forget makes the account's row be looked for again.
func (b *budgets) forget(a payments.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.there, a)
}

// unseen lists those of accounts whose rows have not been seen.
func (b *budgets) unseen(accounts []payments.Account) []payments.Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(accounts), func(a payments.Account) bool { return b.there[a] })
}

func (b *budgets) seen(accounts []payments.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there == nil {
		b.there = map[payments.Account]bool{}
	}
	for _, a := range accounts {
		b.there[a] = true
	}
}

// makeBudgets sees to it that the accounts have budgets, in a transaction of its own: none is ever deleted.
func (s *Store) makeBudgets(ctx context.Context, accounts []payments.Account) error {
	missing := s.budgets.unseen(accounts)
	if len(missing) == 0 {
		return nil
	}
	ids, modes := accountArrays(missing)
	if _, err := s.pool.Exec(ctx, query("make_budgets"), ids, modes, s.now(), s.opts.Rate); err != nil {
		return err
	}
	s.budgets.seen(missing)
	return nil
}

// sortedAccounts are the accounts once each, in an order in which makers of the same budgets do not wait in a circle.
func sortedAccounts(accounts []payments.Account) []payments.Account {
	slices.SortFunc(accounts, func(a, b payments.Account) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 || a.Livemode == b.Livemode {
			return c
		}
		if b.Livemode {
			return -1
		}
		return 1
	})
	return slices.Compact(accounts)
}

// accountArrays are the two arrays that statements join budgets on.
func accountArrays(accounts []payments.Account) (ids []string, livemodes []bool) {
	ids, livemodes = make([]string, len(accounts)), make([]bool, len(accounts))
	for i, a := range accounts {
		ids[i], livemodes[i] = a.ID, a.Livemode
	}
	return ids, livemodes
}
