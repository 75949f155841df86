package producer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// once acts on the first chunk that holds the text, after skipping some.
func once(text string, skip int, action devstacktest.Action, before func()) func([]byte) devstacktest.Action {
	var mu sync.Mutex
	return func(chunk []byte) devstacktest.Action {
		mu.Lock()
		defer mu.Unlock()
		if skip < 0 || !bytes.Contains(chunk, []byte(text)) {
			return devstacktest.Forward
		}
		if skip--; skip >= 0 {
			return devstacktest.Forward
		}
		if before != nil {
			before()
		}
		return action
	}
}

// remember makes the duplicate window of a stream so long that no test is too slow for it.
func (f fixture) remember(tb testing.TB, stream string) {
	tb.Helper()
	s, err := f.js.Stream(testContext(tb), stream)
	if err != nil {
		tb.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.Duplicates = time.Minute
	if _, err := f.js.UpdateStream(testContext(tb), config); err != nil {
		tb.Fatal(err)
	}
}

// agree compares results with a lane's stream.
func (f fixture) agree(tb testing.TB, stream string, messages []producer.Message, results []producer.Result) (there map[string]int) {
	tb.Helper()
	there, at := f.keys(tb, stream)
	agree(tb, messages, results, there, func(seq uint64) string { return at[seq] })
	return there
}

// commits counts what was synced to disk: batches, and messages that came singly.
func (f fixture) commits(tb testing.TB, stream string) (batches, single int) {
	tb.Helper()
	ids := map[string]bool{}
	for _, m := range f.stored(tb, stream) {
		if id := m.Header.Get(jetstreamext.BatchIDHeader); id != "" {
			ids[id] = true
		} else {
			single++
		}
	}
	return len(ids), single
}

// TestABatchIsStoredOnceWhereverItIsCut: before its last message it is not stored
// and sent again; after it, it is recognised.
func TestABatchIsStoredOnceWhereverItIsCut(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func([]byte) devstacktest.Action{
		"begin":        once("Nats-Batch-Id", 0, devstacktest.Cut, nil),
		"middle":       once("Nats-Batch-Id", 3, devstacktest.Cut, nil),
		"middle, late": once("Nats-Batch-Id", 3, devstacktest.ForwardThenCut, nil),
		"end":          once("Nats-Batch-Commit", 0, devstacktest.Cut, nil),
		"after it":     once("Nats-Batch-Commit", 0, devstacktest.ForwardThenCut, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.remember(t, f.subjects.StreamIntents())
			proxy := devstacktest.NewProxy(t, f.url)
			p := f.publisher(t, connect(t, devstacktest.Via(t, f.url, proxy.Addr())), producer.Options{})
			proxy.OnClientData(hook)
			const n = 600
			messages := charges("k", n, payments.LaneInteractive)
			results := p.PublishAll(testContext(t), messages)
			there := f.agree(t, f.subjects.StreamIntents(), messages, results)
			if got := outcomes(results); got[producer.Stored] != n {
				t.Errorf("outcomes %v", got)
			}
			for key, copies := range there {
				if copies != 1 {
					t.Fatalf("%s is there %d times", key, copies)
				}
			}
			if batches, single := f.commits(t, f.subjects.StreamIntents()); batches != 1 || single != 0 {
				t.Errorf("%d batches and %d single messages", batches, single)
			}
		})
	}
}

// TestABatchWaitsForTheConnection that was lost under it, also if that takes a while.
func TestABatchWaitsForTheConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := devstacktest.NewProxy(t, f.url)
	nc := connect(t, devstacktest.Via(t, f.url, proxy.Addr()))
	p := f.publisher(t, nc, producer.Options{})
	proxy.OnClientData(once("Nats-Batch-Id", 2, devstacktest.Cut, proxy.Cut))
	messages := charges("k", 600, payments.LaneInteractive)
	done := make(chan []producer.Result, 1)
	lost := nc.StatusChanged(nats.RECONNECTING)
	go func() { done <- p.PublishAll(testContext(t), messages) }()
	receive(t, lost, "the loss of the connection")
	time.AfterFunc(300*time.Millisecond, proxy.Heal)
	results := receive(t, done, "the results")
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	if got := outcomes(results); got[producer.Stored] != 600 {
		t.Errorf("outcomes %v", got)
	}
}

