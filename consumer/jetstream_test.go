package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// field is a rig on a real JetStream, with streams of its own.
type field struct {
	*rig
	nc       *nats.Conn
	js       jetstream.JetStream
	settings schema.Settings
	stop     context.CancelFunc
	ended    chan error
}

func connectTo(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(devstacktest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// newField makes the streams, with the shortest AckWait, and a worker that does not run yet.
func newField(t *testing.T, change ...func(*Config)) *field {
	t.Helper()
	f := &field{nc: connectTo(t), settings: schema.Settings{StreamMaxBytes: 64 << 20, Replicas: 1, AckWait: time.Second}}
	var err error
	if f.js, err = jetstream.New(f.nc); err != nil {
		t.Fatal(err)
	}
	subjects, err := schema.NewSubjects(devstacktest.Prefix(t))
	if err != nil {
		t.Fatal(err)
	}
	own := func(c *Config) { c.JetStream, c.Subjects = f.js, subjects }
	f.rig = newRig(t, append([]func(*Config){own}, change...)...)
	f.provision()
	return f
}

func (f *field) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), standstill)
	f.t.Cleanup(cancel)
	return ctx
}

func (f *field) provision() {
	f.t.Helper()
	if err := provision.Ensure(f.ctx(), f.js, f.Subjects.Streams(f.settings), f.Subjects.Consumers(f.settings)); err != nil {
		f.t.Fatal(err)
	}
}

// run starts the worker; the test's end stops it.
func (f *field) run() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.ended = cancel, make(chan error, 1)
	go func() { f.ended <- f.Run(ctx, 20*time.Second); close(f.ended) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-f.ended; err != nil {
			f.t.Errorf("Run: %v", err)
		}
		if f.slots.inUse() != 0 || f.gate.inside != 0 {
			f.t.Errorf("left over: %d slots, %d places", f.slots.inUse(), f.gate.inside)
		}
	})
}

func (f *field) publish(l payments.Lane, body []byte, headers ...string) {
	f.t.Helper()
	msg := nats.NewMsg(f.subject(l, "acme"))
	msg.Data = body
	for i := 0; i+1 < len(headers); i += 2 {
		msg.Header[headers[i]] = append(msg.Header[headers[i]], headers[i+1])
	}
	if _, err := f.js.PublishMsg(f.ctx(), msg); err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) subject(l payments.Lane, tenant string) string {
	f.t.Helper()
	of := f.Subjects.Intent
	if l == payments.LaneBulk {
		of = f.Subjects.Bulk
	}
	subject, err := of(tenant)
	if err != nil {
		f.t.Fatal(err)
	}
	return subject
}

func (f *field) info(l payments.Lane) *jetstream.ConsumerInfo {
	f.t.Helper()
	stream, name := f.Subjects.StreamIntents(), schema.ConsumerIntent
	if l == payments.LaneBulk {
		stream, name = f.Subjects.StreamBulk(), schema.ConsumerBulk
	}
	c, err := f.js.Consumer(f.ctx(), stream, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return c.CachedInfo()
}

// quiet reports whether every message of the lane is acked.
func (f *field) quiet(l payments.Lane) bool {
	i := f.info(l)
	return i.NumPending == 0 && i.NumAckPending == 0
}

func key(i int) string { return "k" + strconv.Itoa(i) }

// Fault 1: calls that take longer than AckWait. No more is pulled than there are slots for, and a redelivery finds its row.
func TestNoMoreIsPulledThanThereAreSlots(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.Concurrency = 8 })
	f.gateway.submit = takes(1300 * time.Millisecond)
	const n = 20
	for i := range n {
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
	}
	f.run()
	waitFor(t, "all outcomes and acks", func() bool {
		if p := f.info(payments.LaneInteractive).NumAckPending; p > 8 {
			t.Fatalf("%d messages held with 8 slots", p)
		}
		return f.store.outcomes() == n && f.quiet(payments.LaneInteractive)
	})
	all, most := f.gateway.calls()
	if all != n || most != 1 || f.store.outcomes() != n || f.gateway.atOnce() > 8 || len(f.store.open()) != 0 {
		t.Errorf("%d calls, %d under one key, %d outcomes, %d at once", all, most, f.store.outcomes(), f.gateway.atOnce())
	}
	if f.info(payments.LaneInteractive).Delivered.Consumer <= n {
		t.Error("nothing was delivered twice: the test shows nothing")
	}
}

