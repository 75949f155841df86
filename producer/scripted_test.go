package producer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
)

// verdict is what a scripted stream does with a message or a batch.
type verdict struct {
	drop   bool   // it is not stored
	part   int    // of a batch, only so many are
	code   int    // the error that is answered, 0 for none
	text   string // its description
	silent bool   // nothing is answered
	raw    string // this is answered, whatever it is
}

// scripted stands for a stream where JetStream cannot be made to answer what a test
// is about. It listens on the interactive lane's subjects, keeps the protocol of
// plain messages, repeats and atomic batches, and asks its script what to say.
type scripted struct {
	tb       testing.TB
	fixture  fixture
	nc       *nats.Conn
	gate     chan struct{}                          // where it is set, nothing is answered before it is closed
	onCommit func(n int, batch []*nats.Msg) verdict // n counts from 1
	onPlain  func(n int, m *nats.Msg) verdict

	subscription *nats.Subscription
	held         chan struct{} // told once a message waits at the gate

	mu      sync.Mutex
	open    map[string][]*nats.Msg
	stored  []*nats.Msg // message i stands at sequence i+1
	ids     map[string]uint64
	commits int
	plain   int
}

func newScripted(tb testing.TB) *scripted {
	tb.Helper()
	url := devstacktest.NATS(tb).URL()
	s := &scripted{
		tb: tb, nc: connect(tb, url), open: map[string][]*nats.Msg{}, ids: map[string]uint64{}, held: make(chan struct{}, 1),
		fixture: fixture{url: url, subjects: schema.Subjects{Prefix: devstacktest.Prefix(tb)}},
	}
	s.listen()
	return s
}

func (s *scripted) listen() {
	s.tb.Helper()
	var err error
	if s.subscription, err = s.nc.Subscribe(s.fixture.subjects.Prefix+".intent.*", s.message); err != nil {
		s.tb.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *scripted) publisher(opts producer.Options) *producer.Publisher {
	s.tb.Helper()
	return s.fixture.publisher(s.tb, connect(s.tb, s.fixture.url), opts)
}

func (s *scripted) message(m *nats.Msg) {
	if s.gate != nil {
		select {
		case s.held <- struct{}{}:
		default:
		}
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := m.Header.Get("Nats-Batch-Id")
	if id != "" {
		s.open[id] = append(s.open[id], m)
		if m.Header.Get("Nats-Batch-Commit") == "" {
			if m.Reply != "" {
				s.say(m.Reply, nil)
			}
			return
		}
	}
	if id == "" {
		s.single(m)
		return
	}
	s.commits++
	batch := s.open[id]
	delete(s.open, id)
	v := verdict{}
	if s.onCommit != nil {
		v = s.onCommit(s.commits, batch)
	}
	if !v.drop && v.code == 0 {
		for i, one := range batch {
			if v.part == 0 || i < v.part {
				s.store(one)
			}
		}
	}
	s.reply(m, v, fmt.Sprintf(`{"stream":%q,"seq":%d,"batch":%q,"count":%d}`, s.fixture.subjects.StreamIntents(), len(s.stored), id, len(batch)))
}

func (s *scripted) single(m *nats.Msg) {
	stream := s.fixture.subjects.StreamIntents()
	if seq := s.ids[m.Header.Get(schema.HeaderMsgID)]; seq != 0 {
		s.say(m.Reply, fmt.Appendf(nil, `{"stream":%q,"seq":%d,"duplicate": true}`, stream, seq))
		return
	}
	if m.Header.Get(jetstream.ExpectedLastMsgIDHeader) != "" {
		s.reply(m, verdict{code: 10070, text: "wrong last msg ID: "}, "")
		return
	}
	s.plain++
	v := verdict{}
	if s.onPlain != nil {
		v = s.onPlain(s.plain, m)
	}
	if !v.drop && v.code == 0 {
		s.store(m)
	}
	s.reply(m, v, fmt.Sprintf(`{"stream":%q,"seq":%d}`, stream, len(s.stored)))
}

func (s *scripted) store(m *nats.Msg) {
	s.stored = append(s.stored, m)
	if id := m.Header.Get(schema.HeaderMsgID); id != "" {
		s.ids[id] = uint64(len(s.stored))
	}
}

// forget ends the duplicate window.
func (s *scripted) forget() { clear(s.ids) }

func (s *scripted) reply(m *nats.Msg, v verdict, good string) {
	switch {
	case v.silent:
	case v.raw != "":
		s.say(m.Reply, []byte(v.raw))
	case v.code != 0:
		body, _ := json.Marshal(map[string]any{"stream": s.fixture.subjects.StreamIntents(), "error": map[string]any{"code": 400, "err_code": v.code, "description": v.text}})
		s.say(m.Reply, body)
	default:
		s.say(m.Reply, []byte(good))
	}
}

func (s *scripted) say(to string, body []byte) {
	if err := s.nc.Publish(to, body); err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // which the end of the test closes
		s.tb.Errorf("the script cannot answer: %v", err)
	}
}

// counts returns how often what happened.
func (s *scripted) counts() (commits, plain, stored int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits, s.plain, len(s.stored)
}

// key is the key of a message.
func key(tb testing.TB, m *nats.Msg) string {
	in, err := schema.DecodeIntent(m.Data)
	if err != nil {
		tb.Errorf("not an intent: %v", err)
	}
	return in.IdempotencyKey.Value
}

// holds demands that results and stream agree, message by message: what is said to
// be stored stands at its sequence, and what is said not to be is nowhere.
func (s *scripted) holds(messages []producer.Message, results []producer.Result) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]int{}
	for _, m := range s.stored {
		there[key(s.tb, m)]++
	}
	agree(s.tb, messages, results, there, func(seq uint64) string {
		if seq == 0 || seq > uint64(len(s.stored)) {
			return ""
		}
		return key(s.tb, s.stored[seq-1])
	})
}

// agree compares results with what a stream holds.
func agree(tb testing.TB, messages []producer.Message, results []producer.Result, there map[string]int, at func(seq uint64) string) {
	tb.Helper()
	if len(results) != len(messages) {
		tb.Fatalf("%d results for %d messages", len(results), len(messages))
	}
	for i, r := range results {
		key := messages[i].Intent.IdempotencyKey
		switch {
		case r.Outcome == producer.Stored && (r.Err != nil || at(r.Sequence) != key):
			tb.Errorf("%s is said to be stored as message %d, and there stands %q (%v)", key, r.Sequence, at(r.Sequence), r.Err)
		case r.Outcome == producer.NotStored && (!producer.IsNotStored(r.Err) || there[key] != 0):
			tb.Errorf("%s is said not to be stored, and is there %d times: %v", key, there[key], r.Err)
		case r.Outcome == producer.Unknown && !producer.MayBeStored(r.Err):
			tb.Errorf("%s is unknown: %v", key, r.Err)
		}
		if r.PaymentID != messages[i].Intent.ID() {
			tb.Errorf("%s has the payment id of another", key)
		}
	}
}

// outcomes counts results by outcome.
func outcomes(results []producer.Result) map[producer.Outcome]int {
	out := map[producer.Outcome]int{}
	for _, r := range results {
		out[r.Outcome]++
	}
	return out
}

// charges are n messages whose keys begin with name.
func charges(name string, n int, lane payments.Lane) []producer.Message {
	out := make([]producer.Message, n)
	for i := range out {
		out[i] = charge("acme", fmt.Sprintf("%s-%d", name, i), 100)
		out[i].Lane = lane
	}
	return out
}
