package trim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// model is a stream on a real JetStream, and what its durables are still owed by our own count. An action that does not apply as things stand calls
// rapid's Skip, which draws another in its place; no test is passed over.
type model struct {
	js       jetstream.JetStream
	stream   string
	storage  jetstream.StorageType
	trimmers []*Trimmer
	clock    *clock
	subjects []string         // of each message from sequence 1
	durables map[string]*owed // those that ack explicitly
	first    uint64           // the first sequence after the last trim
	ctx      context.Context
}

// owed is what a durable has to be given, or has and did not ack.
type owed struct {
	filters []string
	all     bool // acks all up to one
	todo    map[uint64]bool
	hand    map[uint64]jetstream.Msg
}

func (o *owed) wants(subject string) bool {
	return len(o.filters) == 0 || slices.Contains(o.filters, subject)
}

// oldest is the first sequence that is owed, or 0.
func (o *owed) oldest() uint64 {
	if len(o.todo) == 0 {
		return 0
	}
	return slices.Min(slices.Collect(maps.Keys(o.todo)))
}

func (m *model) must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (m *model) makeStream(t *rapid.T) {
	_, err := m.js.CreateStream(m.ctx, jetstream.StreamConfig{
		Name: m.stream, Subjects: []string{m.stream + ".*"}, Discard: jetstream.DiscardNew, MaxBytes: mib, Duplicates: 100 * time.Millisecond,
		Storage: m.storage,
	})
	m.must(t, err)
	m.subjects, m.durables, m.first = nil, map[string]*owed{}, 1
}

func (m *model) last() uint64 { return uint64(len(m.subjects)) }

func (m *model) publish(t *rapid.T) {
	subject := m.stream + "." + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "subject")
	body := make([]byte, rapid.SampledFrom([]int{1, 1000, mib / 20}).Draw(t, "size"))
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		ack, err := m.js.Publish(m.ctx, subject, body)
		if err != nil && strings.Contains(err.Error(), "maximum bytes") {
			return
		}
		m.must(t, err)
		m.subjects = append(m.subjects, subject)
		if ack.Sequence != m.last() {
			t.Fatalf("stored as %d, want %d", ack.Sequence, m.last())
		}
		for _, o := range m.durables {
			if o.wants(subject) {
				o.todo[ack.Sequence] = true
			}
		}
	}
}

// makeDurable makes a durable that is not there; about every third of them filters, starts with what is new, or acks all.
func (m *model) makeDurable(t *rapid.T) {
	name := rapid.SampledFrom([]string{work, work, "x", "y"}).Draw(t, "durable")
	if m.durables[name] != nil {
		t.Skip("it is there")
	}
	o := &owed{todo: map[uint64]bool{}, hand: map[uint64]jetstream.Msg{}}
	c := jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour, MaxDeliver: -1, MaxAckPending: 100_000}
	switch rapid.IntRange(0, 8).Draw(t, "filter") {
	case 0, 1:
		o.filters = []string{m.stream + ".a"}
		c.FilterSubject = o.filters[0]
	case 2:
		o.filters = []string{m.stream + ".a", m.stream + ".c"}
		c.FilterSubjects = o.filters
	}
	if o.all = rapid.IntRange(0, 3).Draw(t, "all") == 0; o.all {
		c.AckPolicy = jetstream.AckAllPolicy
	}
	from := m.first
	switch rapid.IntRange(0, 5).Draw(t, "from") {
	case 0:
		c.DeliverPolicy, from = jetstream.DeliverNewPolicy, m.last()+1
	case 1:
		from = rapid.Uint64Range(1, m.last()+1).Draw(t, "sequence")
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from
	}
	_, err := m.js.CreateConsumer(m.ctx, m.stream, c)
	m.must(t, err)
	for sequence := max(from, m.first); sequence <= m.last(); sequence++ {
		if o.wants(m.subjects[sequence-1]) {
			o.todo[sequence] = true
		}
	}
	m.durables[name] = o
}

// makeOthers makes consumers that hold nothing.
func (m *model) makeOthers(t *rapid.T) {
	_, err := m.js.CreateConsumer(m.ctx, m.stream, jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
	m.must(t, err)
	_, err = m.js.CreateOrUpdateConsumer(m.ctx, m.stream, jetstream.ConsumerConfig{Durable: "tail", AckPolicy: jetstream.AckNonePolicy})
	m.must(t, err)
}

func (m *model) some(t *rapid.T) (string, *owed) {
	if len(m.durables) == 0 {
		t.Skip("no durable")
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.durables))).Draw(t, "durable")
	return name, m.durables[name]
}

// read takes messages and acks some of what is in hand, in any order.
func (m *model) read(t *rapid.T) {
	name, o := m.some(t)
	c, err := m.js.Consumer(m.ctx, m.stream, name)
	m.must(t, err)
	batch, err := c.FetchNoWait(rapid.IntRange(1, 30).Draw(t, "messages"))
	m.must(t, err)
	for msg := range batch.Messages() {
		at, err := msg.Metadata()
		m.must(t, err)
		if !o.todo[at.Sequence.Stream] {
			t.Fatalf("%s was given %d, which it is not owed", name, at.Sequence.Stream)
		}
		o.hand[at.Sequence.Stream] = msg
	}
	m.must(t, batch.Error())
	if len(o.hand) == 0 {
		return
	}
	inHand := slices.Sorted(maps.Keys(o.hand))
	acks := rapid.SliceOfNDistinct(rapid.SampledFrom(inHand), 0, len(inHand), rapid.ID[uint64]).Draw(t, "acks")
	if rapid.IntRange(0, 2).Draw(t, "ack all") > 0 {
		acks = inHand
	}
	for _, sequence := range acks {
		m.ack(t, o, sequence)
	}
}

