package trim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

const mib = 1 << 20

// clock is the wall clock, moved.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// seen is what the observer was told.
type seen struct {
	mu       sync.Mutex
	messages uint64
	bytes    uint64
	steps    []uint64
	held     map[Why]int
}

func (s *seen) observer() Observer {
	return Observer{
		Trimmed: func(_ string, messages, bytes uint64) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.messages, s.bytes, s.steps = s.messages+messages, s.bytes+bytes, append(s.steps, messages)
		},
		Held: func(_ string, why Why) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.held == nil {
				s.held = map[Why]int{}
			}
			s.held[why]++
		},
	}
}

func (s *seen) heldBy(why Why) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[why]
}

func (s *seen) trimmed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages
}

// logText is a log that may be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with counts the lines that contain all words.
func (l *logText) with(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.text.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			n++
		}
	}
	return n
}

// rig is one stream on a real JetStream with the lane's durable, and a trimmer that does not run yet.
type rig struct {
	t      *testing.T
	ctx    context.Context
	js     jetstream.JetStream
	stream string
	config jetstream.StreamConfig
	clock  *clock
	seen   *seen
	log    *logText
	*Trimmer
}

const work = "worker-intent"

func connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(devstacktest.NATS(t).URL(), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func newRig(t *testing.T, maxBytes int64) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, js: connect(t), stream: strings.ToUpper(devstacktest.Prefix(t)), clock: &clock{}, seen: &seen{}, log: &logText{}}
	r.config = jetstream.StreamConfig{
		Name: r.stream, Subjects: []string{r.stream + ".>"}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxBytes: maxBytes,
		Storage: jetstream.FileStorage, Duplicates: 100 * time.Millisecond, AllowAtomicPublish: true,
	}
	r.makeStream()
	r.consumer(work)
	r.Trimmer = r.another()
	return r
}

// another is one more trimmer of the same stream, on a connection of its own.
func (r *rig) another() *Trimmer {
	r.t.Helper()
	trimmer, err := New(Config{
		JetStream: connect(r.t), Lanes: []Lane{{Stream: r.stream, Durable: work}}, Clock: r.clock,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Observer: r.seen.observer(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return trimmer
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) makeStream() {
	r.t.Helper()
	_, err := r.js.CreateStream(r.ctx, r.config)
	r.check(err)
}

func (r *rig) deleteStream() {
	r.t.Helper()
	r.check(r.js.DeleteStream(r.ctx, r.stream))
}

// consumer makes a durable that acks explicitly, unless it is changed.
func (r *rig) consumer(name string, change ...func(*jetstream.ConsumerConfig)) jetstream.Consumer {
	r.t.Helper()
	c := jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: 100_000}
	for _, f := range change {
		f(&c)
	}
	made, err := r.js.CreateConsumer(r.ctx, r.stream, c)
	r.check(err)
	return made
}

func (r *rig) deleteConsumer(name string) {
	r.t.Helper()
	r.check(r.js.DeleteConsumer(r.ctx, r.stream, name))
}

// publish stores n messages of the size on the stream.
func (r *rig) publish(n, size int, subject ...string) {
	r.t.Helper()
	const group = 1000 // the client takes 4000 at once
	for ; n > group; n -= group {
		r.publish(group, size, subject...)
	}
	where := r.stream + "." + strings.Join(append(subject, "x")[:1], "")
	body := bytes.Repeat([]byte("a"), size)
	futures := make([]jetstream.PubAckFuture, 0, n)
	for range n {
		future, err := r.js.PublishAsync(where, body)
		r.check(err)
		futures = append(futures, future)
	}
	for _, future := range futures {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			r.t.Fatal(err)
		case <-r.ctx.Done():
			r.t.Fatal(r.ctx.Err())
		}
	}
}

// take gives a consumer n messages.
func (r *rig) take(name string, n int) []jetstream.Msg {
	r.t.Helper()
	c, err := r.js.Consumer(r.ctx, r.stream, name)
	r.check(err)
	var got []jetstream.Msg
	for len(got) < n {
		batch, err := c.Fetch(n-len(got), jetstream.FetchMaxWait(30*time.Second))
		r.check(err)
		before := len(got)
		for msg := range batch.Messages() {
			got = append(got, msg)
		}
		r.check(batch.Error())
		if len(got) == before {
			r.t.Fatalf("consumer %s gave %d messages, want %d", name, len(got), n)
		}
	}
	return got
}

// ack acks all messages, and returns when the server knows.
func (r *rig) ack(messages ...jetstream.Msg) {
	r.t.Helper()
	for i, msg := range messages {
		if i == len(messages)-1 {
			r.check(msg.DoubleAck(r.ctx))
		} else {
			r.check(msg.Ack())
		}
	}
}

func (r *rig) state() jetstream.StreamState {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, r.stream)
	r.check(err)
	return s.CachedInfo().State
}

