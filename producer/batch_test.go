package producer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
)

const full = "maximum bytes exceeded"

// TestWhatAStreamSaysToABatch has one line for each answer: what is sent then, and
// what is said of the messages in the end.
func TestWhatAStreamSaysToABatch(t *testing.T) {
	t.Parallel()
	const n = 30
	always := func(v verdict) func(int, []*nats.Msg) verdict {
		return func(int, []*nats.Msg) verdict { return v }
	}
	times := func(k int, v verdict) func(int, []*nats.Msg) verdict {
		return func(i int, _ []*nats.Msg) verdict {
			if i <= k {
				return v
			}
			return verdict{}
		}
	}
	cases := map[string]struct {
		commit         func(int, []*nats.Msg) verdict
		single         func(int, *nats.Msg) verdict
		want           producer.Outcome
		kind           error
		commits, plain int
		copies         int  // in the stream
		silence        bool // something is never answered
	}{
		"stored":                               {want: producer.Stored, commits: 1, copies: n},
		"incomplete once":                      {commit: times(1, verdict{code: 10176}), want: producer.Stored, commits: 2, copies: n},
		"incomplete twice":                     {commit: always(verdict{code: 10176}), want: producer.Stored, commits: 2, plain: n, copies: n},
		"too many open for a while":            {commit: times(3, verdict{code: 10210}), want: producer.Stored, commits: 4, copies: n},
		"too many open":                        {commit: always(verdict{code: 10210}), want: producer.Stored, commits: 5, plain: n, copies: n},
		"overloaded for a while":               {commit: times(2, verdict{code: 10167}), want: producer.Stored, commits: 3, copies: n},
		"a repeat that is none of ours":        {commit: always(verdict{code: 10201}), want: producer.Stored, commits: 1, plain: n, copies: n},
		"takes no batches":                     {commit: always(verdict{code: 10174}), want: producer.Stored, commits: 1, plain: n, copies: n},
		"takes small batches":                  {commit: times(1, verdict{code: 10199}), want: producer.Stored, commits: 1, plain: n, copies: n},
		"full":                                 {commit: always(verdict{code: 10077, text: full}), single: refuseAll(10077, full), want: producer.NotStored, kind: producer.ErrStreamFull, commits: 1, plain: n},
		"full but for single messages":         {commit: always(verdict{code: 10077, text: full}), want: producer.Stored, commits: 1, plain: n, copies: n},
		"out of resources":                     {commit: always(verdict{code: 10023}), single: refuseAll(10023, ""), want: producer.NotStored, commits: 1, plain: n},
		"a write that failed":                  {commit: always(verdict{code: 10077, text: "no space left on device"}), want: producer.Unknown, kind: producer.ErrNotAcknowledged, commits: 1},
		"what nobody knows":                    {commit: always(verdict{code: 10999}), want: producer.Unknown, kind: producer.ErrNotAcknowledged, commits: 1},
		"stored, and the answer lost":          {commit: afterLoss(verdict{silent: true}, verdict{code: 10201}), want: producer.Stored, commits: 2, copies: n, silence: true},
		"stored, and the answer garbled":       {commit: afterLoss(verdict{raw: "{"}, verdict{code: 10201}), want: producer.Stored, commits: 2, copies: n},
		"not stored, and no answer":            {commit: afterLoss(verdict{silent: true, drop: true}, verdict{}), want: producer.Stored, commits: 2, copies: n, silence: true},
		"no answer, then full":                 {commit: afterLoss(verdict{silent: true, drop: true}, verdict{code: 10077, text: full}), single: refuseAll(10077, full), want: producer.Unknown, kind: producer.ErrNotAcknowledged, commits: 2, plain: n, silence: true},
		"stored, no answer, incomplete":        {commit: afterLoss(verdict{silent: true}, verdict{code: 10176}), want: producer.Stored, commits: 3, plain: n, copies: 2 * n, silence: true},
		"stored in part, then a repeat":        {commit: afterLoss(verdict{silent: true, part: 7}, verdict{code: 10201}), want: producer.Unknown, kind: producer.ErrNotAcknowledged, commits: 4, copies: 7, silence: true},
		"never an answer":                      {commit: always(verdict{silent: true, drop: true}), want: producer.Unknown, kind: producer.ErrNotAcknowledged, commits: 2, silence: true},
		"an acknowledgement of another batch":  {commit: afterLoss(verdict{raw: `{"stream":"X","seq":30,"batch":"other","count":30}`}, verdict{code: 10201}), want: producer.Stored, commits: 2, copies: n},
		"an acknowledgement without its count": {commit: afterLoss(verdict{raw: `{"stream":"X","seq":30}`}, verdict{code: 10201}), want: producer.Stored, commits: 2, copies: n},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t)
			s.onCommit, s.onPlain = one.commit, one.single
			opts := producer.Options{AckTimeout: patience}
			if one.silence {
				opts.AckTimeout = 6 * time.Second // an attempt has half of it
			}
			p := s.publisher(opts)
			messages := charges("k", n, payments.LaneInteractive)
			results := p.PublishAll(testContext(t), messages)
			s.holds(messages, results)
			for i, r := range results {
				if r.Outcome != one.want || one.kind != nil && !errors.Is(r.Err, one.kind) {
					t.Fatalf("message %d: %v, %v; want %v, %v", i, r.Outcome, r.Err, one.want, one.kind)
				}
				if one.want == producer.Unknown && errors.Is(r.Err, producer.ErrStreamFull) {
					t.Fatalf("%v passes for a proof", r.Err)
				}
			}
			if commits, plain, stored := s.counts(); commits != one.commits || plain != one.plain || stored != one.copies {
				t.Errorf("%d commits, %d single messages, %d stored; want %d, %d, %d", commits, plain, stored, one.commits, one.plain, one.copies)
			}
		})
	}
}

