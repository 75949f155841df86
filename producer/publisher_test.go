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
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestPublishStores(t *testing.T) {
	t.Parallel()
	ctx, f := testContext(t), newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	m := charge("acme", "order-1", 9900)
	m.Traceparent = traceparent
	r, err := p.Publish(ctx, m)
	if err != nil || r.Outcome != producer.Stored || r.Stream != f.subjects.StreamIntents() || r.Sequence != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.PaymentID.String() != "pay_af5f4f1841e88ebcae502028d51c062c" {
		t.Errorf("payment id %v", r.PaymentID)
	}
	m.Lane, m.Traceparent = payments.LaneBulk, "not a trace\r\nEvil: 1"
	if r, err = p.Publish(ctx, m); err != nil || r.Stream != f.subjects.StreamBulk() {
		t.Fatalf("bulk: %+v, %v", r, err)
	}
	interactive, bulk := f.stored(t, f.subjects.StreamIntents()), f.stored(t, f.subjects.StreamBulk())
	if len(interactive) != 1 || len(bulk) != 1 {
		t.Fatalf("%d and %d messages", len(interactive), len(bulk))
	}
	subject, _ := f.subjects.Intent("acme")
	if got := interactive[0]; got.Subject != subject || got.Header.Get(schema.HeaderTraceparent) != traceparent || got.Header.Get(schema.HeaderMsgID) != "" {
		t.Errorf("interactive: %s, %v", got.Subject, got.Header)
	}
	if got := bulk[0]; got.Header.Get(schema.HeaderTraceparent) != "" || !bytes.Equal(got.Data, interactive[0].Data) {
		t.Errorf("bulk: %v %s", got.Header, got.Data)
	}
	in, err := schema.DecodeIntent(interactive[0].Data)
	if err != nil || in.Currency.Value != "usd" || in.Amount.Value != 9900 || in.IdempotencyKey.Value != "order-1" ||
		!in.OffSession.Value || in.Metadata["order"] != "1" || in.Customer.Set || in.ExpiresAt.Set {
		t.Errorf("on the wire: %+v, %v", in, err)
	}
}

// TestFollowUpsAreStored: captures, cancels and refunds go the same way, and say on the wire what was asked for.
func TestFollowUpsAreStored(t *testing.T) {
	t.Parallel()
	ctx, f := testContext(t), newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	of := payments.NewID("acme", "order-1").String()
	for key, intent := range map[string]payments.Intent{
		`{"idempotency_key":"capture-1","kind":"capture","payment_id":"` + of + `"}`:                               {IdempotencyKey: "capture-1", Kind: payments.KindCapture, All: true},
		`{"idempotency_key":"cancel-1","kind":"cancel","payment_id":"` + of + `","reason":"abandoned"}`:            {IdempotencyKey: "cancel-1", Kind: payments.KindCancel, Reason: "abandoned"},
		`{"idempotency_key":"refund-1","kind":"refund","payment_id":"` + of + `","amount":5,"metadata":{"a":"b"}}`: {IdempotencyKey: "refund-1", Kind: payments.KindRefund, Amount: 5, Metadata: map[string]string{"a": "b"}},
	} {
		intent.TenantID, intent.PaymentID = "acme", of
		r, err := p.Publish(ctx, producer.Message{Intent: intent, Lane: payments.LaneInteractive})
		if err != nil || r.Outcome != producer.Stored {
			t.Fatalf("%s: %+v, %v", intent.Kind, r, err)
		}
		stored := f.stored(t, f.subjects.StreamIntents())
		if got := string(stored[len(stored)-1].Data); got != key {
			t.Errorf("%s, want %s", got, key)
		}
	}
}

func TestTraceparentFromTheContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{Traceparent: func(ctx context.Context) string {
		s, _ := ctx.Value(key{}).(string)
		return s
	}})
	if _, err := p.Publish(context.WithValue(testContext(t), key{}, traceparent), charge("acme", "k", 100)); err != nil {
		t.Fatal(err)
	}
	if got := f.stored(t, f.subjects.StreamIntents())[0].Header.Get(schema.HeaderTraceparent); got != traceparent {
		t.Errorf("traceparent %q", got)
	}
}

// TestOneKeyOfTwoTenants is the fault that a Nats-Msg-Id made of the key causes:
// the second message is dropped and acknowledged. So is the second body of one
// tenant, which must reach the intake as a conflict.
func TestOneKeyOfTwoTenants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	began := time.Now()
	for i, r := range p.PublishAll(testContext(t), []producer.Message{
		charge("tenant-a", "order-1", 100), charge("tenant-b", "order-1", 100), charge("tenant-a", "order-1", 999), charge("tenant-a", "order-1", 100),
	}) {
		if r.Outcome != producer.Stored || r.Sequence != uint64(i+1) {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Logf("took %v; the duplicate window is shorter", took)
	}
	if n := f.count(t, f.subjects.StreamIntents()); n != 4 {
		t.Errorf("%d messages are stored, want 4", n)
	}
}

