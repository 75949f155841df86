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
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
)

// intent is the outbox item of an intent that was accepted by other ways than its
// stream; n is its number in the outbox.
func intent(tb testing.TB, lane payments.Lane, n int64, key string) payments.OutboxItem {
	tb.Helper()
	body, err := schema.EncodeIntent(document.Intent(charge("acme", key, 9900+n).Intent.Normalized()))
	if err != nil {
		tb.Fatal(err)
	}
	return payments.OutboxItem{ID: n, Kind: payments.OutboxIntent, TenantID: "acme", Lane: lane, Body: body}
}

// children are the outbox items of a batch's payments.
func children(tb testing.TB, from, n int64) []payments.OutboxItem {
	tb.Helper()
	out := make([]payments.OutboxItem, 0, n)
	for id := from; id < from+n; id++ {
		out = append(out, intent(tb, payments.LaneBulk, id, fmt.Sprintf("b::%d", id)))
	}
	return out
}

func quickOf(lane payments.Lane) producer.RelayOptions {
	opts := quick()
	opts.Lane = lane
	return opts
}

// wantItems demands each item's body in the stream, at least once and at most so often.
func (f fixture) wantItems(tb testing.TB, stream string, items []payments.OutboxItem, most int) {
	tb.Helper()
	there := f.bodies(tb, stream)
	for _, item := range items {
		if n := there[string(item.Body)]; n < 1 || n > most {
			tb.Errorf("item %d is there %d times, want 1 to %d", item.ID, n, most)
		}
	}
	if len(there) != len(items) {
		tb.Errorf("%d different messages, want %d", len(there), len(items))
	}
}

// limit lets a stream take no more than so many messages; -1 takes the limit away.
func (f fixture) limit(tb testing.TB, stream string, messages int64) {
	tb.Helper()
	s, err := f.js.Stream(testContext(tb), stream)
	if err != nil {
		tb.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.MaxMsgs, config.Discard = messages, jetstream.DiscardNew
	if _, err := f.js.UpdateStream(testContext(tb), config); err != nil {
		tb.Fatal(err)
	}
}

func TestIntentsArriveByteForByte(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	for lane, at := range map[payments.Lane]struct{ stream, subject string }{
		payments.LaneInteractive: {f.subjects.StreamIntents(), f.subjects.Prefix + ".intent.acme"},
		payments.LaneBulk:        {f.subjects.StreamBulk(), f.subjects.Prefix + ".bulk.acme"},
	} {
		var items []payments.OutboxItem
		for n := int64(1); n <= 130; n++ {
			items = append(items, intent(t, lane, n, fmt.Sprintf("%s-%d", lane, n)))
		}
		outbox := newOutbox(items...)
		sent, err := f.relay(t, outbox, nc, quickOf(lane)).RunOnce(testContext(t))
		if sent != len(items) || err != nil || outbox.left() != 0 {
			t.Fatalf("%s: sent %d, %v; %d left", lane, sent, err, outbox.left())
		}
		stored := f.stored(t, at.stream)
		if len(stored) != len(items) {
			t.Fatalf("%s: %d messages", lane, len(stored))
		}
		for i, m := range stored {
			if m.Subject != at.subject || !bytes.Equal(m.Data, items[i].Body) || m.Header.Get(schema.HeaderMsgID) != "" || m.Header.Get(jetstream.ExpectedStreamHeader) != at.stream {
				t.Fatalf("%s, %d: %s %v %s", lane, i, m.Subject, m.Header, m.Data)
			}
		}
	}
}

// TestEqualBodiesOfTwoTenants: the duplicate window knows neither tenant nor body, so
// nothing of an intent may depend on it.
func TestEqualBodiesOfTwoTenants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := intent(t, payments.LaneBulk, 1, "k"), intent(t, payments.LaneBulk, 2, "k")
	second.TenantID, second.Body = "globex", first.Body
	again := first
	again.ID = 3
	outbox := newOutbox(first, second, again)
	if sent, err := f.relay(t, outbox, connect(t, f.url), quickOf(payments.LaneBulk)).RunOnce(testContext(t)); sent != 3 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	if n := f.count(t, f.subjects.StreamBulk()); n != 3 {
		t.Errorf("%d messages are stored, want 3", n)
	}
}

