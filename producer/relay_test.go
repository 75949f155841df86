package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

func (f fixture) relay(tb testing.TB, outbox payments.Outbox, nc *nats.Conn, opts producer.RelayOptions) *producer.Relay {
	tb.Helper()
	r, err := producer.NewRelay(outbox, nc, f.subjects, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// running starts Run and ends it before the test does.
func running(tb testing.TB, r *producer.Relay) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := receive(tb, done, "the end of Run"); err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

func quick() producer.RelayOptions {
	return producer.RelayOptions{IdleMin: 5 * time.Millisecond, IdleMax: 20 * time.Millisecond, RetryBase: 5 * time.Millisecond, RetryCap: 20 * time.Millisecond, AckTimeout: 30 * time.Second}
}

// bodies counts what a stream holds, by body.
func (f fixture) bodies(tb testing.TB, stream string) map[string]int {
	tb.Helper()
	out := map[string]int{}
	for _, m := range f.storedWhenBack(tb, stream) {
		out[string(m.Data)]++
	}
	return out
}

// wantAll demands every event at least once.
func (f fixture) wantAll(tb testing.TB, from, n int64) {
	tb.Helper()
	there := f.bodies(tb, f.subjects.StreamEvents())
	for id := from; id < from+n; id++ {
		if there[string(event(id).Body)] == 0 {
			tb.Errorf("event %d was lost", id)
		}
	}
}

// passWindow returns once the server's clock has passed the duplicate window of
// what the stream holds.
func (f fixture) passWindow(tb testing.TB, stream string) {
	tb.Helper()
	ctx := testContext(tb)
	for ctx.Err() == nil {
		s, err := f.js.Stream(ctx, stream)
		if err != nil {
			tb.Fatal(err)
		}
		if info := s.CachedInfo(); info.TimeStamp.Sub(info.State.LastTime) > 3*schema.DuplicateWindow {
			return
		}
	}
	tb.Fatal("the server's clock stands still")
}

func TestRunOnceSendsEverything(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	letter := payments.OutboxItem{ID: 9001, Kind: payments.OutboxDeadLetter, TenantID: "acme", EventID: "dl_1", Body: []byte(`{"id":"dl_1"}`)}
	lost := payments.OutboxItem{ID: 9002, Kind: payments.OutboxDeadLetter, EventID: "dl_2", Body: []byte(`{"id":"dl_2"}`)}
	odd := payments.OutboxItem{ID: 9003, Kind: payments.OutboxDeadLetter, TenantID: "NOT*A.TENANT", EventID: "dl_3", Body: []byte(`{"id":"dl_3"}`)}
	outbox := newOutbox(append(events(1, 2500), letter, lost, odd)...)
	r := f.relay(t, outbox, connect(t, f.url), quick())
	sent, err := r.RunOnce(testContext(t))
	if err != nil || sent != 2503 || outbox.left() != 0 || !r.Idle() {
		t.Fatalf("sent %d, %v; %d left, idle: %v", sent, err, outbox.left(), r.Idle())
	}
	stored := f.stored(t, f.subjects.StreamEvents())
	if len(stored) != 2500 {
		t.Fatalf("%d events are stored", len(stored))
	}
	want, _ := f.subjects.Event("acme", "oncepay.payment.succeeded")
	for i, m := range stored {
		if m.Subject != want || m.Header.Get(schema.HeaderMsgID) != fmt.Sprintf("evt_%d", i+1) || !bytes.Equal(m.Data, event(int64(i+1)).Body) {
			t.Fatalf("event %d: %s %v %s", i+1, m.Subject, m.Header, m.Data)
		}
	}
	acme, _ := f.subjects.Dead("acme")
	unknown, _ := f.subjects.Dead(schema.UnknownTenant)
	dead := f.stored(t, f.subjects.StreamDead())
	if len(dead) != 3 || dead[0].Subject != acme || dead[1].Subject != unknown || dead[2].Subject != unknown || dead[0].Header.Get(schema.HeaderMsgID) != "" {
		t.Fatalf("dead letters: %+v", dead)
	}
	if sent, err = r.RunOnce(testContext(t)); sent != 0 || err != nil {
		t.Errorf("again: %d, %v", sent, err)
	}
}

// TestCrashBetweenPublishAndSent is why it is at least once.
func TestCrashBetweenPublishAndSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	outbox := newOutbox(events(1, 30)...)
	outbox.sentErr = errors.New("killed here")
	opts := quick()
	opts.Hold = time.Minute
	if sent, err := f.relay(t, outbox, nc, opts).RunOnce(testContext(t)); sent != 0 || err == nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	f.passWindow(t, f.subjects.StreamEvents())

	next := f.relay(t, outbox, nc, opts)
	outbox.set(func(o *memoryOutbox) { o.sentErr = nil })
	if sent, err := next.RunOnce(testContext(t)); sent != 0 || err != nil {
		t.Fatalf("within the hold: sent %d, %v", sent, err)
	}
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(2 * time.Minute) })
	if sent, err := next.RunOnce(testContext(t)); sent != 30 || err != nil {
		t.Fatalf("after the hold: sent %d, %v", sent, err)
	}
	ids := map[string]int{}
	for _, m := range f.stored(t, f.subjects.StreamEvents()) {
		ids[m.Header.Get(schema.HeaderMsgID)]++
	}
	for id := 1; id <= 30; id++ {
		if n := ids[fmt.Sprintf("evt_%d", id)]; n != 2 {
			t.Errorf("evt_%d is there %d times, want 2", id, n)
		}
	}
}

