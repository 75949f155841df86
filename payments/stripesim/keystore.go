package stripesim

import (
	"crypto/sha256"
	"sync"
	"time"
)

// keyStore is an account's idempotency keys.
type keyStore struct {
	mu      sync.Mutex
	entries map[string]*keyEntry
}

// keyEntry is one key: in flight until answer is set.
type keyEntry struct {
	print  [sha256.Size]byte
	seq    uint64 // of the request that used the key first
	at     time.Time
	answer *answer
}

// begin claims a key. With a nil entry and a nil error the key store is not
// concerned. claimed means that the caller executes, and must call finish or
// forget; else the entry holds the answer to replay, or err the refusal (with
// the entry it collided with).
func (k *keyStore) begin(key string, print [sha256.Size]byte, seq uint64, now time.Time) (e *keyEntry, claimed bool, err *apiError) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e = k.entries[key]
	switch {
	case e == nil || (e.answer != nil && now.Sub(e.at) >= keyLifetime):
		e = &keyEntry{print: print, seq: seq, at: now}
		k.entries[key] = e
		return e, true, nil
	case e.print != print:
		return e, false, keyMismatch(key)
	case e.answer == nil:
		return e, false, keyInUse(key)
	}
	return e, false, nil
}

// finish stores the answer of a claimed key; later requests replay it.
func (k *keyStore) finish(e *keyEntry, a answer) {
	k.mu.Lock()
	e.answer = &a
	k.mu.Unlock()
}

// forget frees a claimed key: nothing was executed, or nothing is to be known of it.
func (k *keyStore) forget(key string, e *keyEntry) {
	k.mu.Lock()
	if k.entries[key] == e {
		delete(k.entries, key)
	}
	k.mu.Unlock()
}

// restore puts a finished entry back at start.
func (k *keyStore) restore(key string, e *keyEntry) {
	k.mu.Lock()
	k.entries[key] = e
	k.mu.Unlock()
}