// TestARelaySendsWhatItIsMadeFor: an item of another outbox is refused and holds up
// nobody.
func TestARelaySendsWhatItIsMadeFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	bulk, interactive := intent(t, payments.LaneBulk, 2, "k"), intent(t, payments.LaneInteractive, 3, "k")
	for name, c := range map[string]struct {
		lane   payments.Lane
		others []payments.OutboxItem
		own    payments.OutboxItem
		stream string
	}{
		"events":      {0, []payments.OutboxItem{bulk, interactive}, event(9), f.subjects.StreamEvents()},
		"bulk":        {payments.LaneBulk, []payments.OutboxItem{event(1), interactive}, bulk, f.subjects.StreamBulk()},
		"interactive": {payments.LaneInteractive, []payments.OutboxItem{event(1), bulk}, interactive, f.subjects.StreamIntents()},
	} {
		outbox := newOutbox(append(c.others, c.own)...)
		sent, err := f.relay(t, outbox, nc, quickOf(c.lane)).RunOnce(testContext(t))
		if sent != 1 || err == nil || outbox.left() != len(c.others) || f.count(t, c.stream) != 1 {
			t.Errorf("%s: sent %d, %v; %d left", name, sent, err, outbox.left())
		}
	}
}

// TestAFullStream: the items stay in the outbox, which is left alone meanwhile; the
// stream is asked with a few messages at a time; once there is room everything goes
// on by itself, what was let go of as well.
func TestAFullStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stream := f.subjects.StreamBulk()
	const n, fits = 4000, 100
	f.limit(t, stream, fits)
	items := children(t, 0, n)
	outbox := newOutbox(items...)
	var mu sync.Mutex
	var told []bool
	stuck, probes := make(chan struct{}, 10), make(chan int, 1000)
	opts := quickOf(payments.LaneBulk)
	opts.Hold = 50 * time.Millisecond
	opts.Observer = producer.RelayObserver{
		Stuck: func(at string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if at != stream || err != nil && !errors.Is(err, producer.ErrStreamFull) {
				t.Errorf("Stuck(%s, %v)", at, err)
			}
			told = append(told, err != nil)
			stuck <- struct{}{}
		},
		Failed: func(_ string, items int, _ error) {
			select {
			case probes <- items:
			default:
			}
		},
	}
	r := f.relay(t, outbox, connect(t, f.url), opts)
	stop := running(t, r)
	receive(t, stuck, "the word that the stream is full")
	for small := 0; small < 20; { // probes, of which none reached the outbox
		if receive(t, probes, "a probe") <= 8 {
			small++
		}
	}
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(time.Hour) }) // nobody's hold stands
	polls := outbox.polled()
	for range 20 {
		if items := receive(t, probes, "a probe"); items > 8 {
			t.Errorf("%d items were sent to a full stream", items)
		}
	}
	if after := outbox.polled(); after != polls || outbox.left() != n-fits || r.Idle() {
		t.Errorf("%d polls that could find nothing; %d left; idle: %v", after-polls, outbox.left(), r.Idle())
	}
	f.limit(t, stream, fits+50) // a little room: it is used, and then it is as before
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return len(o.rows) == n-fits-50 }); err != nil {
		t.Fatal(err)
	}
	f.limit(t, stream, -1)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
		o.now = o.now.Add(time.Second)
		return len(o.rows) == 0
	}); err != nil {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	stop()
	f.wantItems(t, stream, items, n) // holds run out while items are under way: at least once
	mu.Lock()
	defer mu.Unlock()
	for i, full := range told {
		if full != (i%2 == 0) {
			t.Errorf("told %v", told)
			break
		}
	}
	if len(told) < 2 || told[len(told)-1] {
		t.Errorf("told %v: nobody heard of its end", told)
	}
}

