package provision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

// wanted is the four streams and two consumers under a prefix of the test's own,
// small enough for one server to reserve all of them for many tests.
func wanted(tb testing.TB) ([]schema.Stream, []schema.Consumer) {
	tb.Helper()
	subjects, err := schema.NewSubjects(devstacktest.Prefix(tb))
	if err != nil {
		tb.Fatal(err)
	}
	settings := schema.DefaultSettings()
	settings.StreamMaxBytes = 8 << 20
	return subjects.Streams(settings), subjects.Consumers(settings)
}

func connect(tb testing.TB, url string, options ...nats.Option) jetstream.JetStream {
	tb.Helper()
	nc, err := nats.Connect(url, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return js
}

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func mustEnsure(tb testing.TB, js jetstream.JetStream, streams []schema.Stream, consumers []schema.Consumer) {
	tb.Helper()
	if err := provision.Ensure(testContext(tb), js, streams, consumers); err != nil {
		tb.Fatal(err)
	}
}

func mustPublish(tb testing.TB, js jetstream.JetStream, stream schema.Stream, n, size int) {
	tb.Helper()
	subject := strings.ReplaceAll(stream.Subjects[0], "*", "acme")
	for range n {
		if _, err := js.Publish(testContext(tb), subject, make([]byte, size), jetstream.WithExpectStream(stream.Name)); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestEnsureCreatesWhatIsDescribed(t *testing.T) {
	t.Parallel()
	ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)

	before, err := provision.Check(ctx, js, streams, consumers)
	if err != nil || len(before) != 6 {
		t.Fatalf("Check before: %v, %v; want the 6 objects reported missing", before, err)
	}
	for range 2 { // the second time changes nothing
		mustEnsure(t, js, streams, consumers)
		if after, err := provision.Check(ctx, js, streams, consumers); err != nil || len(after) != 0 {
			t.Fatalf("Check after: %v, %v", after, err)
		}
	}
	for _, s := range streams {
		stream, err := js.Stream(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		c := stream.CachedInfo().Config
		if c.MaxBytes != s.MaxBytes || c.MaxAge != s.MaxAge || c.Duplicates != s.DuplicateWindow || !c.AllowAtomicPublish ||
			c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage || c.AllowRollup || c.AllowMsgTTL || c.NoAck {
			t.Errorf("%s is %+v", s.Name, c)
		}
		if discard := c.Discard.String(); !strings.HasSuffix(strings.ToLower(discard), s.Discard) {
			t.Errorf("%s: discard is %s, want %s", s.Name, discard, s.Discard)
		}
		created, err := provision.StreamCreated(ctx, js, s.Name)
		if err != nil || !created.Equal(stream.CachedInfo().Created) || created.IsZero() {
			t.Errorf("StreamCreated(%s) = %v, %v", s.Name, created, err)
		}
	}
	for _, c := range consumers {
		consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
		if err != nil {
			t.Fatal(err)
		}
		got := consumer.CachedInfo().Config
		if got.AckWait != c.AckWait || got.MaxDeliver != -1 || got.MaxAckPending != c.MaxAckPending || got.AckPolicy != jetstream.AckExplicitPolicy || len(got.BackOff) != 0 {
			t.Errorf("%s is %+v", c.Durable, got)
		}
	}
}

func TestStreamCreatedOfNone(t *testing.T) {
	t.Parallel()
	js := connect(t, devstacktest.NATS(t).URL())
	if _, err := provision.StreamCreated(testContext(t), js, "NONE_"+devstacktest.Prefix(t)); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("err = %v", err)
	}
}

func TestEnsureBySeveralAtOnce(t *testing.T) {
	t.Parallel()
	ctx, url := testContext(t), devstacktest.NATS(t).URL()
	streams, consumers := wanted(t)
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		js := connect(t, url)
		all.Go(func() { errs[i] = provision.Ensure(ctx, js, streams, consumers) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if found, err := provision.Check(ctx, connect(t, url), streams, consumers); err != nil || len(found) != 0 {
		t.Fatalf("Check: %v, %v", found, err)
	}
}

func TestEnsureUpdatesWhatIsSafe(t *testing.T) {
	t.Parallel()
	ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)
	mustEnsure(t, js, streams, consumers)
	mustPublish(t, js, streams[0], 3, 100)

	consumer, err := js.Consumer(ctx, consumers[0].Stream, consumers[0].Durable)
	if err != nil {
		t.Fatal(err)
	}
	message, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := message.DoubleAck(ctx); err != nil {
		t.Fatal(err)
	}

	created, err := provision.StreamCreated(ctx, js, streams[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	streams[0].MaxBytes, streams[0].DuplicateWindow = 16<<20, time.Second
	consumers[0].AckWait = 7 * time.Second
	found, err := provision.Check(ctx, js, streams, consumers)
	if err != nil || len(found) != 3 {
		t.Fatalf("Check: %v, %v; want max_bytes, duplicate_window and ack_wait", found, err)
	}
	mustEnsure(t, js, streams, consumers)
	if found, err = provision.Check(ctx, js, streams, consumers); err != nil || len(found) != 0 {
		t.Fatalf("Check after: %v, %v", found, err)
	}
	if again, err := provision.StreamCreated(ctx, js, streams[0].Name); err != nil || !again.Equal(created) {
		t.Errorf("the stream was made anew: %v, %v", again, err)
	}
	info, err := consumer.Info(ctx)
	if err != nil || info.AckFloor.Stream != 1 || info.Delivered.Stream != 1 || info.NumPending != 2 {
		t.Errorf("the durable lost its position: %+v, %v", info, err)
	}
}

// TestDurablesPassNothingOver publishes under subjects that look like wildcards:
// JetStream stores such a message, and a filter would not match it.
func TestDurablesPassNothingOver(t *testing.T) {
	t.Parallel()
	ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)
	mustEnsure(t, js, streams, consumers)
	for i, durable := range consumers {
		consumer, err := js.Consumer(ctx, durable.Stream, durable.Durable)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range streams[i].Subjects {
			for _, last := range []string{"acme", "*", ">"} {
				subject := strings.TrimSuffix(pattern, "*") + last
				ack, err := js.Publish(ctx, subject, []byte("x"), jetstream.WithExpectStream(durable.Stream))
				if err != nil {
					t.Fatalf("%s: %v", subject, err)
				}
				message, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
				if err != nil {
					t.Fatalf("%s was stored as %d and not delivered: %v", subject, ack.Sequence, err)
				}
				if meta, err := message.Metadata(); err != nil || meta.Sequence.Stream != ack.Sequence || message.Subject() != subject {
					t.Errorf("got %s, %+v, %v; want %s, %d", message.Subject(), meta, err, subject, ack.Sequence)
				}
			}
		}
	}
}

// TestEnsureTakesFiltersAway: earlier durables had one.
func TestEnsureTakesFiltersAway(t *testing.T) {
	t.Parallel()
	ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)
	streams, consumers = streams[:1], consumers[:1]
	filtered := consumers[0]
	filtered.FilterSubjects = streams[0].Subjects
	mustEnsure(t, js, streams, []schema.Consumer{filtered})
	mustPublish(t, js, streams[0], 2, 10)
	consumer, err := js.Consumer(ctx, filtered.Stream, filtered.Durable)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	mustEnsure(t, js, streams, consumers)
	info, err := consumer.Info(ctx)
	if err != nil || info.Config.FilterSubject != "" || info.Config.FilterSubjects != nil || info.Delivered.Stream != 1 || info.NumPending != 1 {
		t.Errorf("got %+v, %v", info, err)
	}
}

// TestEnsureUndoesDrift covers settings that schema has no field for, since no
// other value is right.
func TestEnsureUndoesDrift(t *testing.T) {
	t.Parallel()
	ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)
	mustEnsure(t, js, streams, consumers)
	stream, err := js.Stream(ctx, streams[1].Name)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.AllowRollup, config.MaxMsgsPerSubject, config.Description = true, 5, "kept"
	if _, err := js.UpdateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(ctx, consumers[1].Stream, consumers[1].Durable)
	if err != nil {
		t.Fatal(err)
	}
	durable := consumer.CachedInfo().Config
	durable.BackOff, durable.InactiveThreshold = []time.Duration{time.Second, 2 * time.Second}, time.Hour
	if _, err := js.UpdateConsumer(ctx, consumers[1].Stream, durable); err != nil {
		t.Fatal(err)
	}
	found, err := provision.Check(ctx, js, streams, consumers)
	text := fmt.Sprint(found)
	for _, setting := range []string{"allow_rollup_hdrs", "max_msgs_per_subject", "backoff", "inactive_threshold"} {
		if err != nil || !strings.Contains(text, setting) {
			t.Errorf("Check: %v, %v; want %s in it", found, err, setting)
		}
	}
	mustEnsure(t, js, streams, consumers)
	if found, err := provision.Check(ctx, js, streams, consumers); err != nil || len(found) != 0 {
		t.Fatalf("Check after: %v, %v", found, err)
	}
	if stream, err = js.Stream(ctx, streams[1].Name); err != nil || stream.CachedInfo().Config.Description != "kept" {
		t.Errorf("what schema does not decide was changed: %v", err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change  func(js jetstream.JetStream, s *schema.Stream, c *schema.Consumer)
		is      error
		setting string
	}{
		"max bytes below what is stored": {func(_ jetstream.JetStream, s *schema.Stream, _ *schema.Consumer) { s.MaxBytes = 1 << 20 }, provision.ErrWouldLose, "max_bytes"},
		"fewer messages than are stored": {func(_ jetstream.JetStream, s *schema.Stream, _ *schema.Consumer) { s.MaxMsgs = 5 }, provision.ErrWouldLose, "max_msgs"},
		"an age that all have passed":    {func(_ jetstream.JetStream, s *schema.Stream, _ *schema.Consumer) { s.MaxAge = 100 * time.Millisecond }, provision.ErrWouldLose, "max_age"},
		"memory instead of files":        {func(_ jetstream.JetStream, s *schema.Stream, _ *schema.Consumer) { s.Storage = "memory" }, provision.ErrFixed, "storage"},
		"a work queue":                   {func(_ jetstream.JetStream, s *schema.Stream, _ *schema.Consumer) { s.Retention = "workqueue" }, provision.ErrFixed, "retention"},
		"another ack policy":             {func(_ jetstream.JetStream, _ *schema.Stream, c *schema.Consumer) { c.AckPolicy = "none" }, provision.ErrFixed, "ack_policy"},
		"deliveries from now":            {func(_ jetstream.JetStream, _ *schema.Stream, c *schema.Consumer) { c.DeliverPolicy = "new" }, provision.ErrFixed, "deliver_policy"},
		"a filter that moves on": {func(js jetstream.JetStream, _ *schema.Stream, c *schema.Consumer) {
			c.FilterSubjects = []string{"payments.intent.acme"}
		}, provision.ErrWouldLose, "filter_subjects"},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, js := testContext(t), connect(t, devstacktest.NATS(t).URL())
			streams, consumers := wanted(t)
			streams, consumers = streams[:1], consumers[:1]
			mustEnsure(t, js, streams, consumers)
			mustPublish(t, js, streams[0], 11, 100_000)
			consumer, err := js.Consumer(ctx, consumers[0].Stream, consumers[0].Durable)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if one.setting == "max_age" {
				waitOlder(t, js, streams[0].Name, 100*time.Millisecond)
			}
			one.change(js, &streams[0], &consumers[0])
			err = provision.Ensure(ctx, js, streams, consumers)
			if !errors.Is(err, one.is) || !strings.Contains(err.Error(), one.setting) {
				t.Fatalf("err = %v; want %v naming %s", err, one.is, one.setting)
			}
			stream, err := js.Stream(ctx, streams[0].Name)
			if err != nil || stream.CachedInfo().State.Msgs != 11 {
				t.Fatalf("the stream holds %+v, %v", stream.CachedInfo().State, err)
			}
		})
	}
}

// waitOlder returns once the stream's first message is older than age, by the
// server's clock.
func waitOlder(tb testing.TB, js jetstream.JetStream, name string, age time.Duration) {
	tb.Helper()
	ctx := testContext(tb)
	for ctx.Err() == nil {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			tb.Fatal(err)
		}
		if info := stream.CachedInfo(); info.TimeStamp.Sub(info.State.FirstTime) > age {
			return
		}
	}
	tb.Fatal("the message does not age")
}

func TestEnsureGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	js := connect(t, devstacktest.NATS(t).URL())
	streams, consumers := wanted(t)
	mustEnsure(t, js, streams[:1], nil)
	streams[0].Storage = "memory"
	if err := provision.Ensure(testContext(t), js, streams, consumers); !errors.Is(err, provision.ErrFixed) {
		t.Fatalf("err = %v", err)
	}
	found, err := provision.Check(testContext(t), js, streams, consumers)
	if err != nil || len(found) != 1 || found[0].Setting != "storage" {
		t.Fatalf("Check: %v, %v; want the storage alone", found, err)
	}
}

func TestEnsureNamesAWordThatJetStreamDoesNotKnow(t *testing.T) {
	t.Parallel()
	js := connect(t, devstacktest.NATS(t).URL())
	streams, _ := wanted(t)
	streams[0].Discard = "sometimes"
	err := provision.Ensure(testContext(t), js, streams[:1], nil)
	if err == nil || !strings.Contains(err.Error(), "discard") {
		t.Fatalf("err = %v", err)
	}
}

func TestEnsureWaitsForJetStream(t *testing.T) {
	t.Parallel()
	server, err := devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	js := connect(t, server.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	server.Stop()
	streams, consumers := wanted(t)

	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := provision.Ensure(short, js, streams, consumers); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("with the server away: %v", err)
	}
	done := make(chan error, 1)
	ctx := testContext(t)
	go func() { done <- provision.Ensure(ctx, js, streams, consumers) }()
	// While nobody listens, an outgoing connection may have the port for a moment.
	for err = server.Restart(); err != nil && ctx.Err() == nil; err = server.Restart() {
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
