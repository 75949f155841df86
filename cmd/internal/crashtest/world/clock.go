package world

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the system's, ahead by what the test says. Store, workers and simulator of a world share one.
type Clock struct{ ahead atomic.Int64 }

// Now is the system's time, and what it is ahead by.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance puts the clock ahead by d more.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// LogBook keeps what workers log, to be shown when a test fails.
type LogBook struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// Write keeps what there is room for.
func (b *LogBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes.Len() < 64<<10 {
		b.bytes.Write(p)
	}
	return len(p), nil
}

// Text is all that has been logged.
func (b *LogBook) Text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.String()
}

// Logger logs warnings and errors into the book under the worker's name.
func (b *LogBook) Logger(worker string) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn})).With("worker", worker)
}
