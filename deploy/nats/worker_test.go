package nats_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

var lanes = []struct{ stream, subject, durable string }{
	{"PAYMENTS_INTENTS", "payments.intent.demo", schema.ConsumerIntent},
	{"PAYMENTS_BULK", "payments.bulk.demo", schema.ConsumerBulk},
}

// TestWorkerCanProvision: a worker makes and mends streams and durables at its start.
func TestWorkerCanProvision(t *testing.T) {
	t.Parallel()
	worker := ownCluster(t).as(t, "ONCEPAY")
	js, subjects := worker.jetstream(), schema.Subjects{}
	if _, err := js.AccountInfo(t.Context()); err != nil {
		t.Error(err)
	}
	differences, err := provision.Check(t.Context(), js, subjects.Streams(settings), subjects.Consumers(settings))
	if err != nil || len(differences) > 0 {
		t.Errorf("%v, %v", differences, err)
	}
	larger := settings
	larger.StreamMaxBytes, larger.AckWait = 65<<20, 31*time.Second
	if err := provision.Ensure(t.Context(), js, subjects.Streams(larger), subjects.Consumers(larger)); err != nil {
		t.Error(err)
	}
	for _, s := range subjects.Streams(larger) {
		stream, err := js.Stream(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if c := stream.CachedInfo().Config; c.MaxBytes != 65<<20 || c.Replicas != 3 || c.Storage != jetstream.FileStorage {
			t.Errorf("%s is %+v", s.Name, c)
		}
	}
	worker.quiet()
}

// TestWorkerCanWork goes through what a worker does to a lane: pull, ack, read one message, erase one, look at all durables, read in order
// beside them, and purge what is done.
func TestWorkerCanWork(t *testing.T) {
	t.Parallel()
	worker := ownCluster(t).as(t, "ONCEPAY")
	js, ctx := worker.jetstream(), t.Context()
	for _, l := range lanes {
		for i := range 5 {
			if _, err := js.Publish(ctx, l.subject, fmt.Appendf(nil, "message %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		stream, err := js.Stream(ctx, l.stream)
		if err != nil {
			t.Fatal(err)
		}
		durable, err := stream.Consumer(ctx, l.durable)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := durable.Fetch(5, jetstream.FetchMaxWait(patience))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for m := range batch.Messages() {
			n++
			if err := m.DoubleAck(ctx); err != nil {
				t.Error(err)
			}
		}
		if n != 5 || batch.Error() != nil {
			t.Errorf("%d messages were pulled, %v", n, batch.Error())
		}
		if err := stream.SecureDeleteMsg(ctx, 2); err != nil {
			t.Error(err)
		}
		if _, err := stream.GetMsg(ctx, 2); !errors.Is(err, jetstream.ErrMsgNotFound) {
			t.Errorf("an erased message is there: %v", err)
		}
		if m, err := stream.GetMsg(ctx, 3); err != nil || string(m.Data) != "message 2" {
			t.Errorf("got %v, %v", m, err)
		}
		var durables []string
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			durables = append(durables, info.Name)
		}
		if list.Err() != nil || !slices.Equal(durables, []string{l.durable}) {
			t.Errorf("durables %v, %v", durables, list.Err())
		}
		readInOrder(t, stream, 4)
		if err := stream.Purge(ctx, jetstream.WithPurgeSequence(5)); err != nil {
			t.Error(err)
		}
		if info, err := stream.Info(ctx); err != nil || info.State.FirstSeq != 5 {
			t.Errorf("after the purge: %+v, %v", info, err)
		}
	}
	worker.quiet()
}

// readInOrder reads n messages as the scout does, headers only, with a consumer that is deleted afterwards.
func readInOrder(t *testing.T, stream jetstream.Stream, n int) {
	t.Helper()
	reader, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		// A consumer that was made a moment ago may not be known on every node yet.
		if err := eventually(func() error { _, err := reader.Next(jetstream.FetchMaxWait(patience)); return err }); err != nil {
			t.Fatal(err)
		}
	}
	info, err := reader.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteConsumer(t.Context(), info.Name); err != nil {
		t.Error(err)
	}
}

// TestWorkerPublishes: intents in batches, outcome events and copies of dead letters; operators can listen to both and read them again.
func TestWorkerPublishes(t *testing.T) {
	t.Parallel()
	worker := sharedCluster(t).as(t, "ONCEPAY")
	js, ctx := worker.jetstream(), t.Context()
	publishMany(t, worker.Conn, "demo", "worker")
	if _, err := js.Publish(ctx, "payments.batch.demo", []byte("{}")); err != nil {
		t.Error(err)
	}
	for subject, name := range map[string]string{
		"payments.event.demo.payment-succeeded": "PAYMENTS_EVENTS", "payments.dead.demo": "PAYMENTS_DEAD", "payments.dead._unknown": "PAYMENTS_DEAD",
	} {
		heard, err := worker.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(ctx, subject, []byte("{}"))
		if err != nil || ack.Stream != name {
			t.Fatalf("%s: %v, %v", subject, ack, err)
		}
		if _, err := heard.NextMsg(patience); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, read := range []func() (*jetstream.RawStreamMsg, error){
			func() (*jetstream.RawStreamMsg, error) { return stream.GetMsg(ctx, ack.Sequence) },
			func() (*jetstream.RawStreamMsg, error) { return stream.GetLastMsgForSubject(ctx, subject) },
		} {
			// A follower that answers may be a moment behind the leader.
			if err := eventually(func() error { _, err := read(); return err }); err != nil {
				t.Errorf("%s: %v", subject, err)
			}
		}
	}
	worker.quiet()
}

// publishMany publishes enough through the library for atomic batches.
func publishMany(t *testing.T, nc *nats.Conn, tenant, run string) {
	t.Helper()
	publisher, err := producer.New(nc, schema.Subjects{}, producer.Options{AckTimeout: patience}) // also while leaders are elected
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	messages := make([]producer.Message, 300)
	for i := range messages {
		messages[i] = producer.Message{Lane: []payments.Lane{payments.LaneInteractive, payments.LaneBulk}[i%2], Intent: payments.Intent{
			TenantID: tenant, IdempotencyKey: fmt.Sprintf("%s-%d", run, i), Amount: 100, Currency: "usd", PaymentMethod: "pm_card_visa", OffSession: true,
		}}
	}
	for i, r := range publisher.PublishAll(t.Context(), messages) {
		if r.Err != nil || r.Outcome != producer.Stored {
			t.Fatalf("message %d of %s: %+v", i, tenant, r)
		}
	}
}

// TestWorkerCannot: what would lose payments or lead out of its account is not a worker's.
func TestWorkerCannot(t *testing.T) {
	t.Parallel()
	worker := sharedCluster(t).as(t, "ONCEPAY")
	for _, subject := range []string{
		"$JS.API.STREAM.DELETE.PAYMENTS_INTENTS", "$JS.API.STREAM.DELETE.PAYMENTS_EVENTS", "$JS.API.STREAM.PURGE.PAYMENTS_EVENTS", "$JS.API.STREAM.PURGE.PAYMENTS_DEAD",
		"$JS.API.STREAM.MSG.DELETE.PAYMENTS_EVENTS", "$JS.API.STREAM.RESTORE.PAYMENTS_INTENTS", "$JS.API.STREAM.CREATE.OTHER",
		"$JS.API.CONSUMER.DELETE.PAYMENTS_INTENTS.worker-intent", "$JS.API.CONSUMER.DELETE.PAYMENTS_BULK.worker-bulk",
		"$JS.API.META.LEADER.STEPDOWN", "$JS.API.SERVER.REMOVE", "$JS.API.ACCOUNT.PURGE.ONCEPAY", "$SYS.REQ.SERVER.PING", "_INBOX.somebody", "orders.new",
	} {
		if err := worker.PublishRequest(subject, nats.NewInbox(), nil); err != nil {
			t.Fatal(err)
		}
		worker.refused(subject)
	}
	for _, subject := range []string{">", "payments.>", "payments.intent.demo", "$JS.API.>", "$SYS.>", "_INBOX_other.>"} {
		if _, err := worker.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		worker.refused(subject)
	}
}