func (r *rig) once() {
	r.t.Helper()
	r.check(r.RunOnce(r.ctx))
}

// wantFirst fails unless the stream begins with the sequence.
func (r *rig) wantFirst(want uint64) {
	r.t.Helper()
	if s := r.state(); s.FirstSeq != want {
		r.t.Errorf("the stream begins with %d (ends with %d, %d bytes), want %d", s.FirstSeq, s.LastSeq, s.Bytes, want)
	}
}

// fill brings a stream of 1 MiB to 80% with 80 messages, one percent each.
func (r *rig) fill() { r.t.Helper(); r.publish(80, percent) }

// percent is the body of a message that takes 1% of a stream of 1 MiB.
const percent = mib/100 - 90

func TestAStreamThatIsNotFullKeepsItsHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(69, percent)
	r.ack(r.take(work, 69)...)
	r.once()
	r.wantFirst(1)
	if r.seen.trimmed() != 0 || len(r.seen.held) != 0 {
		t.Errorf("trimmed %d, held %v", r.seen.trimmed(), r.seen.held)
	}
}

func TestAFullStreamIsTrimmedToHalfOldestFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	r.once()
	s := r.state()
	if s.Bytes > mib/2 || s.Bytes < mib*45/100 || s.LastSeq != 80 || s.Msgs != s.LastSeq-s.FirstSeq+1 {
		t.Errorf("the stream has %d to %d, %d messages, %d bytes; want half", s.FirstSeq, s.LastSeq, s.Msgs, s.Bytes)
	}
	if n := r.seen.trimmed(); n != s.FirstSeq-1 || r.seen.bytes < n*percent || r.seen.bytes > n*mib/100 {
		t.Errorf("%d messages of %d bytes observed, want %d", n, r.seen.bytes, s.FirstSeq-1)
	}
	r.once()
	r.wantFirst(s.FirstSeq)
}

func TestOneStuckMessageHoldsAllThatIsAckedAfterIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	got := r.take(work, 80)
	r.ack(got[:4]...)
	r.ack(got[5:]...)
	r.once()
	r.wantFirst(5)
	r.once()
	if r.seen.heldBy(HeldUnacked) != 2 || len(r.seen.held) != 1 {
		t.Errorf("held %v, want twice by the unacked message", r.seen.held)
	}
	if n := r.log.with("level=WARN", "not acked", "sequence=5 ", "consumer="+work, "stream="+r.stream); n != 1 {
		t.Errorf("told %d times, want once a minute: %s", n, r.log.text.String())
	}
	r.clock.move(warnEvery)
	r.once()
	if n := r.log.with("level=WARN", "sequence=5 "); n != 2 {
		t.Errorf("told %d times after a minute, want twice", n)
	}
	r.ack(got[4])
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left though all is acked", s.Bytes)
	}
	if r.log.with("level=INFO", "nothing keeps") != 1 {
		t.Error("the end of the hold was not told")
	}
}

func TestTheStuckMessageIsNamedThoughThoseBeforeItWereErased(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	got := r.take(work, 80)
	r.ack(got[:4]...)
	r.ack(got[7:]...)
	s, err := r.js.Stream(r.ctx, r.stream)
	r.check(err)
	r.check(s.SecureDeleteMsg(r.ctx, 5))
	r.check(s.SecureDeleteMsg(r.ctx, 6))
	r.once()
	r.wantFirst(7)
	if r.log.with("level=WARN", "sequence=7 ") != 1 {
		t.Errorf("the unacked message is not named: %s", r.log.text.String())
	}
}