// TestAStreamThatIsAwayForAMoment: no stream takes the subject, and then one does.
func TestAStreamThatIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.subscription.Unsubscribe()
	if err := s.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	proxy := devstacktest.NewProxy(t, s.fixture.url)
	tried, back := make(chan struct{}), make(chan struct{})
	listens := sync.OnceFunc(func() { close(back) })
	defer listens()
	proxy.OnClientData(once("HPUB", 1, devstacktest.Forward, func() { close(tried); <-back })) // the second try waits for the stream
	p := s.fixture.publisher(t, connect(t, devstacktest.Via(t, s.fixture.url, proxy.Addr())), producer.Options{})
	done := make(chan producer.Result, 1)
	go func() {
		r, _ := p.Publish(testContext(t), charge("acme", "k", 100))
		done <- r
	}()
	receive(t, tried, "a second try")
	s.listen()
	listens()
	if r := receive(t, done, "the result"); r.Outcome != producer.Stored {
		t.Errorf("%+v", r)
	}
}

// TestAStreamThatIsReplacedUnderABatch: the new one knows nothing of the batch's
// beginning (10176).
func TestAStreamThatIsReplacedUnderABatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stream, err := f.js.Stream(testContext(t), f.subjects.StreamIntents())
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	proxy := devstacktest.NewProxy(t, f.url)
	p := f.publisher(t, connect(t, devstacktest.Via(t, f.url, proxy.Addr())), producer.Options{})
	replaced := false
	proxy.OnClientData(once("Nats-Batch-Id", 2, devstacktest.Forward, func() {
		if err := f.js.DeleteStream(testContext(t), config.Name); err != nil {
			t.Error(err)
		}
		if _, err := f.js.CreateStream(testContext(t), config); err != nil {
			t.Error(err)
		}
		replaced = true
	}))
	messages := charges("k", 600, payments.LaneInteractive)
	results := p.PublishAll(testContext(t), messages)
	f.agree(t, config.Name, messages, results)
	if got := outcomes(results); got[producer.Stored] != 600 || !replaced || f.count(t, config.Name) != 600 {
		t.Errorf("outcomes %v, %d in the stream, replaced: %v", got, f.count(t, config.Name), replaced)
	}
}

// TestAStreamThatIsDeletedUnderABatch: nothing is stored, and that is known.
func TestAStreamThatIsDeletedUnderABatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := devstacktest.NewProxy(t, f.url)
	p := f.publisher(t, connect(t, devstacktest.Via(t, f.url, proxy.Addr())), producer.Options{})
	proxy.OnClientData(once("Nats-Batch-Id", 2, devstacktest.Forward, func() {
		if err := f.js.DeleteStream(testContext(t), f.subjects.StreamIntents()); err != nil {
			t.Error(err)
		}
	}))
	for _, r := range p.PublishAll(testContext(t), charges("k", 600, payments.LaneInteractive)) {
		wantNotStored(t, r, true, "no stream takes the subject")
	}
}

// TestBatchesOfOthersThatNobodyEnds: fifty open batches refuse all others for ten
// seconds (10210). The messages leave singly.
func TestBatchesOfOthersThatNobodyEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	subject, err := f.subjects.Intent("other")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		b, err := jetstreamext.NewBatchPublisher(f.js)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add(subject, nil); err != nil { // waits for the acknowledgement
			t.Fatal(err)
		}
	}
	messages := charges("k", 60, payments.LaneInteractive)
	results := f.publisher(t, connect(t, f.url), producer.Options{}).PublishAll(testContext(t), messages)
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	if batches, single := f.commits(t, f.subjects.StreamIntents()); batches != 0 || single != 60 {
		t.Errorf("%d batches and %d single messages", batches, single)
	}
}

