package ingress

import (
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ratesMax bounds the API keys that are counted. Only keys that are good get here.
const ratesMax = 100_000

// rates counts the requests of each API key in this process.
type rates struct {
	rate  rate.Limit // 0: unlimited
	burst int

	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

func newRates(perSecond float64, burst int) *rates {
	if burst == 0 {
		burst = max(1, int(min(math.Ceil(perSecond), math.MaxInt32)))
	}
	return &rates{rate: rate.Limit(perSecond), burst: burst, byKey: map[string]*rate.Limiter{}}
}

// admit lets a request of the key through, or says when one will be.
func (r *rates) admit(keyID string, now time.Time) (wait time.Duration, ok bool) {
	if r.rate == 0 {
		return 0, true
	}
	reservation := r.of(keyID, now).ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait == 0 {
		return 0, true
	}
	reservation.CancelAt(now)
	return wait, false
}

func (r *rates) of(keyID string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.byKey[keyID]
	if l == nil {
		if len(r.byKey) >= ratesMax { // who has not asked for a while begins anew with the same burst
			maps.DeleteFunc(r.byKey, func(_ string, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(r.burst) })
		}
		l = rate.NewLimiter(r.rate, r.burst)
		r.byKey[keyID] = l
	}
	return l
}