// TestAFullStreamHoldsUpNobodyElse: each outbox has its own relay.
func TestAFullStreamHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.limit(t, f.subjects.StreamBulk(), 1)
	nc := connect(t, f.url)
	full, free, facts := newOutbox(children(t, 0, 300)...), newOutbox(), newOutbox()
	stuck := make(chan struct{}, 1)
	opts := quickOf(payments.LaneBulk)
	opts.Observer.Stuck = func(string, error) {
		select {
		case stuck <- struct{}{}:
		default:
		}
	}
	running(t, f.relay(t, full, nc, opts))
	receive(t, stuck, "the word that the stream is full")
	interactive, outcomes := f.relay(t, free, nc, quickOf(payments.LaneInteractive)), f.relay(t, facts, nc, quick())
	running(t, interactive)
	running(t, outcomes)
	for i := int64(1); i <= 100; i++ {
		item := intent(t, payments.LaneInteractive, i, fmt.Sprint("k", i))
		free.add(item)
		interactive.Offer([]payments.OutboxItem{item})
		facts.add(event(i))
	}
	for _, outbox := range []*memoryOutbox{free, facts} {
		if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return len(o.rows) == 0 }); err != nil {
			t.Fatal(err)
		}
	}
	if full.left() != 299 {
		t.Errorf("%d left", full.left())
	}
}

// TestTheFinalPassOfAFullStream does not go through all that waits.
func TestTheFinalPassOfAFullStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.limit(t, f.subjects.StreamBulk(), 1)
	outbox := newOutbox(children(t, 0, 3000)...)
	var mu sync.Mutex
	failed := 0
	stuck := make(chan struct{}, 100)
	opts := quickOf(payments.LaneBulk)
	opts.RetryBase, opts.RetryCap = time.Hour, time.Hour
	opts.Jitter = func(limit time.Duration) time.Duration { return limit } // one try, and then the end
	opts.Observer = producer.RelayObserver{
		Stuck: func(string, error) { stuck <- struct{}{} },
		Failed: func(_ string, items int, _ error) {
			mu.Lock()
			defer mu.Unlock()
			failed += items
		},
	}
	r := f.relay(t, outbox, connect(t, f.url), opts)
	stop := running(t, r)
	receive(t, stuck, "the word that the stream is full")
	mu.Lock()
	failed = 0
	mu.Unlock()
	stop()
	mu.Lock()
	defer mu.Unlock()
	if failed > 8 || outbox.left() != 2999 {
		t.Errorf("the final pass tried %d; %d left", failed, outbox.left())
	}
	f.limit(t, f.subjects.StreamBulk(), -1)
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(time.Hour) })
	if sent, err := r.RunOnce(testContext(t)); sent != 2999 || err != nil || !r.Idle() {
		t.Errorf("then: sent %d, %v, idle: %v", sent, err, r.Idle())
	}
}

// TestIntentsOutliveARestartOfNATS, for which the items are offered, polled, and
// offered once more by a process that has died since.
func TestIntentsOutliveARestartOfNATS(t *testing.T) {
	t.Parallel()
	server := ownNATS(t)
	f := fixtureOn(t, server.URL(), 8<<20)
	nc := connect(t, f.url)
	down := nc.StatusChanged(nats.RECONNECTING)
	server.Stop()
	receive(t, down, "the loss of the connection")
	items := children(t, 0, 2000)
	outbox := newOutbox(items[:1000]...)
	var mu sync.Mutex
	deepest := 0
	stuck := make(chan error, 10)
	opts := quickOf(payments.LaneBulk)
	opts.MaxQueue, opts.Hold = 200, 20*time.Millisecond
	opts.Observer = producer.RelayObserver{
		Stuck: func(_ string, err error) { stuck <- err },
		Depth: func(items int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			deepest = max(deepest, items)
		},
	}
	r := f.relay(t, outbox, nc, opts)
	running(t, r)
	if err := receive(t, stuck, "the word that the stream is away"); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("Stuck(%v)", err)
	}
	outbox.add(items[1000:]...)
	r.Offer(items[1000:])
	if outbox.left() != 2000 || r.Idle() {
		t.Errorf("%d left without NATS, idle: %v", outbox.left(), r.Idle())
	}
	startAgain(t, server)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
		o.now = o.now.Add(time.Second)
		return len(o.rows) == 0
	}); err != nil {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantItems(t, f.subjects.StreamBulk(), items, 2)
	if mu.Lock(); deepest > 200 {
		t.Errorf("%d items were held, the queue has room for 200", deepest)
	}
	mu.Unlock()
}