func refuseAll(code int, text string) func(int, *nats.Msg) verdict {
	return func(int, *nats.Msg) verdict { return verdict{code: code, text: text} }
}

// afterLoss answers the first commit so, and all others otherwise.
func afterLoss(first, then verdict) func(int, []*nats.Msg) verdict {
	return func(i int, _ []*nats.Msg) verdict {
		if i == 1 {
			return first
		}
		return then
	}
}

// TestARepeatThatTheStreamForgot: the window has closed between the refusal and the
// question where the batch stands. It is sent again, and that copy counts.
func TestARepeatThatTheStreamForgot(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	ids := map[string]bool{}
	s.onCommit = func(i int, batch []*nats.Msg) verdict {
		ids[batch[0].Header.Get(schema.HeaderMsgID)] = true
		switch i {
		case 1:
			return verdict{silent: true}
		case 2:
			s.forget()
			return verdict{code: 10201}
		}
		return verdict{}
	}
	messages := charges("k", 25, payments.LaneInteractive)
	results := s.publisher(producer.Options{AckTimeout: 6 * time.Second}).PublishAll(testContext(t), messages)
	s.holds(messages, results)
	if results[0].Outcome != producer.Stored || results[0].Sequence != 26 || len(ids) != 2 {
		t.Errorf("%+v under %d ids; want the second copy, under an id of its own", results[0], len(ids))
	}
}

// TestIDsOfABatch: one id for a batch, on its first message and derived from it on
// its last, the same when it is sent again, another for the next batch, and none on
// messages that leave singly: there it would hide one message behind another.
func TestIDsOfABatch(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	var seen [][2]string
	s.onCommit = func(i int, batch []*nats.Msg) verdict {
		last := len(batch) - 1
		for k, m := range batch {
			if got := m.Header.Get(schema.HeaderMsgID); (got != "") != (k == 0 || k == last) {
				t.Errorf("message %d of %d has the id %q", k, len(batch), got)
			}
		}
		seen = append(seen, [2]string{batch[0].Header.Get(schema.HeaderMsgID), batch[last].Header.Get(schema.HeaderMsgID)})
		if i == 1 {
			return verdict{code: 10176}
		}
		if i == 3 {
			return verdict{code: 10077, text: full}
		}
		return verdict{}
	}
	s.onPlain = func(_ int, m *nats.Msg) verdict {
		for name := range m.Header {
			if name != jetstream.ExpectedStreamHeader {
				t.Errorf("a single message has the header %s", name)
			}
		}
		return verdict{}
	}
	p := s.publisher(producer.Options{})
	for i := range 2 {
		messages := charges(fmt.Sprint(i), 25, payments.LaneInteractive)
		s.holds(messages, p.PublishAll(testContext(t), messages))
	}
	if len(seen) != 3 || seen[0] != seen[1] || seen[2][0] == seen[0][0] || seen[0][1] == seen[0][0] || len(seen[0][0]) < 22 {
		t.Errorf("ids %q", seen)
	}
}

// TestBatchesRestWhereTheyAreRefused: a stream that is crowded or full is not asked
// for a batch again by the very next group.
func TestBatchesRestWhereTheyAreRefused(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]verdict{"crowded": {code: 10210}, "disabled": {code: 10174}, "full": {code: 10077, text: full}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t)
			refuse := true
			s.onCommit = func(int, []*nats.Msg) verdict {
				if refuse {
					return v
				}
				return verdict{}
			}
			s.onPlain = func(int, *nats.Msg) verdict {
				if refuse && name == "full" {
					return v
				}
				return verdict{}
			}
			p := s.publisher(producer.Options{})
			publish := func() (commits int) {
				before, _, _ := s.counts()
				messages := charges("k", 25, payments.LaneInteractive)
				results := p.PublishAll(testContext(t), messages)
				if refuse && name == "full" {
					wantNotStored(t, results[24], true, "full")
				} else {
					s.holds(messages, results)
				}
				after, _, _ := s.counts()
				return after - before
			}
			if n := publish(); n == 0 {
				t.Fatal("no batch was tried at first")
			}
			if n := publish(); n != 0 {
				t.Errorf("the next group tried %d times to be a batch", n)
			}
			s.mu.Lock()
			refuse = false
			s.mu.Unlock()
			if name == "full" && publish() != 0 {
				t.Error("a batch was tried before a message found room")
			}
			if n := publish(); (n == 0) != (name == "disabled") {
				t.Errorf("then %d batches were tried", n)
			}
		})
	}
}

