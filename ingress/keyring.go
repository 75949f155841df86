package ingress

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	// keyFor is how long what was read of a key holds, from before it was read: a revocation is effective within a second, the look-up included.
	keyFor = 500 * time.Millisecond
	// keysMax bounds the keys remembered, and apart from them the secrets that belong to none.
	keysMax = 10_000
	// keyReads bounds the look-ups of secrets that nobody has shown to be good: whoever tries secrets must not take the database from the others.
	keyReads   = 8
	keyTimeout = 5 * time.Second
)

// keyring remembers API keys for a moment, by the SHA-256 of their secrets. The secrets are kept nowhere.
type keyring struct {
	keys  payments.Keys
	clock payments.Clock
	reads chan struct{}

	mu      sync.Mutex
	reading map[[sha256.Size]byte]*keyRead
	good    map[[sha256.Size]byte]*keyRead
	bad     map[[sha256.Size]byte]*keyRead
	swept   time.Time
}

// keyRead is one look-up of a secret, shared by all who ask meanwhile and for keyFor after its begin.
type keyRead struct {
	at   time.Time     // before it began; guarded by the keyring
	done chan struct{} // closed when key and err are set
	key  payments.APIKey
	err  error
}

func newKeyring(keys payments.Keys, clock payments.Clock) *keyring {
	k := &keyring{keys: keys, clock: clock, reads: make(chan struct{}, keyReads)}
	k.reading, k.good, k.bad = map[[sha256.Size]byte]*keyRead{}, map[[sha256.Size]byte]*keyRead{}, map[[sha256.Size]byte]*keyRead{}
	return k
}

// find returns the key of the secret. CodeNotFound; CodeUnavailable, which is never remembered.
func (k *keyring) find(ctx context.Context, secret string) (payments.APIKey, error) {
	sum := sha256.Sum256([]byte(secret))
	now := k.clock.Now()
	k.mu.Lock()
	known := k.good[sum]
	r := known
	if r == nil {
		r = k.bad[sum]
	}
	if !r.fresh(now) {
		r = k.reading[sum]
	}
	if r.fresh(now) {
		k.mu.Unlock()
	} else {
		r = &keyRead{at: now, done: make(chan struct{}), err: payments.Errorf(payments.CodeInternal, "the look-up of an API key broke off")}
		k.reading[sum] = r
		k.mu.Unlock()
		k.read(ctx, r, sum, secret, known != nil)
	}
	select {
	case <-r.done: // what is known is not waited for
	default:
		select {
		case <-r.done:
		case <-ctx.Done():
			return payments.APIKey{}, payments.Errorf(payments.CodeUnavailable, "the request ended before its API key was read: %w", ctx.Err())
		}
	}
	if r.err == nil && !r.key.Good(now) {
		return payments.APIKey{}, payments.Errorf(payments.CodeNotFound, "the API key has expired or was revoked")
	}
	return r.key, r.err
}

// fresh reports whether what is read or was read counts now. A clock that was set back makes everything old.
func (r *keyRead) fresh(now time.Time) bool {
	return r != nil && now.Sub(r.at).Abs() <= keyFor
}

// read looks the secret up. Others share it, so that it does not end with the request that happened to begin it.
func (k *keyring) read(ctx context.Context, r *keyRead, sum [sha256.Size]byte, secret string, known bool) {
	defer k.remember(r, sum)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	if !known {
		select {
		case k.reads <- struct{}{}:
			defer func() { <-k.reads }()
		case <-ctx.Done():
			r.err = payments.Errorf(payments.CodeUnavailable, "too many API keys are being looked up")
			return
		}
		now := k.clock.Now()
		k.mu.Lock()
		r.at = now
		k.mu.Unlock()
	}
	r.key, r.err = k.keys.APIKeyBySecret(ctx, secret)
}

// remember keeps what was found out, and lets those who wait go on.
func (k *keyring) remember(r *keyRead, sum [sha256.Size]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(r.done)
	if k.reading[sum] == r {
		delete(k.reading, sum)
	}
	switch payments.ErrorCode(r.err) {
	case "":
		delete(k.bad, sum)
		k.put(k.good, sum, r)
	case payments.CodeNotFound:
		delete(k.good, sum)
		k.put(k.bad, sum, r)
	}
}

// put adds to a bounded map, which forgets what is old when it is full; what finds no room is read again the next time.
func (k *keyring) put(m map[[sha256.Size]byte]*keyRead, sum [sha256.Size]byte, r *keyRead) {
	if old := m[sum]; old != nil && old.at.After(r.at) {
		return // a slower look-up, begun earlier
	}
	if now := k.clock.Now(); len(m) >= keysMax && now.Sub(k.swept).Abs() > keyFor/4 {
		k.swept = now
		maps.DeleteFunc(m, func(_ [sha256.Size]byte, r *keyRead) bool { return !r.fresh(now) })
	}
	if _, there := m[sum]; there || len(m) < keysMax {
		m[sum] = r
	}
}
