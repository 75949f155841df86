package mark

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Store is what a Keeper needs of the database.
type Store interface {
	// Mark reads what the database says of itself.
	Mark(ctx context.Context) (payments.MarkState, error)
	// CountMark counts its mark up, unless somebody has within the last second, or it stands lower than atLeast.
	CountMark(ctx context.Context, atLeast int64, floors map[string]payments.StreamFloor) (counter int64, at time.Time, counted bool, err error)
	// BeginRewind makes a job that reads everything again from a time on, unless there is one.
	BeginRewind(ctx context.Context, since time.Time, op payments.Operation) (r payments.Rewind, began bool, err error)
}

// Actor is who does what this package does by itself.
const Actor = "oncepay"

// Config is what a Keeper needs.
type Config struct {
	Store Store
	Copy  *Copy
	Gate  *Gate
	// Floors tells up to which message of each stream everything is in the database.
	Floors func(ctx context.Context) (map[string]payments.StreamFloor, error)
	// Every is the time between two looks; default 1 s.
	Every time.Duration
	Log   *slog.Logger
}

// Keeper counts the mark up while this process works, and opens and closes the gate.
type Keeper struct {
	Config
	worked atomic.Bool
}

// NewKeeper returns a Keeper; Run starts it.
func NewKeeper(c Config) *Keeper {
	if c.Every <= 0 {
		c.Every = time.Second
	}
	c.Gate.Use(c.Copy)
	return &Keeper{Config: c}
}

// Worked notes that this process has taken something up, or recorded something.
func (k *Keeper) Worked() { k.worked.Store(true) }

// askTimeout bounds one look at everything.
const askTimeout = 10 * time.Second

// Run looks every second until ctx ends, and then once more: what was done on the way to the end is marked, too.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(k.Every)
	defer ticker.Stop()
	failed := false
	for {
		err := k.Look(ctx)
		if told := err != nil; told != failed && ctx.Err() == nil {
			if failed = told; failed {
				k.Log.Warn("the database's mark could not be compared, or not be written; it is tried again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
			defer cancel()
			_ = k.Look(last)
			return nil
		case <-ticker.C:
		}
	}
}

// Look compares once, and counts the mark up if this process has worked since the last time and everything fits.
func (k *Keeper) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	worked := k.worked.Swap(false) // before the floors are read: what is done from here on is for the next time
	closes := k.Gate.closes()
	known, certain := k.Gate.newest(ctx)
	database, err := k.Store.Mark(ctx)
	if err != nil {
		k.back(worked)
		return err // nothing can be sent without the database, and the next connection is compared
	}
	if !certain && known == nil {
		k.back(worked)
		return errors.New("the copy of the mark in NATS cannot be read")
	}
	v := k.Gate.compare(ctx, database, known)
	if v == payments.MarkPromoted && database.Rewind == 0 {
		if err := k.promoted(ctx, database, known); err != nil {
			k.Gate.set(v.Explain())
			return err
		}
	}
	switch {
	case database.Rewind != 0:
		k.Gate.set(rewinding)
	case v.Holds():
		k.Gate.set(v.Explain())
	case k.Gate.open(closes):
		if known != nil && database.Counted { // also what others have counted and could not copy, while NATS is away
			seen := database.Mark
			seen.Accepted = known.Accepted
			k.Gate.remember(seen)
		}
		if worked || v == payments.MarkBegins {
			return k.count(ctx, database, known)
		}
		return nil
	}
	k.back(worked)
	return nil
}

// back notes again what was not marked.
func (k *Keeper) back(worked bool) {
	if worked {
		k.worked.Store(true)
	}
}

// promoted rewinds the last moments by itself. A mark that lies ahead was written by another primary's clock.
func (k *Keeper) promoted(ctx context.Context, database payments.MarkState, known *payments.Mark) error {
	since := known.At
	if database.At.Before(since) {
		since = database.At
	}
	if database.Now.Before(since) {
		since = database.Now
	}
	r, began, err := k.Store.BeginRewind(ctx, since.Add(-payments.RewindMargin), payments.Operation{Actor: Actor, Reason: "PostgreSQL has begun a new timeline"})
	if began {
		k.Log.Warn("PostgreSQL has begun a new timeline; the last moments are rewound", "rewind", r.ID, "since", r.Since)
	}
	return err
}

// count marks the database, and then the copy.
func (k *Keeper) count(ctx context.Context, database payments.MarkState, known *payments.Mark) error {
	var atLeast int64
	if database.Counted {
		atLeast = database.Counter
	}
	floors, err := k.Floors(ctx)
	if err != nil {
		floors = database.Floors // older ones are as true
	}
	if known == nil {
		// The copy comes first, so that a process that dies in between leaves no database that has been marked without one.
		if known, err = k.Copy.Put(ctx, payments.Mark{SystemID: database.SystemID, Timeline: database.Timeline, At: database.Now}); err != nil {
			k.back(true)
			return err
		}
	}
	counter, at, counted, err := k.Store.CountMark(ctx, atLeast, floors)
	if err != nil {
		k.back(true)
		return err
	}
	if !counted { // somebody else has; he writes the copy, too
		k.back(true)
		return nil
	}
	m := payments.Mark{SystemID: database.SystemID, Timeline: database.Timeline, Counter: counter, At: at}
	if known != nil {
		m.Accepted = known.Accepted
	}
	k.Gate.remember(m)
	if _, err = k.Copy.Put(ctx, m); err != nil {
		k.back(true) // the copy must not stay behind until somebody works again
	}
	return err
}