// A backlog of slow bulk payments does not hold up a checkout.
func TestBulkBacklogDoesNotDelayACheckout(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.Concurrency = 64 })
	slow := takes(60 * time.Millisecond)
	f.gateway.submit = func(ctx context.Context, p payments.Payment) {
		if strings.HasPrefix(p.IdempotencyKey, "k") {
			slow(ctx, p)
		}
	}
	const n = 2000
	for i := range n {
		if _, err := f.js.PublishAsync(f.subject(payments.LaneBulk, "acme"), intentJSON(key(i))); err != nil {
			t.Fatal(err)
		}
	}
	<-f.js.PublishAsyncComplete()
	f.run()
	waitFor(t, "the backlog to be at work", func() bool { return f.store.outcomes() > 100 })
	for i := range 5 {
		id := testIntent("checkout" + strconv.Itoa(i)).ID()
		f.publish(payments.LaneInteractive, intentJSON("checkout"+strconv.Itoa(i)))
		waitFor(t, "a checkout", func() bool { return f.store.status(id) == payments.StatusSucceeded })
	}
	// One that had waited behind the backlog would have its outcome after it.
	if done := f.store.outcomes(); done >= n {
		t.Errorf("%d outcomes of %d before the last checkout", done, n)
	}
	waitFor(t, "the backlog's end", func() bool { return f.store.outcomes() == n+5 })
	if _, most := f.gateway.calls(); most != 1 {
		t.Errorf("%d calls under one key", most)
	}
}