// TestAFullStreamTakesWhatStillFits: the batch is refused whole (10077), and with it
// messages for which there is room.
func TestAFullStreamTakesWhatStillFits(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, devstacktest.NATS(t).URL(), 1<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	var messages []producer.Message
	for i := range 80 {
		m := charge("acme", fmt.Sprintf("k-%d", i), 100)
		if i%8 != 7 {
			large(&m, 40)
		}
		messages = append(messages, m)
	}
	results := p.PublishAll(testContext(t), messages)
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	refused := 0
	for i, r := range results {
		switch {
		case r.Outcome == producer.Stored:
		case i%8 == 7:
			t.Errorf("small message %d: %v", i, r.Err)
		default:
			refused++
			wantNotStored(t, r, true, "full")
			if !errors.Is(r.Err, producer.ErrStreamFull) || errors.Is(r.Err, producer.ErrNotAcknowledged) {
				t.Errorf("%v; want ErrStreamFull", r.Err)
			}
		}
	}
	if refused == 0 || refused == 70 {
		t.Errorf("%d of 70 large messages were refused", refused)
	}
}

// large gives a message n metadata entries of half a kilobyte.
func large(m *producer.Message, n int) {
	m.Intent.Metadata = map[string]string{}
	for i := range n {
		m.Intent.Metadata[fmt.Sprintf("name-%02d", i)] = strings.Repeat("x", 500)
	}
}

// TestOneLargeMessageAmongOthers: the server takes 4 KiB. One message fits alone
// and not in a batch, one not at all; the others are stored in order.
func TestOneLargeMessageAmongOthers(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, startSmall(t), 8<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	messages := charges("k", 90, payments.LaneInteractive)
	large(&messages[30], 7) // some 3,700 bytes
	messages[30].Intent.Metadata["pad"] = strings.Repeat("y", 150)
	large(&messages[60], 9)
	results := p.PublishAll(testContext(t), messages)
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	want := uint64(0)
	for i, r := range results {
		if i == 60 {
			wantNotStored(t, r, false, "max_payload")
			if !errors.Is(r.Err, producer.ErrTooLarge) {
				t.Errorf("%v; want ErrTooLarge", r.Err)
			}
			continue
		}
		if want++; r.Outcome != producer.Stored || r.Sequence != want {
			t.Fatalf("message %d: %+v; want sequence %d", i, r, want)
		}
	}
	if batches, single := f.commits(t, f.subjects.StreamIntents()); batches != 3 || single != 1 {
		t.Errorf("%d batches and %d single messages, want 3 and the large one", batches, single)
	}
}

// TestAGroupIsBoundedInBytes: messages of half a megabyte, the largest there are, do
// not make a batch that a server cannot hold.
func TestAGroupIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, devstacktest.NATS(t).URL(), 64<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{MaxQueueBytes: 1 << 20})
	messages := charges("k", 900, payments.LaneInteractive)
	for i := range messages {
		large(&messages[i], 20) // some 10 KiB
	}
	results := p.PublishAll(testContext(t), messages)
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	if got := outcomes(results); got[producer.Stored] != len(messages) {
		t.Errorf("outcomes %v", got)
	}
	if batches, single := f.commits(t, f.subjects.StreamIntents()); batches < 2 || single != 0 {
		t.Errorf("%d batches and %d single messages", batches, single)
	}
}