// TestTwoRelaysAtOnce: a repeat within the window is dropped by its event id, also
// out of the middle of a batch, and counts as sent.
func TestARepeatWithinTheWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stream, err := f.js.Stream(testContext(t), f.subjects.StreamEvents())
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Duplicates = time.Minute // so that the test cannot be too slow for it
	if _, err := f.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	first, second := newOutbox(events(17, 5)...), newOutbox(events(1, 40)...)
	nc := connect(t, f.url)
	if sent, err := f.relay(t, first, nc, quick()).RunOnce(testContext(t)); sent != 5 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	if sent, err := f.relay(t, second, nc, quick()).RunOnce(testContext(t)); sent != 40 || err != nil || second.left() != 0 {
		t.Fatalf("sent %d, %v; %d left", sent, err, second.left())
	}
	f.wantAll(t, 1, 40)
	if n := f.count(t, f.subjects.StreamEvents()); n != 40 {
		t.Errorf("%d events are stored, want 40", n)
	}
}

func TestOneItemDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{5, 60} { // plain, and as a batch
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			url := startSmall(t)
			f := fixtureOn(t, url, 8<<20)
			outbox := newOutbox(events(1, n)...)
			noType, noKind, large := event(1001), event(1002), event(1003)
			noType.EventType, noKind.Kind, large.Body = "something else", "letter", bytes.Repeat([]byte("x"), 8<<10)
			noType.Row = 77 // as a store numbers what has several items in a row
			outbox.rows = append([]payments.OutboxItem{noType, large}, append(outbox.rows, noKind)...)
			var mu sync.Mutex
			failed := 0
			opts := quick()
			opts.Observer.Failed = func(_ string, items int, _ error) {
				mu.Lock()
				defer mu.Unlock()
				failed += items
			}
			r := f.relay(t, outbox, connect(t, url), opts)
			sent, err := r.RunOnce(testContext(t))
			if sent != int(n) || err == nil || outbox.left() != 3 || !r.Idle() {
				t.Fatalf("sent %d, %v; %d left, idle: %v", sent, err, outbox.left(), r.Idle())
			}
			if !strings.HasPrefix(err.Error(), "outbox row 77 (event): ") {
				t.Errorf("it does not say where to look: %v", err)
			}
			f.wantAll(t, 1, n)
			if mu.Lock(); failed != 3 {
				t.Errorf("%d items are observed as failed, want 3", failed)
			}
			mu.Unlock()
		})
	}
}