func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	p := f.publisher(t, nc, producer.Options{})
	cases := map[string]struct {
		change func(*producer.Message)
		field  string
		reason payments.Reason
	}{
		"no key":         {func(m *producer.Message) { m.Intent.IdempotencyKey = "" }, "idempotency_key", payments.ReasonKeyMissing},
		"spaces in key":  {func(m *producer.Message) { m.Intent.IdempotencyKey = "a b" }, "idempotency_key", payments.ReasonKeyInvalid},
		"reserved key":   {func(m *producer.Message) { m.Intent.IdempotencyKey = "batch::1" }, "idempotency_key", payments.ReasonKeyInvalid},
		"no tenant":      {func(m *producer.Message) { m.Intent.TenantID = "" }, "tenant_id", payments.ReasonInvalid},
		"wildcard":       {func(m *producer.Message) { m.Intent.TenantID = "*" }, "tenant_id", payments.ReasonInvalid},
		"two tokens":     {func(m *producer.Message) { m.Intent.TenantID = "a.b" }, "tenant_id", payments.ReasonInvalid},
		"amount":         {func(m *producer.Message) { m.Intent.Amount = -1 }, "amount", payments.ReasonInvalid},
		"currency":       {func(m *producer.Message) { m.Intent.Currency = "usx" }, "currency", payments.ReasonInvalid},
		"payment method": {func(m *producer.Message) { m.Intent.PaymentMethod = "" }, "payment_method", payments.ReasonInvalid},
		"our metadata":   {func(m *producer.Message) { m.Intent.Metadata = map[string]string{"oncepay_payment": "x"} }, "metadata", payments.ReasonInvalid},
		"no payment": {func(m *producer.Message) {
			m.Intent = payments.Intent{TenantID: "acme", IdempotencyKey: "r", Kind: payments.KindRefund, All: true}
		}, "payment_id", payments.ReasonInvalid},
		"a refund's":  {func(m *producer.Message) { m.Intent.Kind = payments.KindRefund }, "payment_method", payments.ReasonInvalid},
		"card number": {func(m *producer.Message) { m.Intent.Description = "pay with 4242 4242 4242 4242" }, "description", payments.ReasonCardNumber},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			m := charge("acme", "order-1", 100)
			one.change(&m)
			r, err := p.Publish(testContext(t), m)
			wantNotStored(t, r, false, one.field)
			var v *payments.ValidationError
			if !errors.As(err, &v) || v.Reason != one.reason {
				t.Errorf("err = %v; want a ValidationError for %s", err, one.reason)
			}
			if strings.Contains(err.Error(), "4242") {
				t.Errorf("the error repeats the card number: %v", err)
			}
		})
	}
	m := charge("acme", "order-1", 100)
	m.Lane = 7
	r, _ := p.Publish(testContext(t), m)
	wantNotStored(t, r, false, "lane")
	if out := nc.Stats().OutMsgs; out != 0 {
		t.Errorf("%d messages left", out)
	}
}

func TestNotStoredWhenTheStreamIsFull(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, devstacktest.NATS(t).URL(), 1<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	m := charge("acme", "k", 100)
	m.Intent.Metadata = map[string]string{}
	for i := range 46 {
		m.Intent.Metadata[fmt.Sprintf("name-%02d", i)] = strings.Repeat("x", 500)
	}
	var all []producer.Message
	for i := range 60 {
		m.Intent.IdempotencyKey = fmt.Sprintf("order-%d", i)
		all = append(all, m)
	}
	stored, full := 0, 0
	for _, r := range p.PublishAll(testContext(t), all) {
		switch r.Outcome {
		case producer.Stored:
			stored++
		default:
			wantNotStored(t, r, true, "full")
			full++
		}
	}
	if n := f.count(t, f.subjects.StreamIntents()); n != stored || stored == 0 || full == 0 {
		t.Errorf("%d said to be stored, %d refused, %d in the stream", stored, full, n)
	}
}

func TestNotStoredWithoutItsStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.url)
	missing := fixture{subjects: schema.Subjects{Prefix: devstacktest.Prefix(t)}}.publisher(t, nc, producer.Options{})
	r, _ := missing.Publish(testContext(t), charge("acme", "k", 100))
	wantNotStored(t, r, true, "no stream")

	// A stream that took our subject and is not the one we mean.
	other := schema.Subjects{Prefix: devstacktest.Prefix(t)}
	if _, err := f.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "OTHER_" + other.StreamIntents(), Subjects: []string{other.Prefix + ".>"}, MaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	r, _ = fixture{subjects: other}.publisher(t, nc, producer.Options{}).Publish(testContext(t), charge("acme", "k", 100))
	wantNotStored(t, r, false, "another stream")
	if n := f.count(t, "OTHER_"+other.StreamIntents()); n != 0 {
		t.Errorf("the other stream holds %d messages", n)
	}
}

func TestNotStoredWithoutAConnection(t *testing.T) {
	t.Parallel()
	server := ownNATS(t)
	f := fixtureOn(t, server.URL(), 8<<20)
	nc := connect(t, f.url, nats.ReconnectBufSize(8<<20)) // which would keep messages, and send them later
	const within = time.Minute                            // which nobody waits for who has no connection
	p := f.publisher(t, nc, producer.Options{AckTimeout: within})
	down := nc.StatusChanged(nats.RECONNECTING)
	server.Stop()
	receive(t, down, "the loss of the connection")
	before := nc.Stats().OutMsgs
	r, _ := p.Publish(testContext(t), charge("acme", "k", 100))
	wantNotStored(t, r, true, "no connection")
	began := time.Now()
	for _, r := range p.PublishAll(testContext(t), charges("k", 3000, payments.LaneInteractive)) {
		wantNotStored(t, r, true, "no connection")
	}
	if took := time.Since(began); took > within/2 {
		t.Errorf("it took %v to say that there is no connection", took)
	}
	if nc.Stats().OutMsgs != before {
		t.Error("a message was buffered")
	}
	up := nc.StatusChanged(nats.CONNECTED)
	startAgain(t, server)
	receive(t, up, "a new connection")
	publishUntilStored(t, p, charge("acme", "k", 100))
	if n := f.count(t, f.subjects.StreamIntents()); n != 1 {
		t.Errorf("%d messages are stored, want 1", n)
	}
}

// publishUntilStored repeats what a producer is told to repeat.
func publishUntilStored(tb testing.TB, p *producer.Publisher, m producer.Message) {
	tb.Helper()
	ctx := testContext(tb)
	for {
		r, err := p.Publish(ctx, m)
		if r.Outcome == producer.Stored {
			return
		}
		if !producer.Retryable(err) || ctx.Err() != nil {
			tb.Fatal(err)
		}
	}
}

func TestNotStoredWhenTooLargeForTheServer(t *testing.T) {
	t.Parallel()
	server := startSmall(t)
	f := fixtureOn(t, server, 8<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	m := charge("acme", "k", 100)
	m.Intent.Metadata = map[string]string{}
	for i := range 20 {
		m.Intent.Metadata[fmt.Sprint(i)] = strings.Repeat("x", 500)
	}
	results := p.PublishAll(testContext(t), []producer.Message{m, charge("acme", "k2", 100)})
	wantNotStored(t, results[0], false, "max_payload")
	if results[1].Outcome != producer.Stored {
		t.Errorf("the one behind it: %+v", results[1])
	}
}

// TestUnknownWhenTheAnswerIsLost cuts the connection after the server has the
// message: it is stored, and its producer must not be told that it is not.
func TestUnknownWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := devstacktest.NewProxy(t, f.url)
	nc := connect(t, devstacktest.Via(t, f.url, proxy.Addr()))
	p := f.publisher(t, nc, producer.Options{})
	if _, err := p.Publish(testContext(t), charge("acme", "warm-up", 100)); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	proxy.OnClientData(func(chunk []byte) devstacktest.Action {
		action := devstacktest.Forward
		if bytes.Contains(chunk, []byte("HPUB")) {
			once.Do(func() { action = devstacktest.ForwardThenCut })
		}
		return action
	})
	r, _ := p.Publish(testContext(t), charge("acme", "k", 100))
	wantUnknown(t, r)
	if !errors.Is(r.Err, nats.ErrDisconnected) {
		t.Errorf("%v; want to know at once that the connection was lost", r.Err)
	}
	publishUntilStored(t, p, charge("acme", "k", 100))
	if n := f.count(t, f.subjects.StreamIntents()); n != 3 {
		t.Errorf("%d messages are stored, want the warm-up, the one nobody knew of and its repeat", n)
	}
}

