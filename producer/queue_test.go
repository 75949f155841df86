package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
)

// syncs is what a number of batches and single messages costs a stream that syncs
// every write, counted in single messages: a batch costs as much as AtomicFrom of them.
func syncs(batches, single int) int { return batches*producer.AtomicFrom + single }

// TestPublishAllIsEightTimesCheaper counts writes to disk, since time depends on the
// machine: five batches for five thousand messages.
func TestPublishAllIsEightTimesCheaper(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, devstacktest.NATS(t).URL(), 64<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	const n = 5000
	messages := charges("k", n, payments.LaneBulk)
	results := p.PublishAll(testContext(t), messages)
	f.agree(t, f.subjects.StreamBulk(), messages, results)
	for i, r := range results {
		if r.Outcome != producer.Stored || r.Sequence != uint64(i+1) {
			t.Fatalf("message %d: %+v", i, r)
		}
	}
	batches, single := f.commits(t, f.subjects.StreamBulk())
	if batches != n/1000 || single != 0 || n < 8*syncs(batches, single) {
		t.Errorf("%d batches and %d single messages for %d", batches, single, n)
	}
}

// TestConcurrentCallsShareCommits holds up the first message of 512 callers until
// all others are queued: they leave together.
func TestConcurrentCallsShareCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := devstacktest.NewProxy(t, f.url)
	p := f.publisher(t, connect(t, devstacktest.Via(t, f.url, proxy.Addr())), producer.Options{})
	const callers, rounds = 512, 3
	var gate atomic.Pointer[chan struct{}]
	proxy.OnClientData(func(chunk []byte) devstacktest.Action {
		if hold := gate.Load(); hold != nil && bytes.Contains(chunk, []byte("HPUB")) {
			<-*hold
		}
		return devstacktest.Forward
	})
	for round := range rounds {
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		gate.Store(&hold)
		results := make([]producer.Result, callers)
		messages := charges(fmt.Sprint(round), callers, payments.LaneInteractive)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { results[i], _ = p.Publish(testContext(t), messages[i]) })
		}
		eventually(t, "all calls in the lane", func() bool { return p.Inside(payments.LaneInteractive) == callers })
		release()
		all.Wait()
		f.agree(t, f.subjects.StreamIntents(), messages, results)
		if got := outcomes(results); got[producer.Stored] != callers {
			t.Fatalf("outcomes %v", got)
		}
	}
	batches, single := f.commits(t, f.subjects.StreamIntents())
	if callers*rounds < 4*syncs(batches, single) {
		t.Errorf("%d batches and %d single messages for %d: not four times cheaper", batches, single, callers*rounds)
	}
}

// TestAFewCallersStaySingle: below the threshold messages leave side by side, and
// not as a batch, which would be slower.
func TestAFewCallersStaySingle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	messages := charges("k", 3*(producer.AtomicFrom-1), payments.LaneInteractive)
	var results []producer.Result
	for some := messages; len(some) > 0; some = some[producer.AtomicFrom-1:] {
		results = append(results, p.PublishAll(testContext(t), some[:producer.AtomicFrom-1])...)
	}
	f.agree(t, f.subjects.StreamIntents(), messages, results)
	if batches, single := f.commits(t, f.subjects.StreamIntents()); batches != 0 || single != len(messages) {
		t.Errorf("%d batches and %d single messages", batches, single)
	}
}

// TestBothLanesAtOnce: the interactive lane's stream answers nothing until the bulk
// lane's messages are all stored, although they stand behind the others.
func TestBothLanesAtOnce(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.gate = make(chan struct{})
	js, err := jetstream.New(connect(t, s.fixture.url))
	if err != nil {
		t.Fatal(err)
	}
	s.fixture.js = js
	bulk := s.fixture.subjects.StreamBulk()
	if _, err := js.CreateStream(testContext(t), jetstream.StreamConfig{
		Name: bulk, Subjects: []string{s.fixture.subjects.Prefix + ".bulk.*"}, MaxBytes: 8 << 20, AllowAtomicPublish: true,
	}); err != nil {
		t.Fatal(err)
	}
	messages := append(charges("first", 2500, payments.LaneInteractive), charges("then", 2500, payments.LaneBulk)...)
	done := make(chan []producer.Result, 1)
	p := s.publisher(producer.Options{AckTimeout: 2 * patience})
	go func() { done <- p.PublishAll(testContext(t), messages) }()
	eventually(t, "the bulk lane's messages", func() bool { return s.fixture.count(t, bulk) == 2500 })
	close(s.gate)
	results := receive(t, done, "the results")
	s.holds(messages[:2500], results[:2500])
	s.fixture.agree(t, bulk, messages[2500:], results[2500:])
	for i, r := range results {
		if r.Outcome != producer.Stored || r.Sequence != uint64(i%2500+1) {
			t.Fatalf("message %d: %+v", i, r)
		}
	}
}