// sharedOutbox is the outbox of one of two relays, neither of which is given anything before the other has asked.
type sharedOutbox struct {
	*memoryOutbox
	both  *sync.WaitGroup
	asked sync.Once
}

func (o *sharedOutbox) Pending(ctx context.Context, limit int, hold time.Duration) ([]payments.OutboxItem, error) {
	items, err := o.memoryOutbox.Pending(ctx, limit, hold)
	o.asked.Do(o.both.Done)
	o.both.Wait()
	return items, err
}

// TestTwoRelaysShareAnOutbox: whoever is given an item sends it, and nobody else.
func TestTwoRelaysShareAnOutbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	items := children(t, 0, 3000)
	outbox := newOutbox(items...)
	opts := quickOf(payments.LaneBulk)
	opts.MaxGroup, opts.MaxQueue = 50, 100 // so that neither can have everything
	var mu sync.Mutex
	var sent [2]int
	var both sync.WaitGroup
	both.Add(len(sent))
	for i := range sent {
		opts.Observer.Sent = func(_ string, n int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			sent[i] += n
		}
		running(t, f.relay(t, &sharedOutbox{memoryOutbox: outbox, both: &both}, connect(t, f.url), opts))
	}
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return len(o.rows) == 0 }); err != nil {
		t.Fatal(err)
	}
	f.wantItems(t, f.subjects.StreamBulk(), items, 1)
	eventually(t, "both relays' counts", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sent[0]+sent[1] == len(items) && sent[0] > 0 && sent[1] > 0
	})
}

// TestItemsOfADeadProcess: what it had been given, or had offered to its own relay,
// is sent by others when the hold is over.
func TestItemsOfADeadProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	items := children(t, 0, 60)
	outbox := newOutbox()
	outbox.commit(time.Minute, items[:30]...) // committed, and offered to a relay that never ran
	f.relay(t, outbox, nc, quickOf(payments.LaneBulk)).Offer(items[:30])
	outbox.add(items[30:]...)
	if given, err := outbox.Pending(context.Background(), 30, time.Minute); len(given) != 30 || err != nil { // and it died with these in hand
		t.Fatalf("%d, %v", len(given), err)
	}
	next := f.relay(t, outbox, nc, quickOf(payments.LaneBulk))
	if sent, err := next.RunOnce(testContext(t)); sent != 0 || err != nil {
		t.Fatalf("within the hold: sent %d, %v", sent, err)
	}
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(2 * time.Minute) })
	if sent, err := next.RunOnce(testContext(t)); sent != 60 || err != nil {
		t.Fatalf("after the hold: sent %d, %v", sent, err)
	}
	f.wantItems(t, f.subjects.StreamBulk(), items, 1)
}

