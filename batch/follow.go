package batch

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Totals are the batches of a run together.
type Totals struct {
	Batches  int
	Payments int64
	ByStatus map[string]StatusTotal
	// Complete says that every payment of these batches is there and in a final status.
	Complete bool
}

// StatusTotal is how many payments have one status, and their sums in minor units by currency.
type StatusTotal struct {
	Count  int64            `json:"count"`
	Amount map[string]int64 `json:"amount"`
}

// Add takes another batch into the totals. The zero value has none.
func (t *Totals) Add(b schema.Batch) {
	one := Totals{Batches: 1, Payments: int64(b.Count), Complete: b.Complete, ByStatus: map[string]StatusTotal{}}
	for status, total := range b.ByStatus {
		one.ByStatus[status] = StatusTotal{Count: int64(total.Count), Amount: total.Amount}
	}
	t.join(one)
}

func (t *Totals) join(other Totals) {
	t.Complete = other.Complete && (t.Complete || t.Batches == 0)
	t.Batches += other.Batches
	t.Payments += other.Payments
	if t.ByStatus == nil {
		t.ByStatus = map[string]StatusTotal{}
	}
	for status, total := range other.ByStatus {
		sum := t.ByStatus[status]
		sum.Count += total.Count
		sum.Amount = maps.Clone(sum.Amount)
		if sum.Amount == nil {
			sum.Amount = map[string]int64{}
		}
		for currency, amount := range total.Amount {
			sum.Amount[currency] += amount
		}
		t.ByStatus[status] = sum
	}
}

// Final is how many payments are in a final status.
func (t Totals) Final() int64 { return t.count(payments.Status.Final) }

// NeedPersonStatuses are the statuses of NeedPerson that are there, in the order of the state machine.
func (t Totals) NeedPersonStatuses() (names []string) {
	for _, status := range payments.Statuses() {
		if needsPerson(status) && t.ByStatus[string(status)].Count > 0 {
			names = append(names, string(status))
		}
	}
	return names
}

// Unsuccessful is how many payments have another status than succeeded.
func (t Totals) Unsuccessful() int64 {
	return t.Payments - t.ByStatus[string(payments.StatusSucceeded)].Count
}

// NeedPerson is how many payments wait for somebody to do something: they do not move by themselves.
func (t Totals) NeedPerson() int64 { return t.count(needsPerson) }

// Settled reports whether there is nothing left to wait for.
func (t Totals) Settled() bool { return t.Complete || t.Final()+t.NeedPerson() == t.Payments }

func (t Totals) count(is func(payments.Status) bool) (n int64) {
	for status, total := range t.ByStatus {
		if is(payments.Status(status)) {
			n += total.Count
		}
	}
	return n
}

func needsPerson(s payments.Status) bool {
	return s.Stored() && !s.Final() && !s.HasTicket()
}

// FollowOptions say how.
type FollowOptions struct {
	Patience Patience
	// Progress, when set, is told the totals after each page.
	Progress func(Totals)
	// Batch, when set, is told of each batch that is looked at, by its number in the run, as often as that is.
	Batch func(i int, b schema.Batch)
}

// Bounds of looking: a page is pageBatches batches; a round looks at pages for roundFor and then pauses for pauseFactor times as long as it took, so
// that following a run of any size costs the server little. The first pauses are shorter, for small runs.
const (
	pageBatches = 200
	roundFor    = time.Second
	pauseFactor = 4
	pauseFirst  = 100 * time.Millisecond
	pauseMin    = time.Second
	pauseMax    = 30 * time.Second
)

// Follow looks at the run's batches until every payment has a final status or waits for a person. A page that is complete is not read again; of the
// others a round reads as many as its time allows, the first one and then those whose turn it is. The error is the context's, a door's that
// refuses, or one that says that the run holds batches that are not of this plan; Totals are as last seen.
func Follow(ctx context.Context, plan *Plan, door Door, o FollowOptions) (Totals, error) {
	f := &follower{plan: plan, door: door, o: o, lately: &progress{}, pages: []page{{}}}
	f.lately.note(o.Patience.Now())
	for least := pauseFirst; ; least = min(2*least, pauseMin) {
		began := o.Patience.Now()
		if err := f.round(ctx, began); err != nil {
			return f.totals(), err
		}
		if all := f.totals(); f.known && all.Settled() {
			return all, f.compare(all)
		}
		took := o.Patience.Now().Sub(began)
		if err := o.Patience.Wait(ctx, min(max(pauseFactor*took, least), pauseMax)); err != nil {
			return f.totals(), err
		}
	}
}

type follower struct {
	plan   *Plan
	door   Door
	o      FollowOptions
	lately *progress

	pages []page
	known bool // the last page was reached
	turn  int  // the page that is read next
}

// page is what was last seen of a page.
type page struct {
	cursor string // of the page itself; "" for the first
	totals Totals
}

// round reads the first page that is not complete, and then others in turn: all of them until the last page is known.
func (f *follower) round(ctx context.Context, began time.Time) error {
	seen := map[int]bool{}
	for i := f.open(0, seen); i >= 0; i = f.open(f.turn, seen) {
		if err := f.look(ctx, i); err != nil {
			return err
		}
		if len(seen) > 0 {
			f.turn = i + 1
		}
		seen[i] = true
		if f.known && len(seen) > 1 && f.o.Patience.Now().Sub(began) >= roundFor {
			return nil
		}
	}
	return nil
}

// open is the first page from i on, and from the front again, that is neither complete nor seen; -1 if there is none.
func (f *follower) open(i int, seen map[int]bool) int {
	for n := range f.pages {
		if at := (i + n) % len(f.pages); !f.pages[at].totals.Complete && !seen[at] {
			return at
		}
	}
	return -1
}

// look reads a page.
func (f *follower) look(ctx context.Context, i int) error {
	var list schema.List[schema.Batch]
	err := f.o.Patience.until(ctx, f.lately, func(ctx context.Context) (err error) {
		list, err = f.door.Batches(ctx, f.plan.Run, f.pages[i].cursor, pageBatches)
		return err
	})
	if err != nil {
		return err
	}
	var totals Totals
	for _, b := range list.Data {
		i, ok := f.plan.number(b.IdempotencyKey)
		if !ok {
			return f.plan.foreign(b.IdempotencyKey)
		}
		totals.Add(b)
		if f.o.Batch != nil {
			f.o.Batch(i, b)
		}
	}
	f.pages[i].totals = totals
	if i == len(f.pages)-1 {
		if list.NextCursor != nil && len(list.Data) > 0 {
			f.pages = append(f.pages, page{cursor: *list.NextCursor})
		} else {
			f.known = true
		}
	}
	if f.o.Progress != nil {
		f.o.Progress(f.totals())
	}
	return nil
}

func (f *follower) totals() (all Totals) {
	for _, p := range f.pages {
		if p.totals.Batches > 0 {
			all.join(p.totals)
		}
	}
	return all
}

// compare checks that what was followed is the whole run.
func (f *follower) compare(all Totals) error {
	if all.Batches != f.plan.chunks.n || all.Payments != f.plan.Rows {
		return fmt.Errorf("the API shows %d batches with %d payments of this run, and the file has %d with %d: run the same command again", all.Batches, all.Payments, f.plan.chunks.n, f.plan.Rows)
	}
	return nil
}