// TestWhoIsQueuedMayLeave: its message is never sent, and the others are not held up.
func TestWhoIsQueuedMayLeave(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.gate = make(chan struct{})
	p := s.publisher(producer.Options{AckTimeout: 2 * patience})
	publish := func(ctx context.Context, key string) <-chan producer.Result {
		done := make(chan producer.Result, 1)
		go func() {
			r, _ := p.Publish(ctx, charge("acme", key, 100))
			done <- r
		}()
		return done
	}
	first := make(chan []producer.Result, 1)
	go func() { first <- p.PublishAll(testContext(t), charges("first", 2, payments.LaneInteractive)) }()
	receive(t, s.held, "the first message")
	second := publish(testContext(t), "second")
	ctx, cancel := context.WithCancelCause(testContext(t))
	third := publish(ctx, "third")
	fourth := publish(testContext(t), "fourth")
	eventually(t, "three in the queue", func() bool { return p.Queued(payments.LaneInteractive) == 3 })
	why := errors.New("the customer has left")
	cancel(why)
	r := receive(t, third, "the result of who left")
	wantNotStored(t, r, true, "before the message was sent")
	if !errors.Is(r.Err, producer.ErrNotSent) || !errors.Is(r.Err, context.Canceled) && !errors.Is(r.Err, why) {
		t.Errorf("%v", r.Err)
	}
	close(s.gate)
	results := append(receive(t, first, "the first results"), receive(t, second, "the second result"), receive(t, fourth, "the fourth result"))
	if got := outcomes(results); got[producer.Stored] != 4 {
		t.Errorf("outcomes %v", got)
	}
	if _, _, stored := s.counts(); stored != 4 {
		t.Errorf("%d messages are stored", stored)
	}
}

// TestCloseFlushesWhatIsQueued, refuses who waits for room or comes later, and
// returns only then.
func TestCloseFlushesWhatIsQueued(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.gate = make(chan struct{})
	p := s.publisher(producer.Options{MaxQueue: 200, AckTimeout: 2 * patience})
	done := make(chan []producer.Result, 4)
	publish := func(name string, n int) {
		go func() { done <- p.PublishAll(testContext(t), charges(name, n, payments.LaneInteractive)) }()
	}
	publish("under-way", 100)
	receive(t, s.held, "the first batch")
	publish("queued", 100)
	eventually(t, "a queued call", func() bool { return p.Queued(payments.LaneInteractive) == 1 })
	publish("outside", 100)
	eventually(t, "a call that waits for room", func() bool { return p.Waiting() == 1 })
	closed := make(chan struct{})
	go func() {
		p.Close()
		close(closed)
	}()
	for _, r := range receive(t, done, "the results of who waits for room") {
		wantNotStored(t, r, false, "closed")
		if !errors.Is(r.Err, producer.ErrClosed) {
			t.Fatalf("%v; want ErrClosed", r.Err)
		}
	}
	r, _ := p.Publish(testContext(t), charge("acme", "late", 100))
	wantNotStored(t, r, false, "closed")
	select {
	case <-closed:
		t.Error("Close returned with messages in the queue")
	default:
	}
	close(s.gate)
	receive(t, closed, "the end of Close")
	for range 2 {
		for _, r := range receive(t, done, "results") {
			if r.Outcome != producer.Stored {
				t.Fatalf("%+v", r)
			}
		}
	}
	if _, _, stored := s.counts(); stored != 200 {
		t.Errorf("%d messages are stored", stored)
	}
	p.Close()
}

// TestCloseWaitsForALoneMessage, which is in its caller's hands and in no queue.
func TestCloseWaitsForALoneMessage(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.gate = make(chan struct{})
	p := s.publisher(producer.Options{AckTimeout: 2 * patience})
	done := make(chan producer.Result, 1)
	go func() {
		r, _ := p.Publish(testContext(t), charge("acme", "lone", 100))
		done <- r
	}()
	receive(t, s.held, "the message")
	closed := make(chan struct{})
	go func() {
		p.Close()
		close(closed)
	}()
	eventually(t, "the beginning of Close", p.Closing)
	select {
	case <-closed:
		t.Error("Close returned with a message under way")
	case <-time.After(50 * time.Millisecond):
	}
	close(s.gate)
	if r := receive(t, done, "the result"); r.Outcome != producer.Stored {
		t.Errorf("%+v", r)
	}
	receive(t, closed, "the end of Close")
}

// TestACallIsNotOvertakenForEver: a call that needs much room gets it although
// callers of little come all the time.
func TestACallIsNotOvertakenForEver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{MaxQueue: 100})
	stop := make(chan struct{})
	var small sync.WaitGroup
	for c := range 64 {
		small.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := p.Publish(testContext(t), charge("acme", fmt.Sprintf("%d-%d", c, k), 100)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	results := make(chan []producer.Result, 1)
	go func() { results <- p.PublishAll(testContext(t), charges("large", 300, payments.LaneInteractive)) }()
	for _, r := range receive(t, results, "the large call") {
		if r.Outcome != producer.Stored {
			t.Errorf("%+v", r)
		}
	}
	close(stop)
	small.Wait()
}

// TestPublishAllOfNothing returns nothing.
func TestPublishAllOfNothing(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	p := s.publisher(producer.Options{})
	if r := p.PublishAll(testContext(t), nil); len(r) != 0 {
		t.Errorf("%v", r)
	}
	bad := charges("k", 3, payments.LaneInteractive)
	for i := range bad {
		bad[i].Intent.Amount = -1
	}
	for _, r := range p.PublishAll(testContext(t), bad) {
		wantNotStored(t, r, false, "amount")
		var v *payments.ValidationError
		if !errors.Is(r.Err, producer.ErrInvalid) || !errors.As(r.Err, &v) || v.Fields[0].Field != "amount" {
			t.Errorf("%v; want ErrInvalid and the field", r.Err)
		}
	}
	if commits, plain, _ := s.counts(); commits+plain != 0 {
		t.Errorf("%d batches and %d messages were sent", commits, plain)
	}
	ctx, cancel := context.WithTimeout(testContext(t), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	for _, r := range p.PublishAll(ctx, charges("k", 1200, payments.LaneInteractive)) {
		wantNotStored(t, r, true, "before the message was sent")
	}
}