func (m *model) ack(t *rapid.T, o *owed, sequence uint64) {
	msg := o.hand[sequence]
	if msg == nil {
		return
	}
	m.must(t, msg.DoubleAck(m.ctx))
	for _, other := range slices.Collect(maps.Keys(o.hand)) {
		if other == sequence || o.all && other < sequence {
			delete(o.hand, other)
			delete(o.todo, other)
		}
	}
}

func (m *model) deleteDurable(t *rapid.T) {
	name, _ := m.some(t)
	m.must(t, m.js.DeleteConsumer(m.ctx, m.stream, name))
	delete(m.durables, name)
}

// remake makes the stream anew, where it is in memory: of one in files that was deleted a moment ago the server may leave some, which one of the
// same name would begin from.
func (m *model) remake(t *rapid.T) {
	if m.storage == jetstream.FileStorage {
		t.Skip("in files")
	}
	m.must(t, m.js.DeleteStream(m.ctx, m.stream))
	m.makeStream(t)
}

// trim lets one or several trimmers at the stream, when all has aged or only when it is full, and checks both what may not go and what must.
func (m *model) trim(t *rapid.T) {
	aged := rapid.Bool().Draw(t, "aged")
	n := rapid.IntRange(1, len(m.trimmers)).Draw(t, "trimmers")
	if aged {
		m.clock.move(KeepFor + time.Hour)
		defer m.clock.move(-KeepFor - time.Hour)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = m.trimmers[i].RunOnce(m.ctx) })
	}
	all.Wait()
	before := m.first
	state := m.state(t)
	m.first = max(1, state.FirstSeq) // 0 before the first message
	if m.durables[work] == nil && m.first != before {
		t.Fatalf("trimmed from %d to %d without the lane's durable", before, m.first)
	}
	must := uint64(math.MaxUint64) // how far all agree to go
	known := true
	for name, o := range m.durables {
		oldest := o.oldest()
		if oldest > 0 && oldest < m.first {
			t.Fatalf("%s is owed %d, and the stream begins with %d", name, oldest, m.first)
		}
		if oldest > 0 {
			must = min(must, oldest)
			known = known && len(o.filters) == 0 // one with a filter may hold a little more
		}
	}
	wanted := aged || state.Bytes > mib*highPercent/100
	if want := min(must, m.last()); m.durables[work] != nil && known && wanted && n == 1 && m.first < want {
		t.Fatalf("the stream begins with %d and could begin with %d: aged %v, %d bytes: %v", m.first, want, aged, state.Bytes, errs)
	}
	for _, err := range errs {
		if err != nil && (!errors.Is(err, errNoDurable) || m.durables[work] != nil) {
			t.Fatal(err)
		}
	}
}

func (m *model) state(t *rapid.T) jetstream.StreamState {
	s, err := m.js.Stream(m.ctx, m.stream)
	m.must(t, err)
	state := s.CachedInfo().State
	if state.NumDeleted != 0 || state.LastSeq != m.last() {
		t.Fatalf("the stream ends with %d, want %d, and has %d gaps", state.LastSeq, m.last(), state.NumDeleted)
	}
	return state
}

// Whatever is published, read, acked, deleted and made anew, in any order: nothing that a durable is owed is purged, and what nobody is owed goes.
func TestNothingOwedIsEverPurged(t *testing.T) {
	t.Parallel()
	js := connect(t)
	prefix, moved := devstacktest.Prefix(t), &clock{}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		runs++
		m := &model{js: js, stream: strings.ToUpper(fmt.Sprintf("%s_%d", prefix, runs)), clock: moved, ctx: ctx}
		m.storage = rapid.SampledFrom([]jetstream.StorageType{jetstream.FileStorage, jetstream.MemoryStorage}).Draw(rt, "storage")
		m.makeStream(rt)
		defer func() { _ = js.DeleteStream(ctx, m.stream) }()
		for range 3 {
			trimmer, err := New(Config{JetStream: js, Lanes: []Lane{{Stream: m.stream, Durable: work}}, Clock: moved})
			m.must(rt, err)
			trimmer.lanes[0].pace.size = rapid.SampledFrom([]uint64{7, 100, stepMax}).Draw(rt, "step")
			m.trimmers = append(m.trimmers, trimmer)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish":       m.publish,
			"publish more":  m.publish,
			"make durable":  m.makeDurable,
			"make others":   m.makeOthers,
			"read":          m.read,
			"read more":     m.read,
			"read on":       m.read,
			"delete":        m.deleteDurable,
			"remake stream": m.remake,
			"trim":          m.trim,
			"trim again":    m.trim,
			"trim more":     m.trim,
		})
	})
}