// TestUnknownWhenNobodyAnswers takes the subject away from JetStream: a listener
// that says nothing stands for a server that is too slow.
func TestUnknownWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	silent := fixture{subjects: schema.Subjects{Prefix: devstacktest.Prefix(t)}}
	subject, _ := silent.subjects.Intent("acme")
	listener := connect(t, f.url)
	arrived := make(chan *nats.Msg, 16)
	if _, err := listener.ChanSubscribe(subject, arrived); err != nil {
		t.Fatal(err)
	}
	if err := listener.Flush(); err != nil {
		t.Fatal(err)
	}
	nc := connect(t, f.url)

	t.Run("in time", func(t *testing.T) {
		r, _ := silent.publisher(t, nc, producer.Options{AckTimeout: 50 * time.Millisecond}).Publish(testContext(t), charge("acme", "k", 100))
		wantUnknown(t, r)
		receive(t, arrived, "the message")
	})
	t.Run("and the caller would leave", func(t *testing.T) {
		const within = 300 * time.Millisecond
		p := silent.publisher(t, nc, producer.Options{AckTimeout: within})
		ctx, cancel := context.WithCancel(testContext(t))
		done := make(chan producer.Result, 1)
		began := time.Now()
		go func() {
			r, _ := p.Publish(ctx, charge("acme", "k", 100))
			done <- r
		}()
		receive(t, arrived, "the message")
		cancel()
		wantUnknown(t, receive(t, done, "the result"))
		if took := time.Since(began); took < within {
			t.Errorf("the caller left after %v: while its message is under way it is told what became of it", took)
		}
	})
	t.Run("and others wait for room", func(t *testing.T) {
		p := silent.publisher(t, nc, producer.Options{MaxQueue: 1, AckTimeout: patience})
		first := make(chan producer.Result, 1)
		go func() {
			r, _ := p.Publish(testContext(t), charge("acme", "k1", 100))
			first <- r
		}()
		unanswered := receive(t, arrived, "the message")
		ctx, cancel := context.WithCancelCause(testContext(t))
		second := make(chan producer.Result, 1)
		go func() {
			r, _ := p.Publish(ctx, charge("acme", "k2", 100))
			second <- r
		}()
		eventually(t, "a caller that waits for room", func() bool { return p.Waiting() == 1 })
		why := errors.New("the customer has left")
		cancel(why)
		r := receive(t, second, "the second result")
		wantNotStored(t, r, true, "before the message was sent")
		if !errors.Is(r.Err, producer.ErrNotSent) || !errors.Is(r.Err, why) {
			t.Errorf("%v; want ErrNotSent and the cause", r.Err)
		}
		if err := unanswered.Respond([]byte("nothing that says what became of it")); err != nil {
			t.Fatal(err)
		}
		wantUnknown(t, receive(t, first, "the first result"))
		select {
		case <-arrived:
			t.Error("the second message was sent")
		default:
		}
	})
}

func TestACallerThatHasLeftSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range p.PublishAll(ctx, []producer.Message{charge("acme", "a", 100), charge("acme", "b", 100)}) {
		wantNotStored(t, r, true, "before the message was sent")
	}
	if n := f.count(t, f.subjects.StreamIntents()); n != 0 {
		t.Errorf("%d messages are stored", n)
	}
}

// TestPublishAllKeepsOrderBeyondItsWindow sends far more than may be in flight,
// with one bad message among them.
func TestPublishAllKeepsOrderBeyondItsWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{MaxGroup: 7})
	const n, bad = 300, 123
	var messages []producer.Message
	for i := range n {
		messages = append(messages, charge("acme", fmt.Sprintf("k-%d", i), 100))
	}
	messages[bad].Intent.Amount = 0
	var all sync.WaitGroup
	for range 3 { // several callers share the window
		all.Go(func() {
			last := uint64(0)
			for i, r := range p.PublishAll(testContext(t), messages) {
				if i == bad {
					if r.Outcome != producer.NotStored {
						t.Errorf("the bad one: %+v", r)
					}
					continue
				}
				if r.Outcome != producer.Stored || r.Sequence <= last || r.PaymentID != messages[i].Intent.ID() {
					t.Errorf("message %d: %+v after sequence %d", i, r, last)
				}
				last = r.Sequence
			}
		})
	}
	all.Wait()
	if got := f.count(t, f.subjects.StreamIntents()); got != 3*(n-1) {
		t.Errorf("%d messages are stored, want %d", got, 3*(n-1))
	}
}

// TestServerRestartedInFlight holds every result against the stream: what is said
// to be stored is there, what is said not to be is not.
func TestServerRestartedInFlight(t *testing.T) {
	t.Parallel()
	for _, window := range []int{15, 50, 1000} { // singly, and in batches
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			t.Parallel()
			restartInFlight(t, window)
		})
	}
}