func TestWorkThatIsNotDoneIsNeverTrimmedAndRefusesRightly(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(95, percent)
	r.take(work, 10) // delivered and not acked
	r.once()
	r.wantFirst(1)
	if r.seen.heldBy(HeldBacklog) != 1 || r.log.with("level=WARN", "not done yet", "pending=85") != 1 {
		t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
	}
	_, err := r.js.Publish(r.ctx, r.stream+".x", make([]byte, mib/10))
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || !strings.Contains(refused.Description, "maximum bytes") {
		t.Errorf("a full stream answered %v", err)
	}
}

// Between the two marks there is nothing to complain of.
func TestAStreamThatIsDownFromFullIsNotHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 20)...)
	r.once()
	r.wantFirst(21)
	if len(r.seen.held) != 0 {
		t.Errorf("held %v at 60%%", r.seen.held)
	}
}

func TestTheNewestMessageStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(10, 100)
	r.ack(r.take(work, 10)...)
	r.clock.move(KeepFor + time.Minute)
	r.once()
	r.wantFirst(10)
	r.once()
	if r.seen.trimmed() != 9 || len(r.seen.held) != 0 {
		t.Errorf("trimmed %d, held %v", r.seen.trimmed(), r.seen.held)
	}
}

func TestAnAckedMessageThatFillsTheStreamAloneGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(1, mib*8/10)
	r.once()
	r.wantFirst(1)
	r.ack(r.take(work, 1)...)
	r.once()
	if s := r.state(); s.Msgs != 0 || s.LastSeq != 1 {
		t.Errorf("%d messages are left, the last sequence is %d", s.Msgs, s.LastSeq)
	}
	r.publish(1, mib*8/10)
	r.ack(r.take(work, 1)...)
	r.once()
	if s := r.state(); s.LastSeq != 2 {
		t.Errorf("the last sequence is %d", s.LastSeq)
	}
}

func TestWhatIsOlderThanThreeDaysGoesUpToTheFloor(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(20, 100)
	old := r.take(work, 20)
	r.ack(old[:15]...)
	r.clock.move(KeepFor - time.Minute)
	r.once()
	r.wantFirst(1)
	r.clock.move(2 * time.Minute)
	r.once()
	r.wantFirst(16)
	if r.seen.heldBy(HeldBacklog) != 1 {
		t.Errorf("held %v, want once by work older than what is kept", r.seen.held)
	}
	r.ack(old[15:]...)
	r.once()
	r.wantFirst(20)
}

// Not every look is for what has aged, and one that is not says nothing of a hold by it.
func TestWhatHasAgedIsLookedForOnceAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(20, 100)
	got := r.take(work, 20)
	r.clock.move(KeepFor + time.Minute)
	searches := 0
	r.tap(func(subject string) error {
		if strings.Contains(subject, "MSG.GET") {
			searches++
		}
		return nil
	})
	look := func(wantSearched bool, wantHeld int) {
		t.Helper()
		before := searches
		if _, err := r.lanes[0].round(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		if searched := searches > before; searched != wantSearched || r.seen.heldBy(HeldBacklog) != wantHeld {
			t.Errorf("searched %v, held %v; want %v and %d", searched, r.seen.held, wantSearched, wantHeld)
		}
	}
	look(true, 1)
	look(false, 1)
	if r.log.with("nothing keeps") != 0 {
		t.Error("the end of a hold was told that goes on")
	}
	r.clock.move(lookCalm)
	look(true, 2)
	r.ack(got...)
	look(false, 2)
	r.wantFirst(1)
	r.clock.move(lookCalm)
	look(true, 2)
	r.wantFirst(20)
	if r.log.with("nothing keeps") != 1 {
		t.Error("the end of the hold was not told")
	}
	r.clock.move(-30 * time.Second) // set right: the last look was in the future
	look(true, 2)
}

