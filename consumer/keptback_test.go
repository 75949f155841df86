package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// waking counts how often it is asked to wake what is kept back.
type waking struct {
	payments.FollowUps
	asked atomic.Int64
	away  atomic.Bool
}

func (f *waking) WakeKeptBack(context.Context) (int, error) {
	f.asked.Add(1)
	if f.away.Load() {
		return 0, errAway
	}
	return 1, nil
}

// TestKeptBackIsLookedFor: about once a minute, whatever that comes to, and never while this process is held.
func TestKeptBackIsLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		f := &waking{}
		r := newRig(t, func(c *Config) {
			c.Processor.FollowUps = f
			c.Held = func() string {
				if held.Load() {
					return "a rewind is running"
				}
				return ""
			}
		})
		ctx, cancel := context.WithCancel(context.Background())
		var loop sync.WaitGroup
		loop.Go(func() { r.wakeKeptBack(ctx) })
		defer func() { cancel(); loop.Wait() }()
		pass := func(what string, least, most int64) {
			t.Helper()
			before := f.asked.Load()
			time.Sleep(10 * keptBackEvery)
			synctest.Wait()
			if n := f.asked.Load() - before; n < least || n > most {
				t.Errorf("%s: asked %d times in ten minutes", what, n)
			}
		}
		pass("woken", 6, 20)
		f.away.Store(true)
		pass("the database is away", 6, 20)
		held.Store(true)
		pass("held", 0, 0)
	})
}