func restartInFlight(t *testing.T, window int) {
	server := ownNATS(t)
	f := fixtureOn(t, server.URL(), 64<<20)
	p := f.publisher(t, connect(t, f.url), producer.Options{MaxGroup: window})
	const n = 3000
	var messages []producer.Message
	for i := range n {
		messages = append(messages, charge("acme", fmt.Sprintf("k-%d", i), 100))
	}
	done := make(chan []producer.Result, 1)
	go func() { done <- p.PublishAll(testContext(t), messages) }()
	eventually(t, "a hundred messages in the stream", func() bool { return f.count(t, f.subjects.StreamIntents()) >= 100 })
	startAgain(t, server)
	results := receive(t, done, "the results")
	counts := map[producer.Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
	}
	there, at := f.keys(t, f.subjects.StreamIntents())
	for i, r := range results {
		switch key := messages[i].Intent.IdempotencyKey; {
		case r.Outcome == producer.Stored && at[r.Sequence] != key:
			t.Errorf("%s is said to be stored as message %d, and there stands %q", key, r.Sequence, at[r.Sequence])
		case r.Outcome == producer.NotStored && there[key] != 0:
			t.Errorf("%s is said not to be stored, and is there: %v", key, r.Err)
		}
	}
	t.Logf("outcomes: %v", counts)
	if counts[producer.Stored]+counts[producer.Unknown] < 100 || len(there) < 100 {
		t.Errorf("%v, %d in the stream: too few were sent for a test of anything", counts, len(there))
	}
	for i, r := range results {
		if r.Outcome != producer.Stored {
			publishUntilStored(t, p, messages[i])
			break // one is enough to see that it goes on
		}
	}
}

func TestAClosedPublisherSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	p.Close()
	r, _ := p.Publish(testContext(t), charge("acme", "k", 100))
	wantNotStored(t, r, false, "closed")
}

func TestNewRefusesAPrefix(t *testing.T) {
	t.Parallel()
	if _, err := producer.New(nil, schema.Subjects{Prefix: "a.*"}, producer.Options{}); !errors.Is(err, schema.ErrSubject) {
		t.Fatalf("err = %v", err)
	}
}

func TestErrorsOfOthersMayBeStored(t *testing.T) {
	t.Parallel()
	if !producer.MayBeStored(errors.New("anything")) || producer.MayBeStored(nil) || producer.IsNotStored(nil) || producer.Retryable(nil) {
		t.Error("only a proof makes a message not stored")
	}
}

// TestPublishAllInBatches mixes lanes and bad messages into far more than one
// batch.
func TestPublishAllInBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.publisher(t, connect(t, f.url), producer.Options{})
	const n = 2345
	var messages []producer.Message
	for i := range n {
		m := charge("acme", fmt.Sprintf("k-%d", i), int64(100+i))
		switch i % 10 {
		case 3:
			m.Lane = payments.LaneBulk
		case 7:
			m.Intent.Currency = ""
		}
		messages = append(messages, m)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i, r := range p.PublishAll(testContext(t), messages) {
				want, stream := producer.Stored, f.subjects.StreamIntents()
				switch i % 10 {
				case 3:
					stream = f.subjects.StreamBulk()
				case 7:
					want, stream = producer.NotStored, ""
				}
				if r.Outcome != want || r.Stream != stream || r.PaymentID != messages[i].Intent.ID() {
					t.Errorf("message %d: %+v", i, r)
					continue
				}
				if want != producer.Stored {
					continue
				}
				if i%97 != 0 {
					continue
				}
				s, err := f.js.Stream(testContext(t), stream)
				if err != nil {
					t.Error(err)
					continue
				}
				there, err := s.GetMsg(testContext(t), r.Sequence)
				if err != nil {
					t.Errorf("message %d: %v", i, err)
					continue
				}
				if in, err := schema.DecodeIntent(there.Data); err != nil || in.IdempotencyKey.Value != messages[i].Intent.IdempotencyKey {
					t.Errorf("message %d: another one stands at its sequence %d", i, r.Sequence)
				}
			}
		})
	}
	all.Wait()
	wantBulk, wantInteractive := 0, 0
	for i := range n {
		switch i % 10 {
		case 3:
			wantBulk += 2
		case 7:
		default:
			wantInteractive += 2
		}
	}
	if interactive, bulk := f.count(t, f.subjects.StreamIntents()), f.count(t, f.subjects.StreamBulk()); interactive != wantInteractive || bulk != wantBulk {
		t.Errorf("%d and %d are stored, want %d and %d", interactive, bulk, wantInteractive, wantBulk)
	}
}
