package consumer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// fakeAhead is a stream in memory, and how far its consumer is.
type fakeAhead struct {
	mu        sync.Mutex
	created   time.Time
	messages  []fakeStored // in their order; gaps are messages that are gone
	sequence  uint64
	delivered uint64
	away      error // when set, the answer to everything

	asked map[string]int // by kind of question
}

type fakeStored struct {
	sequence uint64
	tenant   string
	subject  string
	data     []byte
}

func newFakeAhead() *fakeAhead {
	return &fakeAhead{created: time.Unix(100, 0), asked: map[string]int{}}
}

func (f *fakeAhead) publish(tenant string, data []byte) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sequence++
	f.messages = append(f.messages, fakeStored{f.sequence, tenant, "payments.intent." + tenant, data})
	return f.sequence
}

// remove is a message that was purged, trimmed or erased.
func (f *fakeAhead) remove(sequence uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = slices.DeleteFunc(f.messages, func(m fakeStored) bool { return m.sequence == sequence })
}

func (f *fakeAhead) deliver(to uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered = to
}

func (f *fakeAhead) setAway(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

func (f *fakeAhead) questions(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[kind]
}

// begin counts a question; the lock is held from here on unless there is no answer.
func (f *fakeAhead) begin(ctx context.Context, kind string) error {
	f.mu.Lock()
	f.asked[kind]++
	if err := errors.Join(f.away, ctx.Err()); err != nil {
		f.mu.Unlock()
		return err
	}
	return nil
}

func (f *fakeAhead) position(ctx context.Context) (position, error) {
	if err := f.begin(ctx, "position"); err != nil {
		return position{}, err
	}
	defer f.mu.Unlock()
	subjects, pending := map[string]bool{}, uint64(0)
	for _, m := range f.messages {
		subjects[m.tenant] = true
		if m.sequence > f.delivered {
			pending++
		}
	}
	return position{created: f.created, last: f.sequence, subjects: uint64(len(subjects)), delivered: f.delivered, pending: pending}, nil
}

func (f *fakeAhead) tenants(ctx context.Context) (map[string]uint64, error) {
	if err := f.begin(ctx, "tenants"); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	counts := map[string]uint64{}
	for _, m := range f.messages {
		counts[m.tenant]++
	}
	return counts, nil
}

func (f *fakeAhead) last(ctx context.Context, tenant string) (last uint64, err error) {
	if err := f.begin(ctx, "last"); err != nil {
		return 0, err
	}
	defer f.mu.Unlock()
	for _, m := range f.messages {
		if m.tenant == tenant {
			last = m.sequence
		}
	}
	return last, nil
}

func (f *fakeAhead) nextLocked(tenant string, from uint64) *jetstream.RawStreamMsg {
	at, _ := slices.BinarySearchFunc(f.messages, from, func(m fakeStored, from uint64) int { return int(m.sequence) - int(from) })
	for _, m := range f.messages[at:] {
		if m.tenant == tenant {
			return &jetstream.RawStreamMsg{Subject: m.subject, Sequence: m.sequence, Data: m.data}
		}
	}
	return nil
}

func (f *fakeAhead) next(ctx context.Context, tenant string, from uint64) (*jetstream.RawStreamMsg, error) {
	if err := f.begin(ctx, "next"); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return f.nextLocked(tenant, from), nil
}

func (f *fakeAhead) read(ctx context.Context, tenant string, from uint64) (aheadReader, error) {
	if err := f.begin(ctx, "read"); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	f.asked["open"]++
	return &fakeReader{f, tenant, from}, nil
}

type fakeReader struct {
	f      *fakeAhead
	tenant string
	from   uint64
}

func (r *fakeReader) more(n int) (list []*jetstream.RawStreamMsg, err error) {
	if err := r.f.begin(context.Background(), "more"); err != nil {
		return nil, err
	}
	defer r.f.mu.Unlock()
	for len(list) < n {
		m := r.f.nextLocked(r.tenant, r.from)
		if m == nil {
			break
		}
		list, r.from = append(list, m), m.Sequence+1
	}
	return list, nil
}

func (r *fakeReader) close(context.Context) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.f.asked["open"]--
}
