package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// journal notes in which order things happened, and when.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// actor runs until it is told to stop, and takes so long to do so.
func (j *journal) actor(name string, takes time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		j.note(name + " stopping")
		time.Sleep(takes)
		j.note(name + " stopped")
		return nil
	}
}

func TestGroupDrainsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, g := &journal{}, newGroup(quiet())
		g.exit = func(int) { t.Error("the watchdog ended a process that stopped in time") }
		g.add("readiness", time.Second, j.actor("readiness", 0))
		g.add("http", 3*time.Second, j.actor("http", 2*time.Second))
		g.add("worker", time.Minute, j.actor("worker", 50*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		started := time.Now()
		time.AfterFunc(time.Hour, cancel)
		if err := g.serve(ctx); err != nil {
			t.Errorf("serve: %v", err)
		}
		want := []string{"readiness stopping", "readiness stopped", "http stopping", "http stopped", "worker stopping", "worker stopped"}
		if !slices.Equal(j.lines, want) || time.Since(started) != time.Hour+52*time.Second {
			t.Errorf("%q after %s", j.lines, time.Since(started))
		}
	})
}

// TestGroupGoesOnPastASlowPart: one that overruns its budget holds up the next only for that long.
func TestGroupGoesOnPastASlowPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j, g := &journal{}, newGroup(slog.New(slog.NewJSONHandler(&log, nil)))
		g.exit = func(int) { t.Error("the watchdog came too early") }
		g.add("slow", 2*time.Second, j.actor("slow", 4*time.Second))
		g.add("next", 10*time.Second, j.actor("next", 0))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.serve(ctx); err != nil {
			t.Errorf("serve: %v", err)
		}
		if want := []string{"slow stopping", "next stopping", "next stopped", "slow stopped"}; !slices.Equal(j.lines, want) {
			t.Errorf("%q", j.lines)
		}
		if !strings.Contains(log.String(), `"part":"slow","budget":"2s"`) {
			t.Errorf("log: %s", log.String())
		}
	})
}

// TestGroupWatchdog: a part that never stops is named, and the process ends with code 1 at the sum of all budgets and a second.
func TestGroupWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j, g := &journal{}, newGroup(slog.New(slog.NewJSONHandler(&log, nil)))
		release, exited := make(chan struct{}), make(chan int, 1)
		g.exit = func(code int) { exited <- code }
		g.add("readiness", time.Second, j.actor("readiness", 0))
		g.add("worker", 10*time.Second, func(context.Context) error { <-release; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- g.serve(ctx) }()
		synctest.Wait()
		stopped := time.Now()
		cancel()
		if code := <-exited; code != 1 || time.Since(stopped) != 12*time.Second {
			t.Errorf("code %d after %s", code, time.Since(stopped))
		}
		if !strings.Contains(log.String(), `did not stop in time and ends now`) || !strings.Contains(log.String(), `"part":"worker"`) {
			t.Errorf("log: %s", log.String())
		}
		close(release)
		<-served
	})
}

// TestGroupEndsWithItsFirst: a part that fails, or just returns, stops all others, and the process says which it was.
func TestGroupEndsWithItsFirst(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, end := range map[string]error{"worker: broken": broken, "worker ended by itself": nil} {
		synctest.Test(t, func(t *testing.T) {
			j, g := &journal{}, newGroup(quiet())
			g.exit = func(int) { t.Error("the watchdog ended a process that stopped in time") }
			g.add("http", time.Second, j.actor("http", 0))
			g.add("worker", time.Second, func(context.Context) error { time.Sleep(time.Minute); return end })
			started := time.Now()
			if err := g.serve(t.Context()); err == nil || err.Error() != name || end != nil && !errors.Is(err, end) || time.Since(started) != time.Minute {
				t.Errorf("serve: %v after %s, want %s", err, time.Since(started), name)
			}
			if want := []string{"http stopping", "http stopped"}; !slices.Equal(j.lines, want) {
				t.Errorf("%q", j.lines)
			}
		})
	}
}

// TestGroupLogsWhatFailsWhileStopping: the group's own error is that of its first part; the others' must not vanish.
func TestGroupLogsWhatFailsWhileStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := newGroup(slog.New(slog.NewJSONHandler(&log, nil)))
		g.add("relay", time.Second, func(ctx context.Context) error { <-ctx.Done(); return errors.New("two items left") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.serve(ctx); err != nil && err.Error() != "two items left" {
			t.Errorf("serve: %v", err)
		}
		if !strings.Contains(log.String(), `"part":"relay","error":"two items left"`) {
			t.Errorf("log: %s", log.String())
		}
	})
}
