package stripesim

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Limits are the simulator's pace. The zero value is unlimited and immediate.
// Rate and concurrency are counted per account.
type Limits struct {
	RPS         float64 `json:"rps"`           // requests a second; 0 is unlimited
	Burst       int     `json:"burst"`         // requests at once; 0 is one second's worth
	LatencyMS   int     `json:"latency_ms"`    // between validation and execution
	MaxInFlight int     `json:"max_in_flight"` // unanswered requests; 0 is unlimited
}

func (l Limits) check() error {
	switch {
	case math.IsNaN(l.RPS) || math.IsInf(l.RPS, 0) || l.RPS < 0:
		return fmt.Errorf("rps is %v: use 0 (unlimited) or a positive number", l.RPS)
	case l.Burst < 0:
		return fmt.Errorf("burst is %d: it may not be negative", l.Burst)
	case l.LatencyMS < 0 || l.LatencyMS > int(maxLatency/time.Millisecond):
		return fmt.Errorf("latency_ms is %d: use 0 to %d", l.LatencyMS, maxLatency/time.Millisecond)
	case l.MaxInFlight < 0:
		return fmt.Errorf("max_in_flight is %d: use 0 (unlimited) or more", l.MaxInFlight)
	}
	return nil
}

// limiter is an account's token bucket and count of requests in flight.
type limiter struct {
	mu       sync.Mutex
	limits   *Limits // those that tokens were counted under
	tokens   float64
	last     time.Time
	inFlight int
}

// enter admits a request, or names the limit it met. Each admitted request
// must leave.
func (l *limiter) enter(limits *Limits, now time.Time) (reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limits.MaxInFlight > 0 && l.inFlight >= limits.MaxInFlight {
		return "global-concurrency"
	}
	if limits.RPS > 0 {
		burst := float64(limits.Burst)
		if burst == 0 {
			burst = math.Max(1, math.Ceil(limits.RPS))
		}
		if l.limits != limits {
			l.limits, l.tokens, l.last = limits, burst, now
		}
		if passed := now.Sub(l.last).Seconds(); passed > 0 {
			l.tokens = math.Min(burst, l.tokens+passed*limits.RPS)
			l.last = now
		}
		if l.tokens < 1 {
			return "global-rate"
		}
		l.tokens--
	}
	l.inFlight++
	return ""
}

func (l *limiter) leave() {
	l.mu.Lock()
	l.inFlight--
	l.mu.Unlock()
}
