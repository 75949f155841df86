package crashtest

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// clock is the system's, ahead by what the test says. Store, workers and simulator of a world share one.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// logBook keeps what workers log, to be shown when a test fails.
type logBook struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes.Len() < 64<<10 {
		b.bytes.Write(p)
	}
	return len(p), nil
}

func (b *logBook) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.String()
}

func (b *logBook) logger(worker string) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn})).With("worker", worker)
}