// TestAStreamWithoutBatches: the setting may be missing on an older stream.
func TestAStreamWithoutBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stream, err := f.js.Stream(testContext(t), f.subjects.StreamEvents())
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.AllowAtomicPublish = false
	if _, err := f.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	outbox := newOutbox(events(1, 100)...)
	if sent, err := f.relay(t, outbox, connect(t, f.url), quick()).RunOnce(testContext(t)); sent != 100 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	f.wantAll(t, 1, 100)
}

func TestAMissingStreamDoesNotHoldUpTheOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.js.DeleteStream(testContext(t), f.subjects.StreamDead()); err != nil {
		t.Fatal(err)
	}
	letter := payments.OutboxItem{ID: 9001, Kind: payments.OutboxDeadLetter, TenantID: "acme", Body: []byte(`{}`)}
	outbox := newOutbox(append([]payments.OutboxItem{letter}, events(1, 50)...)...)
	r := f.relay(t, outbox, connect(t, f.url), quick())
	running(t, r)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return len(o.settled) == 50 }); err != nil {
		t.Fatal(err)
	}
	if r.Idle() {
		t.Error("the relay says that it is idle with a dead letter in hand")
	}
	if _, err := f.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: f.subjects.StreamDead(), Subjects: []string{f.subjects.Prefix + ".dead.*"}, MaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitEmpty(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if outbox.left() != 0 {
		t.Errorf("%d items are left", outbox.left())
	}
}

func TestRunRelaysOffersAndPolls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outbox := newOutbox(events(1, 100)...)
	opts := quick()
	opts.IdleMin, opts.IdleMax = time.Hour, time.Hour // polled once; the rest must come by Offer
	var mu sync.Mutex
	sent, deepest := 0, 0
	opts.Observer = producer.RelayObserver{
		Sent: func(stream string, items int, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if stream != f.subjects.StreamEvents() || took < 0 {
				t.Errorf("Sent(%s, %d, %v)", stream, items, took)
			}
			sent += items
		},
		Depth: func(items int, oldest time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			deepest = max(deepest, items)
			if oldest < 0 || items == 0 && oldest != 0 {
				t.Errorf("Depth(%d, %v)", items, oldest)
			}
		},
	}
	r := f.relay(t, outbox, connect(t, f.url), opts)
	running(t, r)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	var all sync.WaitGroup
	for i := range int64(10) {
		all.Go(func() {
			items := events(1000+100*i, 100)
			for _, item := range items {
				outbox.add(item)
				r.Offer([]payments.OutboxItem{item})
			}
		})
	}
	all.Wait()
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantAll(t, 1, 100)
	f.wantAll(t, 1000, 1000)
	if n := f.count(t, f.subjects.StreamEvents()); n != 1100 {
		t.Errorf("%d events are stored, want 1100", n)
	}
	eventually(t, "the observer's word of everything", func() bool { // which comes after the last item is let go of
		mu.Lock()
		defer mu.Unlock()
		return sent == 1100 && deepest > 0
	})
	if err := r.Run(testContext(t)); err == nil {
		t.Error("a second Run beside the first was let in")
	}
}

// TestOfferOverflowIsPolled: Offer neither blocks nor loses.
func TestOfferOverflowIsPolled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outbox := newOutbox()
	opts := quick()
	opts.MaxQueue, opts.IdleMin, opts.IdleMax = 10, time.Hour, time.Hour // only the overflow can wake the poll
	r := f.relay(t, outbox, connect(t, f.url), opts)
	items := events(1, 500)
	outbox.add(items...)
	r.Offer(items) // nobody runs yet: ten find room
	if r.Idle() {
		t.Error("idle with a full queue")
	}
	running(t, r)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	more := events(501, 500)
	outbox.add(more...)
	r.Offer(more)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantAll(t, 1, 1000)
}

func TestNATSRestartedInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, group := range []int{15, 200} { // plain, and batches
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			server := ownNATS(t)
			f := fixtureOn(t, server.URL(), 8<<20)
			const n = 2000
			outbox := newOutbox(events(1, n)...)
			restart := make(chan struct{})
			outbox.onSent = func([]int64) {
				if len(outbox.settled) >= n/4 && restart != nil {
					close(restart)
					restart = nil
				}
			}
			wait := restart
			opts := quick()
			opts.MaxGroup = group
			r := f.relay(t, outbox, connect(t, f.url), opts)
			running(t, r)
			receive(t, wait, "a quarter of the events marked as sent")
			startAgain(t, server)
			if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
				o.now = o.now.Add(time.Second) // holds run out, should they have to
				return len(o.rows) == 0
			}); err != nil {
				t.Fatalf("%v; %d left", err, outbox.left())
			}
			f.wantAll(t, 1, n)
		})
	}
}

// TestNATSAway: nothing is lost, memory stays bounded, and it resumes by itself.
func TestNATSAway(t *testing.T) {
	t.Parallel()
	server := ownNATS(t)
	f := fixtureOn(t, server.URL(), 8<<20)
	nc := connect(t, f.url)
	down := nc.StatusChanged(nats.RECONNECTING)
	server.Stop()
	receive(t, down, "the loss of the connection")
	outbox := newOutbox()
	var mu sync.Mutex
	var deepest int
	failed := make(chan struct{}, 1000)
	opts := quick()
	opts.MaxQueue = 50
	opts.Observer.Depth = func(items int, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		deepest = max(deepest, items)
	}
	opts.Observer.Failed = func(_ string, _ int, err error) {
		if !strings.Contains(err.Error(), "no connection") {
			return
		}
		select {
		case failed <- struct{}{}:
		default:
		}
	}
	r := f.relay(t, outbox, nc, opts)
	running(t, r)
	items := events(1, 1000)
	outbox.add(items...)
	r.Offer(items)
	for range 5 {
		receive(t, failed, "a failure for want of a connection")
	}
	if outbox.left() != 1000 {
		t.Errorf("%d left without NATS", outbox.left())
	}
	startAgain(t, server)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantAll(t, 1, 1000)
	if mu.Lock(); deepest > 50 {
		t.Errorf("%d items were held, the queue has room for 50", deepest)
	}
	mu.Unlock()
}

// TestPostgreSQLAwayForSent: what is stored is settled when PostgreSQL is back,
// without a second sending by this process.
func TestPostgreSQLAwayForSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outbox := newOutbox(events(1, 40)...)
	outbox.sentErr = &payments.Error{Code: payments.CodeUnavailable, Message: "away"}
	failures := 0
	back := make(chan struct{})
	outbox.onSent = func([]int64) {
		if failures++; failures == 5 {
			close(back)
		}
	}
	r := f.relay(t, outbox, connect(t, f.url), quick())
	running(t, r)
	receive(t, back, "five tries to mark events as sent")
	outbox.set(func(o *memoryOutbox) { o.sentErr = nil })
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	if n := f.count(t, f.subjects.StreamEvents()); n != 40 {
		t.Errorf("%d events are stored, want 40", n)
	}
}

func TestPollErrorsPass(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outbox := newOutbox(events(1, 3)...)
	outbox.pendingErr = &payments.Error{Code: payments.CodeUnavailable, Message: "away"}
	r := f.relay(t, outbox, connect(t, f.url), quick())
	if _, err := r.RunOnce(testContext(t)); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Fatalf("RunOnce: %v", err)
	}
	running(t, r)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return o.polls > 4 }); err != nil {
		t.Fatal(err)
	}
	outbox.set(func(o *memoryOutbox) { o.pendingErr = nil })
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
}

// TestTheFinalPass: what was committed just before the end still leaves.
func TestTheFinalPass(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outbox := newOutbox()
	opts := quick()
	opts.IdleMin, opts.IdleMax, opts.FinalTimeout = time.Hour, time.Hour, patience
	r := f.relay(t, outbox, connect(t, f.url), opts)
	stop := running(t, r)
	if err := r.WaitEmpty(testContext(t)); err != nil {
		t.Fatal(err)
	}
	outbox.add(events(1, 30)...) // and nobody offers it
	stop()
	if outbox.left() != 0 {
		t.Errorf("%d items are left", outbox.left())
	}
	f.wantAll(t, 1, 30)
}

func TestWaitEmptyGivesUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.relay(t, newOutbox(), connect(t, f.url), quick())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.WaitEmpty(ctx); !errors.Is(err, context.Canceled) || r.Idle() {
		t.Fatalf("err = %v: nobody has polled yet", err)
	}
	if _, err := producer.NewRelay(newOutbox(), nil, schema.Subjects{Prefix: "*"}, quick()); !errors.Is(err, schema.ErrSubject) {
		t.Errorf("err = %v", err)
	}
}

// TestAnswersLostInABatch cuts the connection after the server has a whole batch.
func TestAnswersLostInABatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := devstacktest.NewProxy(t, f.url)
	nc := connect(t, devstacktest.Via(t, f.url, proxy.Addr()))
	var once sync.Once
	proxy.OnClientData(func(chunk []byte) devstacktest.Action {
		action := devstacktest.Forward
		if bytes.Contains(chunk, []byte("Nats-Batch-Commit")) {
			once.Do(func() { action = devstacktest.ForwardThenCut })
		}
		return action
	})
	outbox := newOutbox(events(1, 100)...)
	r := f.relay(t, outbox, nc, quick())
	running(t, r)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantAll(t, 1, 100)
}

// TestTooManyOpenBatches: somebody begins batches and never ends them. The stream
// then takes no other batch for ten seconds, and events leave all the same.
func TestTooManyOpenBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	subject, err := f.subjects.Event("acme", "oncepay.payment.failed")
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
	outbox := newOutbox(events(1, 60)...)
	if sent, err := f.relay(t, outbox, connect(t, f.url), quick()).RunOnce(testContext(t)); sent != 60 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	f.wantAll(t, 1, 60)
	if n := f.count(t, f.subjects.StreamEvents()); n != 60 {
		t.Errorf("%d events are stored, want 60", n)
	}
}

// TestPatience: an item that fails again and again beside others that do not is
// tried a few times and then left to its hold; it is not forgotten.
func TestPatience(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := testContext(t)
	stream, err := f.js.Stream(ctx, f.subjects.StreamDead())
	if err != nil {
		t.Fatal(err)
	}
	everybody := stream.CachedInfo().Config
	acmeOnly := everybody
	acme, _ := f.subjects.Dead("acme")
	acmeOnly.Subjects = []string{acme}
	if _, err := f.js.UpdateStream(ctx, acmeOnly); err != nil {
		t.Fatal(err)
	}
	letter := func(id int64, tenant string) payments.OutboxItem {
		return payments.OutboxItem{ID: id, Kind: payments.OutboxDeadLetter, TenantID: tenant, Body: fmt.Appendf(nil, `{"id":"dl_%d"}`, id)}
	}
	outbox := newOutbox(letter(1, "other"), letter(2, "acme"))
	r := f.relay(t, outbox, connect(t, f.url), quick())
	running(t, r)
	for id := int64(2); id <= 4; id++ {
		if err := outbox.await(ctx, func(o *memoryOutbox) bool { return o.settled[id] > 0 }); err != nil {
			t.Fatalf("letter %d: %v", id, err)
		}
		if id < 4 {
			outbox.add(letter(id+1, "acme"))
		}
	}
	if err := r.WaitEmpty(ctx); err != nil || outbox.left() != 1 {
		t.Fatalf("%v; %d left, want the one that has no subject", err, outbox.left())
	}
	if _, err := f.js.UpdateStream(ctx, everybody); err != nil {
		t.Fatal(err)
	}
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(time.Hour) })
	if err := outbox.await(ctx, func(o *memoryOutbox) bool { return len(o.rows) == 0 }); err != nil {
		t.Fatal(err)
	}
	if n := f.count(t, f.subjects.StreamDead()); n != 4 {
		t.Errorf("%d dead letters are stored, want 4", n)
	}
}