// TestBatchesRestLongerAndLonger where too many are open: every try costs a pause.
func TestBatchesRestLongerAndLonger(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.onCommit = func(int, []*nats.Msg) verdict { return verdict{code: 10210} }
	p := s.publisher(producer.Options{})
	var tried []int
	before := 0
	for i := range 10 {
		messages := charges(fmt.Sprint(i), 25, payments.LaneInteractive)
		results := p.PublishAll(testContext(t), messages)
		s.holds(messages, results)
		if commits, _, _ := s.counts(); commits != before {
			before, tried = commits, append(tried, i)
		}
	}
	if fmt.Sprint(tried) != "[0 2 5]" {
		t.Errorf("batches were tried by the groups %v", tried)
	}
}

// TestADuplicateAcceptsNothing: to a message without an id of ours JetStream does
// not say so; whoever does has not stored it.
func TestADuplicateAcceptsNothing(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.onPlain = func(int, *nats.Msg) verdict {
		return verdict{drop: true, raw: fmt.Sprintf(`{"stream":%q,"seq":7,"duplicate":true}`, s.fixture.subjects.StreamIntents())}
	}
	r, err := s.publisher(producer.Options{}).Publish(testContext(t), charge("acme", "k", 100))
	wantUnknown(t, r)
	if !errors.Is(err, producer.ErrNotAcknowledged) || r.Sequence != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestALateAnswerSettlesNothing: what the stream says of a message whose caller was
// told that nobody knows does not become the answer to the next one.
func TestALateAnswerSettlesNothing(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	var late *nats.Msg
	s.onPlain = func(n int, m *nats.Msg) verdict {
		if n == 1 {
			late = m
			return verdict{silent: true, drop: true}
		}
		s.reply(late, verdict{code: 10077, text: full}, "")
		return verdict{}
	}
	p := s.publisher(producer.Options{AckTimeout: 3 * time.Second})
	r, _ := p.Publish(testContext(t), charge("acme", "first", 100))
	wantUnknown(t, r)
	if r, err := p.Publish(testContext(t), charge("acme", "second", 100)); err != nil || r.Sequence != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStreamsThatSayAnything runs random scripts: whatever a stream does and says,
// results and stream agree.
func TestStreamsThatSayAnything(t *testing.T) {
	t.Parallel()
	batches := []verdict{
		{}, {}, {}, {silent: true}, {silent: true, drop: true}, {silent: true, part: 5}, {raw: "nonsense"}, {raw: "nonsense", drop: true},
		{code: 10176}, {code: 10210}, {code: 10201}, {code: 10199}, {code: 10077, text: full}, {code: 10077, text: "store is closed"}, {code: 10158},
	}
	singles := []verdict{{}, {}, {}, {}, {}, {}, {}, {silent: true}, {silent: true, drop: true}, {code: 10077, text: full}, {code: 10500}, {raw: "?"}, {raw: `{"stream":"","seq":1}`}}
	counts := map[producer.Outcome]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for seed := range uint64(24) {
		all.Go(func() {
			s := newScripted(t)
			rng := rand.New(rand.NewPCG(seed, 7))
			s.onCommit = func(int, []*nats.Msg) verdict {
				if rng.IntN(5) == 0 {
					s.forget()
				}
				return batches[rng.IntN(len(batches))]
			}
			s.onPlain = func(int, *nats.Msg) verdict {
				if rng.IntN(10) > 0 {
					return verdict{}
				}
				return singles[rng.IntN(len(singles))]
			}
			p := s.publisher(producer.Options{AckTimeout: 3 * time.Second})
			var messages []producer.Message
			var results []producer.Result
			for round := range 6 {
				some := charges(fmt.Sprint(round), 1+rand.New(rand.NewPCG(seed, uint64(round))).IntN(90), payments.LaneInteractive)
				messages = append(messages, some...)
				results = append(results, p.PublishAll(testContext(t), some)...)
			}
			s.holds(messages, results)
			mu.Lock()
			defer mu.Unlock()
			for outcome, n := range outcomes(results) {
				counts[outcome] += n
			}
		})
	}
	all.Wait()
	t.Logf("outcomes: %v", counts)
	if counts[producer.Stored] == 0 || counts[producer.Unknown] == 0 {
		t.Errorf("%v: the scripts show nothing", counts)
	}
}