// The clock cannot be moved back before a message was stored, so what is young is made by keeping for less.
func TestTheAgeOfEachMessageCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, -1)
	r.publish(300, 100)
	s, err := r.js.Stream(r.ctx, r.stream)
	r.check(err)
	r.check(s.DeleteMsg(r.ctx, 299)) // a gap at the border
	old, err := s.GetMsg(r.ctx, 300)
	r.check(err)
	for time.Since(old.Time) < 50*time.Millisecond { // the server's clock is ours
		r.publish(1, 100)
		r.check(s.DeleteMsg(r.ctx, r.state().LastSeq))
	}
	r.publish(200, 100)
	young := r.state().LastSeq - 199
	first, err := s.GetMsg(r.ctx, young)
	r.check(err)
	r.ack(r.take(work, 499)...)
	r.clock.move(KeepFor - time.Since(first.Time) - time.Millisecond)
	for range 100 {
		l := r.lanes[0]
		cutoff := first.Time.Add(-time.Millisecond)
		state, err := l.look(r.ctx)
		r.check(err)
		if _, _, err = l.trim(r.ctx, state, cutoff); err != nil {
			t.Fatal(err)
		}
		if r.state().FirstSeq >= young {
			break
		}
	}
	r.wantFirst(young)
}

func TestNoStepIsLongerThanTenThousand(t *testing.T) {
	t.Parallel()
	r := newRig(t, -1)
	r.publish(12_000, 1)
	r.ack(r.take(work, 12_000)...)
	r.clock.move(KeepFor + time.Minute)
	r.lanes[0].pace.size = stepMax
	r.once()
	r.wantFirst(12_000)
	if len(r.seen.steps) < 2 || r.seen.steps[0] != stepMax {
		t.Errorf("steps of %v", r.seen.steps)
	}
}

func TestTwoTrimmersAtOnceAreHarmless(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.publish(3000, mib/100/40)
	got := r.take(work, 3000)
	r.ack(got[:2500]...)
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		trimmer := r.another()
		trimmer.lanes[0].pace.size = stepMin
		all.Go(func() { errs[i] = trimmer.RunOnce(r.ctx) })
	}
	all.Wait()
	r.check(errors.Join(errs...))
	s := r.state()
	if s.FirstSeq > 2501 || s.Bytes > mib*70/100 {
		t.Errorf("the stream begins with %d and has %d bytes", s.FirstSeq, s.Bytes)
	}
	for _, msg := range got[2500:] {
		r.ack(msg)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	js := connect(t)
	buffers, err := nats.Connect(devstacktest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(buffers.Close)
	keeps, err := jetstream.New(buffers)
	if err != nil {
		t.Fatal(err)
	}
	lanes := []Lane{{Stream: "S", Durable: "d"}}
	for name, c := range map[string]Config{
		"JetStream and Clock are required": {Lanes: lanes},
		"nats.ReconnectBufSize(-1)":        {JetStream: keeps, Clock: &clock{}, Lanes: lanes},
		"Lanes is empty":                   {JetStream: js, Clock: &clock{}},
		"KeepFor":                          {JetStream: js, Clock: &clock{}, Lanes: lanes, KeepFor: -time.Hour},
		"cannot be a lane":                 {JetStream: js, Clock: &clock{}, Lanes: []Lane{{Stream: "S.>", Durable: "d"}}},
		"named twice":                      {JetStream: js, Clock: &clock{}, Lanes: append(lanes, lanes...)},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New: %v, want an error with %q", err, name)
		}
	}
	if _, err := New(Config{JetStream: js, Clock: &clock{}, Lanes: lanes}); err != nil {
		t.Errorf("New: %v", err)
	}
}

func TestDomainsAndPrefixesAreAsked(t *testing.T) {
	t.Parallel()
	nc := connect(t).Conn()
	domain, err := jetstream.NewWithDomain(nc, "hub")
	if err != nil {
		t.Fatal(err)
	}
	prefix, err := jetstream.NewWithAPIPrefix(nc, "acme.api")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintln(newAPI(domain).prefix, newAPI(prefix).prefix, newAPI(connect(t)).prefix); got != "$JS.hub.API. acme.api. $JS.API.\n" {
		t.Errorf("prefixes %s", got)
	}
}
