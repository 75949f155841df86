package dev

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// place is where a message is stored.
type place struct {
	stream   string
	sequence uint64
}

// book is what the producers know: what was acknowledged to them, and what they were answered that they must not be.
type book struct {
	mu           sync.Mutex
	acknowledged map[int]bool    // by intent
	asked        map[string]*ask // captures, cancels and refunds, by key
	answered     map[string]bool // of them: those that were acknowledged
	batches      map[string]bool
	stored       map[place]*delivery // messages that must or may become dead letters
	attempted    map[[32]byte]int    // messages, by the digest of their body, that may be stored beside those that are acknowledged
	messages     int                 // PubAcks
	requests     int                 // 2xx
	repeats      int                 // of either, for an intent that was acknowledged before
	refused      int                 // as they must be
	unheard      int                 // attempts of which no answer came
	findings     []string
}

func newBook() *book {
	return &book{acknowledged: map[int]bool{}, asked: map[string]*ask{}, answered: map[string]bool{}, batches: map[string]bool{}, stored: map[place]*delivery{}, attempted: map[[32]byte]int{}}
}

const bookFindingsMax = 20

func (b *book) find(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.findings) < bookFindingsMax {
		b.findings = append(b.findings, fmt.Sprintf(format, args...))
	}
}

// accept notes that a delivery was acknowledged.
func (b *book) accept(m *delivery, ack *jetstream.PubAck) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ack != nil {
		b.messages++
		if m.reason != "" {
			b.stored[place{ack.Stream, ack.Sequence}] = m
		}
	} else {
		b.requests++
	}
	if m.ask != nil {
		b.answered[m.key] = true
		return
	}
	again := len(m.intents) > 0
	for _, i := range m.intents {
		again = again && b.acknowledged[i]
		b.acknowledged[i] = true
	}
	if again {
		b.repeats++
	}
	if len(m.intents) > 1 {
		b.batches[m.key] = true
	}
}

// ask notes that something is about to be asked for.
func (b *book) ask(a *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a != nil {
		b.asked[a.Key] = a
	}
}

// knows reports whether an intent was acknowledged.
func (b *book) knows(intent int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acknowledged[intent]
}

// mute notes an attempt of which nothing was heard.
func (b *book) mute(m *delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unheard++
	if m.reason != "" {
		b.attempted[sha256.Sum256(m.body)]++
	}
}

func (b *book) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
}