// TestACrashAfterChild57ResumesAt58: a process publishes and settles 57 of a batch's
// hundred children and dies. The next one sends the other 43 and none of those.
func TestACrashAfterChild57ResumesAt58(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]int{"one by one": 1, "in groups": 19} { // 57 is three groups of 19
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			items := children(t, 0, 100)
			outbox := newOutbox()
			outbox.commit(time.Minute, items...)
			dead, died := make(chan struct{}), make(chan struct{})
			settled := 0
			outbox.onSent = func(ids []int64) {
				if settled += len(ids); settled == 57 {
					close(died)
				}
			}
			opts := quickOf(payments.LaneBulk)
			opts.MaxGroup, opts.Gather = group, time.Nanosecond
			opts.IdleMin, opts.IdleMax = time.Hour, time.Hour       // it polls at its start, and not once it is dead
			opts.Observer.Sent = func(string, int, time.Duration) { // the lane's own goroutine: here the process ends
				select {
				case <-died:
					<-dead
				default:
				}
			}
			nc := connect(t, f.url)
			first := f.relay(t, outbox, nc, opts)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- first.Run(ctx) }()
			if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return o.polls == 1 }); err != nil {
				t.Fatal(err)
			}
			first.Offer(items)
			receive(t, died, "57 children settled")
			eventually(t, "57 children in the stream", func() bool { return f.count(t, f.subjects.StreamBulk()) == 57 })
			t.Cleanup(func() { // a dead process is cut off before it may go on
				nc.Close()
				cancel()
				close(dead)
				if err := receive(t, ended, "the end of the first relay"); err != nil {
					t.Error(err)
				}
			})

			outbox.set(func(o *memoryOutbox) { o.now, o.onSent = o.now.Add(2*time.Minute), nil })
			second := f.relay(t, outbox, connect(t, f.url), quickOf(payments.LaneBulk))
			if sent, err := second.RunOnce(testContext(t)); sent != 43 || err != nil || outbox.left() != 0 {
				t.Fatalf("sent %d, %v; %d left", sent, err, outbox.left())
			}
			stored := f.stored(t, f.subjects.StreamBulk())
			if len(stored) != 100 {
				t.Fatalf("%d messages, want 100", len(stored))
			}
			for i, m := range stored {
				if !bytes.Equal(m.Data, items[i].Body) {
					t.Fatalf("message %d is %s", i, m.Data)
				}
			}
		})
	}
}

// TestNothingIsPolledWithoutAConnection, whatever the relay is for: what is polled could
// not leave, and would have to be polled again.
func TestNothingIsPolledWithoutAConnection(t *testing.T) {
	t.Parallel()
	server := ownNATS(t)
	f := fixtureOn(t, server.URL(), 8<<20)
	nc := connect(t, f.url)
	down := nc.StatusChanged(nats.RECONNECTING)
	server.Stop()
	receive(t, down, "the loss of the connection")
	outbox := newOutbox(events(1, 100)...) // and no dead letter
	stuck, failed := make(chan struct{}, 10), make(chan struct{}, 1000)
	opts := quick()
	opts.Hold = 10 * time.Millisecond
	opts.Observer.Stuck = func(string, error) { stuck <- struct{}{} }
	opts.Observer.Failed = func(string, int, error) {
		select {
		case failed <- struct{}{}:
		default:
		}
	}
	r := f.relay(t, outbox, nc, opts)
	running(t, r)
	receive(t, stuck, "the word that the stream is away")
	for range 3 {
		receive(t, failed, "a probe")
	}
	outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(time.Hour) })
	polls := outbox.polled()
	for len(failed) > 0 {
		<-failed
	}
	for range 10 {
		receive(t, failed, "a probe")
	}
	if after := outbox.polled(); after != polls {
		t.Errorf("%d polls without a connection", after-polls)
	}
	startAgain(t, server)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
		o.now = o.now.Add(time.Second)
		return len(o.rows) == 0
	}); err != nil {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.wantAll(t, 1, 100)
}

// TestFullDeadLettersHoldUpNoEvents, also those that nobody offers.
func TestFullDeadLettersHoldUpNoEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.limit(t, f.subjects.StreamDead(), 1)
	letters := make([]payments.OutboxItem, 50)
	for i := range letters {
		letters[i] = payments.OutboxItem{ID: int64(1000 + i), Kind: payments.OutboxDeadLetter, TenantID: "acme", Body: fmt.Appendf(nil, `{"id":"dl_%d"}`, i)}
	}
	outbox := newOutbox(letters...)
	stuck := make(chan struct{}, 10)
	opts := quick()
	opts.Observer.Stuck = func(string, error) { stuck <- struct{}{} }
	r := f.relay(t, outbox, connect(t, f.url), opts)
	running(t, r)
	receive(t, stuck, "the word that the stream is full")
	outbox.add(events(1, 200)...)
	if err := outbox.await(testContext(t), func(o *memoryOutbox) bool { return len(o.rows) == len(letters)-1 }); err != nil {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
	f.limit(t, f.subjects.StreamDead(), -1)
	if err := r.WaitEmpty(testContext(t)); err != nil || outbox.left() != 0 {
		t.Fatalf("%v; %d left", err, outbox.left())
	}
}