// TestPublishersUnderFire cuts connections in mid-message, before and after the
// server has it, under calls of every kind, and holds each result against the stream.
func TestPublishersUnderFire(t *testing.T) {
	t.Parallel()
	counts := map[producer.Outcome]int{}
	var mu sync.Mutex
	for _, seed := range []uint64{1, 2, 3} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			f := fixtureOn(t, devstacktest.NATS(t).URL(), 64<<20)
			proxy := devstacktest.NewProxy(t, f.url)
			fire := rand.New(rand.NewPCG(seed, 2))
			var cuts, chunks int
			var aim sync.Mutex
			proxy.OnClientData(func(chunk []byte) devstacktest.Action {
				aim.Lock()
				defer aim.Unlock()
				if !bytes.Contains(chunk, []byte("HPUB")) || cuts >= 60 {
					return devstacktest.Forward
				}
				if chunks++; chunks != 3 && fire.IntN(12) != 0 { // the third, so that there is one
					return devstacktest.Forward
				}
				cuts++
				return []devstacktest.Action{devstacktest.Cut, devstacktest.ForwardThenCut}[fire.IntN(2)]
			})
			p := f.publisher(t, connect(t, devstacktest.Via(t, f.url, proxy.Addr())), producer.Options{AckTimeout: 2 * time.Second, MaxQueue: 700})
			var messages []producer.Message
			var results []producer.Result
			var keep sync.Mutex
			note := func(some []producer.Message, got []producer.Result) {
				keep.Lock()
				defer keep.Unlock()
				messages, results = append(messages, some...), append(results, got...)
			}
			var callers sync.WaitGroup
			for c := range 3 {
				callers.Go(func() {
					for k := range 4 {
						some := charges(fmt.Sprintf("all-%d-%d", c, k), 300, payments.LaneInteractive)
						note(some, p.PublishAll(testContext(t), some))
					}
				})
			}
			for c := range 40 {
				callers.Go(func() {
					for k := range 15 {
						m := charge("acme", fmt.Sprintf("one-%d-%d", c, k), 100)
						r, _ := p.Publish(testContext(t), m)
						note([]producer.Message{m}, []producer.Result{r})
					}
				})
			}
			callers.Wait()
			aim.Lock()
			if cuts == 0 {
				t.Error("no connection was cut")
			}
			cuts = 60
			aim.Unlock()
			f.agree(t, f.subjects.StreamIntents(), messages, results)
			mu.Lock()
			defer mu.Unlock()
			for outcome, n := range outcomes(results) {
				counts[outcome] += n
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("outcomes: %v", counts)
		if counts[producer.Stored] < 1000 {
			t.Errorf("%v: too little got through", counts)
		}
	})
}

// TestAConnectionThatItsOwnerCloses ends nothing in a wait.
func TestAConnectionThatItsOwnerCloses(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.gate = make(chan struct{})
	nc := connect(t, s.fixture.url)
	p := s.fixture.publisher(t, nc, producer.Options{})
	done := make(chan []producer.Result, 1)
	go func() { done <- p.PublishAll(testContext(t), charges("k", 50, payments.LaneInteractive)) }()
	receive(t, s.held, "the batch")
	nc.Close()
	for _, r := range receive(t, done, "the results") { // not stored if the batch was not sent to its end by then
		if r.Outcome == producer.Stored || !errors.Is(r.Err, nats.ErrDisconnected) && !errors.Is(r.Err, nats.ErrConnectionClosed) {
			t.Fatalf("%v, %v", r.Outcome, r.Err)
		}
	}
	close(s.gate)
	r, _ := p.Publish(testContext(t), charge("acme", "k", 100))
	wantNotStored(t, r, true, "no connection")
	p.Close()
}

// TestAStreamWithoutBatchesTakesMessages: the setting may be missing on an older one.
func TestAStreamWithoutBatchesTakesMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stream, err := f.js.Stream(testContext(t), f.subjects.StreamIntents())
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.AllowAtomicPublish = false
	if _, err := f.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	messages := charges("k", 100, payments.LaneInteractive)
	results := f.publisher(t, connect(t, f.url), producer.Options{}).PublishAll(testContext(t), messages)
	f.agree(t, config.Name, messages, results)
	if batches, single := f.commits(t, config.Name); batches != 0 || single != 100 {
		t.Errorf("%d batches and %d single messages", batches, single)
	}
}
