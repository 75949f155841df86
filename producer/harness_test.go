package producer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
	"go.uber.org/goleak"
)

// A server that is stopped while it opens a batch leaves that batch's file store
// behind, with three goroutines of its own; none of them is ours.
func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	devstacktest.Run(m,
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}

// fixture is a server with the streams of one prefix, and a connection that is not
// the code under test's.
type fixture struct {
	url      string
	subjects schema.Subjects
	js       jetstream.JetStream
}

// newFixture provisions the streams on the test binary's server.
func newFixture(tb testing.TB) fixture {
	tb.Helper()
	return fixtureOn(tb, devstacktest.NATS(tb).URL(), 8<<20)
}

func fixtureOn(tb testing.TB, url string, maxBytes int64) fixture {
	tb.Helper()
	subjects, err := schema.NewSubjects(devstacktest.Prefix(tb))
	if err != nil {
		tb.Fatal(err)
	}
	js, err := jetstream.New(connect(tb, url))
	if err != nil {
		tb.Fatal(err)
	}
	settings := schema.DefaultSettings()
	settings.StreamMaxBytes = maxBytes
	streams := subjects.Streams(settings)
	tb.Cleanup(func() { // their bytes are reserved
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, s := range streams {
			_ = js.DeleteStream(ctx, s.Name)
		}
	})
	if err := provision.Ensure(testContext(tb), js, streams, nil); err != nil {
		tb.Fatal(err)
	}
	return fixture{url: url, subjects: subjects, js: js}
}

// ownNATS is a server that the test may stop.
func ownNATS(tb testing.TB) *devstack.NATS {
	tb.Helper()
	server, err := devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { server.Close() })
	return server
}

// startAgain starts the server again. While nobody listens, an outgoing connection of
// any process may have the port for a moment.
func startAgain(tb testing.TB, server *devstack.NATS) {
	tb.Helper()
	ctx := testContext(tb)
	for {
		err := server.Restart()
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "address already in use") {
			tb.Fatal(err)
		}
	}
}

func connect(tb testing.TB, url string, options ...nats.Option) *nats.Conn {
	tb.Helper()
	options = append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(time.Millisecond, time.Millisecond), nats.ReconnectBufSize(-1), nats.Timeout(patience)}, options...)
	nc, err := nats.Connect(url, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	return nc
}

// patience bounds every wait of a test: what does not come by then never will.
const patience = 2 * time.Minute

// receive waits for a value, and fails the test when none comes.
func receive[T any](tb testing.TB, ch <-chan T, what string) T {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		tb.Fatalf("%s: nothing came within %v", what, patience)
		panic("unreachable")
	}
}

// eventually waits until something holds that no signal tells of.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for ctx := testContext(tb); !holds(); {
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not within %v", what, patience)
		case <-time.After(time.Millisecond):
		}
	}
}

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

func (f fixture) publisher(tb testing.TB, nc *nats.Conn, opts producer.Options) *producer.Publisher {
	tb.Helper()
	p, err := producer.New(nc, f.subjects, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// stored reads everything that a stream holds.
func (f fixture) stored(tb testing.TB, stream string) []*jetstream.RawStreamMsg {
	tb.Helper()
	ctx := testContext(tb)
	s, err := f.js.Stream(ctx, stream)
	if err != nil {
		tb.Fatal(err)
	}
	n := s.CachedInfo().State.Msgs
	if n == 0 {
		return nil
	}
	reader, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	messages, err := reader.Messages()
	if err != nil {
		tb.Fatal(err)
	}
	defer messages.Stop()
	out := make([]*jetstream.RawStreamMsg, 0, n)
	for range n {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			tb.Fatal(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, &jetstream.RawStreamMsg{Subject: m.Subject(), Sequence: meta.Sequence.Stream, Header: m.Headers(), Data: m.Data()})
	}
	return out
}

func (f fixture) count(tb testing.TB, stream string) int {
	tb.Helper()
	if _, err := provision.StreamCreated(testContext(tb), f.js, stream); err != nil { // waits for a server that comes back
		tb.Fatal(err)
	}
	s, err := f.js.Stream(testContext(tb), stream)
	if err != nil {
		tb.Fatal(err)
	}
	return int(s.CachedInfo().State.Msgs)
}

func charge(tenant, key string, amount int64) producer.Message {
	return producer.Message{Intent: payments.Intent{
		TenantID: tenant, IdempotencyKey: key, Amount: amount, Currency: "USD", PaymentMethod: "pm_card_visa", OffSession: true,
		Metadata: map[string]string{"order": "1"},
	}}
}

func wantNotStored(tb testing.TB, r producer.Result, again bool, text string) {
	tb.Helper()
	if r.Outcome != producer.NotStored || !producer.IsNotStored(r.Err) || producer.MayBeStored(r.Err) ||
		producer.Retryable(r.Err) != again || !strings.Contains(r.Err.Error(), text) {
		tb.Fatalf("%v, %v (again: %v); want not stored, again: %v, with %q in it", r.Outcome, r.Err, producer.Retryable(r.Err), again, text)
	}
}

func wantUnknown(tb testing.TB, r producer.Result) {
	tb.Helper()
	if r.Outcome != producer.Unknown || producer.IsNotStored(r.Err) || !producer.MayBeStored(r.Err) || !producer.Retryable(r.Err) {
		tb.Fatalf("%v, %v; want unknown", r.Outcome, r.Err)
	}
}

// startSmall is a server whose largest message has 4 KiB.
func startSmall(tb testing.TB) string {
	tb.Helper()
	server, err := devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true, MaxPayload: 4 << 10})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { server.Close() })
	return server.URL()
}

// storedWhenBack is stored for a server that has just been started again.
func (f fixture) storedWhenBack(tb testing.TB, stream string) []*jetstream.RawStreamMsg {
	tb.Helper()
	if _, err := provision.StreamCreated(testContext(tb), f.js, stream); err != nil {
		tb.Fatal(err)
	}
	return f.stored(tb, stream)
}

// keys is how often each key stands in a stream, and which one at each sequence.
func (f fixture) keys(tb testing.TB, stream string) (there map[string]int, at map[uint64]string) {
	tb.Helper()
	there, at = map[string]int{}, map[uint64]string{}
	for _, m := range f.storedWhenBack(tb, stream) {
		in, err := schema.DecodeIntent(m.Data)
		if err != nil {
			tb.Fatal(err)
		}
		there[in.IdempotencyKey.Value]++
		at[m.Sequence] = in.IdempotencyKey.Value
	}
	return there, at
}
