package consumer

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// openStore gives the test a database with the tenants acme and globex; at its end no ticket may be missing or left over.
func openStore(t *testing.T) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), devstacktest.Database(t, migrations.Up), postgres.Options{PoolSize: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), standstill)
		defer cancel()
		violations, err := s.TicketViolations(ctx)
		if err != nil || len(violations) != 0 {
			t.Errorf("tickets: %+v, %v", violations, err)
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, tenant := range []string{"acme", "globex"} {
		if _, err := s.CreateTenant(context.Background(), postgres.Tenant{ID: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func onPostgres(s *postgres.Store) func(*Config) {
	return func(c *Config) { c.Store, c.Batches, c.Processor.Store = s, s, s }
}

// letters lists the open dead letters by sequence.
func letters(t *testing.T, s *postgres.Store) []payments.DeadLetter {
	t.Helper()
	list, _, err := s.DeadLetters(context.Background(), postgres.DeadLettersRequest{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b payments.DeadLetter) int { return int(a.Origin.Sequence) - int(b.Origin.Sequence) })
	return list
}

// Faults 5 and 18: keys of two tenants, a changed body under a key, repeated message ids, and bytes that neither JSON nor text columns can hold.
func TestWireToRow(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	f := newField(t, onPostgres(store))
	f.run()
	f.publish(payments.LaneInteractive, intentJSON("order-1"))
	if _, err := f.js.Publish(f.ctx(), f.subject(payments.LaneInteractive, "globex"), intentJSON("order-1")); err != nil {
		t.Fatal(err)
	}
	bodies := [][]byte{
		[]byte(`{"idempotency_key":"nul","amount":9900,"currency":"usd","payment_method":"pm_1","description":"a\u0000b"}`),
		[]byte(`{"idempotency_key":"lone","amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"k":"\ud800"}}`),
		[]byte(`{"idempotency_key":"a\u0000b","amount":9900,"currency":"usd","payment_method":"pm_1"}`),
		[]byte("{\"idempotency_key\":\"a\x00\xffb\",\"amount\":9900}"),
		bytes.Repeat([]byte{0}, 100),
		{},
	}
	for _, body := range bodies {
		f.publish(payments.LaneInteractive, body, "X-Bytes", "\xff\xfe", "Idempotency-Key", "\x01")
	}
	waitFor(t, "the first payments", func() bool {
		p, err := store.FindByKey(context.Background(), "acme", "order-1")
		return err == nil && p.Status == payments.StatusSucceeded
	})
	f.publish(payments.LaneInteractive, bytes.Replace(intentJSON("order-1"), []byte("9900"), []byte("999"), 1))
	f.publish(payments.LaneBulk, intentJSON("order-1"), "Nats-Msg-Id", "x")
	if _, err := f.js.Publish(f.ctx(), f.subject(payments.LaneInteractive, "nobody"), intentJSON("order-1")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all fates", func() bool {
		return len(letters(t, store)) == len(bodies)+2 && f.quiet(payments.LaneInteractive) && f.quiet(payments.LaneBulk)
	})
	list := letters(t, store)
	for i, body := range bodies {
		l := list[i]
		if !bytes.Equal(l.Payload, body) || l.PayloadLength != len(body) || !bytes.Contains(l.Headers, []byte("X-Bytes: \xff\xfe\r\n")) || l.TenantID != "acme" {
			t.Errorf("%d: %+v", i, l)
		}
	}
	if l := list[len(bodies)]; l.Reason != payments.ReasonKeyReused || l.IdempotencyKey != "order-1" || l.TenantID != "acme" {
		t.Errorf("conflict: %+v", l)
	}
	if l := list[len(bodies)+1]; l.Reason != payments.ReasonTenantUnknown || l.TenantID != "nobody" {
		t.Errorf("tenant: %+v", l)
	}
	if p, err := store.FindByKey(context.Background(), "globex", "order-1"); err != nil || p.Status != payments.StatusSucceeded {
		t.Errorf("globex: %+v, %v", p, err)
	}
	if all, most := f.gateway.calls(); all != 2 || most != 1 {
		t.Errorf("%d calls, %d under one key", all, most)
	}
}

// lookingGateway finds what was charged by somebody else.
type lookingGateway struct {
	*fakeGateway
	looks atomic.Int64
}

func (g *lookingGateway) Look(_ context.Context, p payments.Payment, progress func() error) payments.Observation {
	g.looks.Add(1)
	if err := progress(); err != nil {
		return payments.Observation{Kind: payments.ObservedNoRecords, Account: testAccount}
	}
	return payments.Observation{Kind: payments.ObservedRecords, Account: testAccount, Found: []payments.PaymentIntent{{
		ID: "pi_found", Status: payments.StripeSucceeded, Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency, Customer: p.Customer,
	}}}
}

// Faults 3 and 14: a worker that stalls past its lease is taken over by a look at Stripe's records; its late answer changes nothing, and its
// late ack settles a message whose outcome is recorded.
func TestTakeover(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	lease := func(c *Config) {
		c.Lease, c.Processor.Lease, c.Processor.CallTimeout = 2*time.Second, 2*time.Second, 500*time.Millisecond
	}
	f := newField(t, onPostgres(store), lease)
	wake := make(chan struct{})
	f.gateway.submit = func(context.Context, payments.Payment) { <-wake } // stalls, whatever it is told
	f.run()
	f.publish(payments.LaneInteractive, intentJSON("k"))
	waitFor(t, "the first worker's call", func() bool { all, _ := f.gateway.calls(); return all == 1 })
	other := &lookingGateway{fakeGateway: &fakeGateway{}}
	second := newRig(t, onPostgres(store), lease, func(c *Config) {
		c.JetStream, c.Subjects, c.Processor.Gateway = f.js, f.Subjects, other
		c.NewToken = func() payments.Token { token := f.NewToken(); token[0] = 2; return token }
	})
	(&field{rig: second}).run()
	find := func() payments.Payment {
		p, err := store.FindByKey(context.Background(), "acme", "k")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	waitFor(t, "the takeover", func() bool { return find().Status == payments.StatusSucceeded })
	settled := find()
	close(wake)
	waitFor(t, "the last ack", func() bool { return f.quiet(payments.LaneInteractive) })
	f.stop()
	if err := <-f.ended; err != nil {
		t.Fatal(err)
	}
	after := find()
	calls, _ := f.gateway.calls()
	others, _ := other.calls()
	if calls != 1 || others != 0 || other.looks.Load() == 0 || settled.StripePaymentIntent != "pi_found" || after.StripePaymentIntent != "pi_found" || after.Sequence != settled.Sequence {
		t.Errorf("%d and %d calls, %d looks, %+v", calls, others, other.looks.Load(), after)
	}
}

// A suspect that ends its worker each time is begun three times, and then its bytes are a dead letter; one that is admitted leaves nothing.
func TestSuspectsOnPostgres(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	r := newRig(t, onPostgres(store))
	starts := 0
	died := &payments.Error{Code: payments.CodeInternal, Message: "the process ended here"}
	r.Store = dying{store, func() error { starts++; return died }}
	for delivery := uint64(1); delivery <= 6; delivery++ {
		msg := newMsg("poison", delivery)
		r.handle(context.Background(), r.from, msg)
		list := letters(t, store)
		if want := delivery >= 6; (msg.acks() == 1) != want || (len(list) == 1) != want {
			t.Errorf("delivery %d: %d acks, %d open", delivery, msg.acks(), len(list))
		}
	}
	if l := letters(t, store); starts != 5 || l[0].Reason != payments.ReasonWorkerKilled || !bytes.Equal(l[0].Payload, intentJSON("poison")) {
		t.Errorf("begun %d times, %+v", starts, l)
	}
	r.Store = store
	msg := newMsg("bystander", 9)
	msg.sequence = 8
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(letters(t, store)) != 1 {
		t.Errorf("%d acks, %d open", msg.acks(), len(letters(t, store)))
	}
}

// dying is a store before which the process ends.
type dying struct {
	*postgres.Store
	admit func() error
}

func (d dying) Admit(context.Context, payments.AdmitRequest) (payments.Admission, error) {
	return payments.Admission{}, d.admit()
}