// A message that comes to an idle worker is worked on at once, and an idle worker asks for little.
func TestIdle(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.PollInterval = 0 }) // the default
	var requests atomic.Int64
	sub, err := f.nc.Subscribe("$JS.API.>", func(m *nats.Msg) {
		if strings.Contains(m.Subject, f.Subjects.StreamIntents()) || strings.Contains(m.Subject, f.Subjects.StreamBulk()) {
			requests.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f.run()
	waitFor(t, "the first poll", func() bool { return f.store.count("take") >= 2 })
	if n := f.InFlight(); n != 0 {
		t.Errorf("an idle worker is busy with %d payments", n)
	}
	const span = 2500 * time.Millisecond
	before, takes := requests.Load(), f.store.count("take")
	time.Sleep(span) // the span is what is measured
	perSecond := float64(requests.Load()-before+int64(f.store.count("take")-takes)) / span.Seconds()
	if perSecond > 20 || requests.Load() == before {
		t.Errorf("%.1f calls per second", perSecond)
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	late := stalls()
	for i := range 15 {
		id := testIntent(key(i)).ID()
		started := time.Now()
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
		waitFor(t, "an outcome", func() bool { return f.store.status(id) == payments.StatusSucceeded })
		times = append(times, time.Since(started))
		time.Sleep(90 * time.Millisecond) // so that some meet the end of a pull
	}
	slices.Sort(times)
	stood := late()
	t.Logf("%.1f calls per second; from publish to outcome: median %v, most %v; the machine stood for %v", perSecond, times[7], times[14], stood)
	// One that waited for the end of an open pull would take half of it at the median.
	if times[7] > pullExpiry/4+stood {
		t.Errorf("from publish to outcome: %v", times)
	}
}

// While the store is away pulling slows to a probe, nothing is acked or buried, and everything goes on when it is back.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	f := newField(t)
	var away atomic.Bool
	away.Store(true)
	f.store.before = func(string, payments.ID) error {
		if away.Load() {
			return errAway
		}
		return nil
	}
	const n = 40
	for i := range n {
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
	}
	f.publish(payments.LaneInteractive, []byte("?"))
	f.run()
	waitFor(t, "a few probes", func() bool { return f.info(payments.LaneInteractive).Delivered.Consumer >= 7 })
	if i := f.info(payments.LaneInteractive); i.AckFloor.Consumer != 0 || i.Delivered.Consumer > 12 || len(f.store.open()) != 0 {
		t.Errorf("acked up to %d, delivered %d", i.AckFloor.Consumer, i.Delivered.Consumer)
	}
	away.Store(false)
	waitFor(t, "all outcomes", func() bool { return f.store.outcomes() == n && f.quiet(payments.LaneInteractive) })
	letters := f.store.open()
	if _, most := f.gateway.calls(); most != 1 || len(letters) != 1 || letters[0].Reason != payments.ReasonUndecodable {
		t.Errorf("%d calls under one key, %+v", most, letters)
	}
}

// While every Admit fails, although PostgreSQL is there, the backlog is not pulled into failure.
func TestBrokenStore(t *testing.T) {
	t.Parallel()
	f := newField(t)
	var broken atomic.Bool
	broken.Store(true)
	f.store.before = func(verb string, _ payments.ID) error {
		if verb == "admit" && broken.Load() {
			return payments.Errorf(payments.CodeInternal, "column does not exist")
		}
		return nil
	}
	const n = 300
	for i := range n {
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
	}
	f.run()
	waitFor(t, "a few failures", func() bool { return f.store.count("admit") >= brokenFrom })
	failed := f.store.count("admit")
	waitFor(t, "two probes", func() bool { return f.store.count("admit") >= failed+2 })
	if d := f.info(payments.LaneInteractive).Delivered.Consumer; d > brokenFrom+20 {
		t.Errorf("%d messages were pulled into failure", d)
	}
	broken.Store(false)
	waitFor(t, "all outcomes", func() bool { return f.store.outcomes() == n && f.quiet(payments.LaneInteractive) })
	if _, most := f.gateway.calls(); most != 1 || len(f.store.open()) != 0 {
		t.Errorf("%d calls under one key, %+v", most, f.store.open())
	}
}

// Drain: what is in flight finishes, what was pulled and not started is stored for others, and nothing is left unsaid.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := newField(t)
	release := make(chan struct{})
	f.gateway.submit = func(ctx context.Context, _ payments.Payment) {
		select {
		case <-release:
		case <-ctx.Done():
			t.Error("a call to Stripe was cut off")
		}
	}
	f.run()
	f.publish(payments.LaneInteractive, intentJSON("in-flight"))
	waitFor(t, "a call", func() bool { all, _ := f.gateway.calls(); return all == 1 })
	// The gate is shut by one who waits to be alone, so what is pulled now is not started.
	alone := f.gate.queueAlone()
	for i := range 3 {
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
	}
	waitFor(t, "three more messages held", func() bool { return f.info(payments.LaneInteractive).NumAckPending == 4 })
	f.stop()
	waitFor(t, "the drain's beginning", f.stopping.Load)
	f.gate.giveUp(alone)
	waitFor(t, "three acks", func() bool { return f.info(payments.LaneInteractive).NumAckPending == 1 })
	for i := range 3 {
		f.store.mu.Lock()
		row := f.store.rows[testIntent(key(i)).ID()]
		if row == nil || !row.ticket || !row.token.IsZero() {
			t.Errorf("%d: %+v", i, row)
		}
		f.store.mu.Unlock()
	}
	select {
	case err := <-f.ended:
		t.Fatalf("ended with a call in flight: %v", err)
	default:
	}
	close(release)
	if err := <-f.ended; err != nil {
		t.Fatal(err)
	}
	if all, _ := f.gateway.calls(); all != 1 || f.store.status(testIntent("in-flight").ID()) != payments.StatusSucceeded {
		t.Errorf("%d calls", all)
	}
	waitFor(t, "the last ack", func() bool { return f.quiet(payments.LaneInteractive) })
}

// When the drain time is over calls to Stripe are ended, as unknown, and that is recorded.
func TestDrainTimeOver(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.gateway.submit = func(ctx context.Context, _ payments.Payment) { <-ctx.Done() }
	f.gateway.observe = func(payments.Payment) payments.Observation {
		return payments.Observation{Kind: payments.ObservedUnclear, Account: testAccount}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx, 50*time.Millisecond) }()
	f.publish(payments.LaneInteractive, intentJSON("k"))
	waitFor(t, "a call", func() bool { all, _ := f.gateway.calls(); return all == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("a drain that was not complete is no success")
	}
	if s := f.store.status(testIntent("k").ID()); s != payments.StatusUnknown {
		t.Errorf("recorded %s", s)
	}
}

func (f *field) remake(stream string) time.Time {
	f.t.Helper()
	if err := f.js.DeleteStream(f.ctx(), stream); err != nil {
		f.t.Fatal(err)
	}
	f.provision()
	created, err := provision.StreamCreated(f.ctx(), f.js, stream)
	if err != nil {
		f.t.Fatal(err)
	}
	return created
}

// A stream that is made anew counts from 1 again: its dead letters must not be taken for those of the old one.
func TestStreamMadeAnew(t *testing.T) {
	t.Parallel()
	for _, silently := range []bool{false, true} { // silently: no pull was open that the server could have ended
		t.Run(fmt.Sprintf("silently %v", silently), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			stream := f.Subjects.StreamIntents()
			f.run()
			f.publish(payments.LaneInteractive, []byte("old"))
			waitFor(t, "a dead letter", func() bool { return len(f.store.open()) == 1 })
			if silently {
				for taken := 0; taken < f.Concurrency; {
					taken += f.slots.acquire(f.ctx(), payments.LaneInteractive, forMessages, f.Concurrency-taken)
				}
			}
			created := f.remake(stream)
			f.publish(payments.LaneInteractive, []byte("new"))
			f.publish(payments.LaneInteractive, intentJSON("k"))
			if silently {
				f.slots.release(payments.LaneInteractive, forMessages, f.Concurrency)
			}
			waitFor(t, "the new stream's messages", func() bool {
				return len(f.store.open()) == 2 && f.store.outcomes() == 1 && f.quiet(payments.LaneInteractive)
			})
			letters := f.store.open()
			slices.SortFunc(letters, func(a, b payments.DeadLetter) int { return a.Origin.StreamCreated.Compare(b.Origin.StreamCreated) })
			if string(letters[0].Payload) != "old" || string(letters[1].Payload) != "new" || letters[0].Origin.Sequence != 1 || letters[1].Origin.Sequence != 1 ||
				!letters[1].Origin.StreamCreated.Equal(created) || letters[0].Origin.StreamCreated.Equal(created) {
				t.Errorf("%+v", letters)
			}
		})
	}
}

