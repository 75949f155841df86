package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How long it takes until a request is made again: the first time, and at most.
const (
	backoffFirst = 200 * time.Millisecond
	backoffMax   = 10 * time.Second
)

// Patience decides when a request is made again. Every field is required but Trouble.
type Patience struct {
	Now    func() time.Time
	Random func(n int64) int64 // 0 to n-1
	// Wait returns after d, or with the context's error.
	Wait func(ctx context.Context, d time.Duration) error
	// GiveUp is how long nothing at all may succeed before an error is the caller's.
	GiveUp time.Duration
	// Trouble, when set, is told of every error that is tried again, from any goroutine.
	Trouble func(error)
}

// Pause is a Wait by a timer.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// progress is when something last succeeded, for all who share it.
type progress struct {
	mu   sync.Mutex
	last time.Time
}

func (p *progress) note(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

func (p *progress) since(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.last)
}

// until makes the same attempt until it succeeds, cannot, or nothing has succeeded for too long.
func (p Patience) until(ctx context.Context, lately *progress, attempt func(context.Context) error) error {
	for tries := 0; ; tries++ {
		err := attempt(ctx)
		switch {
		case err == nil:
			lately.note(p.Now())
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case permanent(err):
			return err
		}
		if away := lately.since(p.Now()); away >= p.GiveUp {
			return fmt.Errorf("nothing was accepted for %s, at last because: %w", away.Round(time.Second), err)
		}
		if p.Trouble != nil {
			p.Trouble(err)
		}
		if err := p.Wait(ctx, p.delay(tries, err)); err != nil {
			return err
		}
	}
}

// delay is what the server asks for and up to a quarter more, or else a random part of what doubles with each try: many that failed together shall
// not come back together.
func (p Patience) delay(tries int, err error) time.Duration {
	var problem *ProblemError
	if errors.As(err, &problem) && problem.RetryAfter > 0 {
		return problem.RetryAfter + time.Duration(p.Random(int64(problem.RetryAfter/4)+1))
	}
	longest := min(backoffFirst<<min(tries, 10), backoffMax)
	return longest/2 + time.Duration(p.Random(int64(longest/2)+1))
}
