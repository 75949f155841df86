package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateAloneMeansAlone(t *testing.T) {
	t.Parallel()
	var g gate
	var inside, alone atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			for round := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+round)%5 == 0 {
					go cancel()
				}
				if i%8 != 0 {
					if g.enter(ctx, 2) {
						inside.Add(2)
						if alone.Load() != 0 {
							t.Error("beside one that is alone")
						}
						inside.Add(-2)
						g.leave(1)
						g.leave(1)
					}
					cancel()
					continue
				}
				w := g.queueAlone()
				select {
				case <-w.open:
					if alone.Add(1) != 1 || inside.Load() != 0 {
						t.Error("not alone")
					}
					alone.Add(-1)
					g.leaveAlone()
				case <-ctx.Done():
					g.giveUp(w)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if g.inside != 0 || g.closed || len(g.many) != 0 || len(g.alone) != 0 {
		t.Errorf("left over: inside %d, closed %v, %d and %d waiting", g.inside, g.closed, len(g.many), len(g.alone))
	}
}

// One alone follows another within a stint; then those who waited meanwhile come before the next one: neither side starves.
func TestGateTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx, stop := context.WithCancel(context.Background())
		g.enter(ctx, 1)
		first, follower, second := g.queueAlone(), g.queueAlone(), g.queueAlone()
		entered := make(chan bool, 2)
		go func() { entered <- g.enter(ctx, 1) }()
		synctest.Wait()
		isOpen := func(w *gateWaiter) bool {
			select {
			case <-w.open:
				return true
			default:
				return false
			}
		}
		if isOpen(first) || len(entered) != 0 {
			t.Fatal("somebody passed")
		}
		g.leave(1)
		synctest.Wait()
		if !isOpen(first) || isOpen(follower) || len(entered) != 0 {
			t.Fatal("the first is not alone")
		}
		time.Sleep(aloneStint - time.Millisecond)
		g.leaveAlone()
		synctest.Wait()
		if !isOpen(follower) || isOpen(second) || len(entered) != 0 {
			t.Fatal("within a stint the next one does not follow alone")
		}
		time.Sleep(time.Millisecond)
		g.leaveAlone()
		synctest.Wait()
		if isOpen(second) || len(entered) != 1 || !<-entered {
			t.Fatal("the one who waited was passed over")
		}
		go func() { entered <- g.enter(ctx, 1) }()
		synctest.Wait()
		g.giveUp(second) // the last one who would be alone: nobody is kept out for it any more
		synctest.Wait()
		if len(entered) != 1 || !<-entered {
			t.Fatal("kept out for nobody")
		}
		third := g.queueAlone()
		go func() { entered <- g.enter(ctx, 1) }()
		synctest.Wait()
		stop()
		if <-entered || isOpen(third) {
			t.Fatal("let in at the end")
		}
		g.leave(2)
		if !isOpen(third) {
			t.Fatal("the gate is stuck")
		}
		g.giveUp(third) // although it is inside
		if g.closed || g.inside != 0 {
			t.Fatal("closed for nobody")
		}
	})
}