func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	f := newField(t, logTo(log))
	f.run()
	f.publish(payments.LaneBulk, intentJSON("k"))
	waitFor(t, "an outcome", func() bool { return f.store.outcomes() == 1 })
	if err := f.js.DeleteConsumer(f.ctx(), f.Subjects.StreamBulk(), schema.ConsumerBulk); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a clear word", func() bool {
		return strings.Contains(log.String(), "consumer="+schema.ConsumerBulk) && strings.Contains(log.String(), "stream="+f.Subjects.StreamBulk())
	})
	f.publish(payments.LaneInteractive, intentJSON("other"))
	waitFor(t, "the other lane's outcome", func() bool { return f.store.outcomes() == 2 })
	f.provision()
	f.publish(payments.LaneBulk, intentJSON("k2"))
	waitFor(t, "an outcome after it is back", func() bool { return f.store.outcomes() == 3 && f.quiet(payments.LaneBulk) })
	if all, most := f.gateway.calls(); all != 3 || most != 1 {
		t.Errorf("%d calls, %d under one key", all, most)
	}
}

// A message with a card number is erased from its stream before its ack, and erasing it again is no fault.
func TestCardMessageIsErased(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	f := newField(t, logTo(log))
	body := []byte(`{"idempotency_key":"k","card":"` + card + `"}`)
	f.publish(payments.LaneInteractive, body)
	f.publish(payments.LaneInteractive, intentJSON("fine"))
	f.publish(payments.LaneInteractive, intentJSON("header"), "X-Card", "4242 4242 4242 4242")
	f.run()
	waitFor(t, "two dead letters and an outcome", func() bool {
		return len(f.store.open()) == 2 && f.store.outcomes() == 1 && f.quiet(payments.LaneInteractive)
	})
	stream, err := f.js.Stream(f.ctx(), f.Subjects.StreamIntents())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range f.store.open() {
		if _, err := stream.GetMsg(f.ctx(), l.Origin.Sequence); !errors.Is(err, jetstream.ErrMsgNotFound) {
			t.Errorf("message %d is still there: %v", l.Origin.Sequence, err)
		}
		if l.Reason != payments.ReasonCardNumber || l.Payload != nil || l.Headers != nil || l.Origin.Subject != "" || l.PayloadLength == 0 {
			t.Errorf("%+v", l)
		}
		m := held{from: &origin{stream: stream}, origin: l.Origin}
		if err := erase(f.ctx(), m); err != nil {
			t.Errorf("erasing it again: %v", err)
		}
	}
	if _, err := stream.GetMsg(f.ctx(), 2); err != nil {
		t.Errorf("an innocent message: %v", err)
	}
	if holdsCard([]byte(log.String())) {
		t.Errorf("logged: %s", log)
	}
}

// Many producers, many repeats, two workers: one call and one outcome each.
func TestTwoWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.Concurrency = 12 })
	second := newRig(t, func(c *Config) {
		c.JetStream, c.Subjects, c.Store, c.Concurrency = f.js, f.Subjects, f.store, 12
		c.Processor.Store, c.Processor.Gateway = f.store, f.gateway
		c.NewToken = func() payments.Token { token := f.NewToken(); token[0] = 2; return token }
	})
	f.gateway.submit = takes(2 * time.Millisecond)
	const n = 150
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for i := range n {
				f.publish(payments.Lane(p%2+1), intentJSON(key(i)))
			}
		})
	}
	f.run()
	(&field{rig: second}).run()
	producers.Wait()
	waitFor(t, "all outcomes", func() bool {
		return f.store.outcomes() == n && f.quiet(payments.LaneInteractive) && f.quiet(payments.LaneBulk)
	})
	if all, most := f.gateway.calls(); all != n || most != 1 || f.store.outcomes() != n || len(f.store.open()) != 0 {
		t.Errorf("%d calls, %d under one key, %d outcomes", all, most, f.store.outcomes())
	}
}
