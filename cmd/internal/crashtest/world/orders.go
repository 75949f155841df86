package world

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// Order is one payment that a producer asks for.
type Order struct {
	oracle.Intent
	Method   string
	Metadata map[string]string
	Lane     payments.Lane
	Present  bool // its customer is there: the payment is on session
}

// Order draws up an order whose customer nobody else has. Its metadata carry its name, for rules of the simulator to match.
func (w *World) Order(name string) Order {
	customer := "cus_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
	return Order{
		Intent: oracle.Intent{TenantID: Tenant, Key: name, Money: oracle.Money{Amount: 4200, Currency: "usd", Customer: customer}},
		Method: "pm_card_visa", Metadata: map[string]string{"order": name}, Lane: payments.LaneInteractive,
	}
}

// ID is the payment's id.
func (o Order) ID() payments.ID { return payments.NewID(o.TenantID, o.Key) }

// Body is the message that asks for it.
func (o Order) Body(t testing.TB) []byte {
	t.Helper()
	capture := schema.Optional[string]{}
	if o.Held {
		capture = schema.Some(string(payments.CaptureManual))
	}
	data, err := schema.EncodeIntent(schema.Intent{
		CaptureMethod: capture, OffSession: schema.Some(!o.Present),
		IdempotencyKey: schema.Some(o.Key), Amount: schema.Some(o.Money.Amount), Currency: schema.Some(o.Money.Currency),
		Customer: schema.Some(o.Money.Customer), PaymentMethod: schema.Some(o.Method), Metadata: o.Metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Expect enters an order into the producers' account of the run.
func (w *World) Expect(o Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.intents[o.ID()] == nil {
		w.intents[o.ID()] = &o.Intent
	}
}

// Acknowledged notes that a producer was told that its payment is kept.
func (w *World) Acknowledged(id payments.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intents[id].Acknowledged = true
}

// Publish sends orders on their lanes and waits for each PubAck.
func (w *World) Publish(orders ...Order) {
	w.Helper()
	for _, o := range orders {
		w.Expect(o)
		if ack := w.Send(w.Subject(o), o.Body(w), nil); !ack.Duplicate {
			w.Acknowledged(o.ID())
		}
	}
}

// Subject is where an order is published.
func (w *World) Subject(o Order) string {
	w.Helper()
	if o.Lane == payments.LaneInteractive {
		return w.IntentSubject(o.TenantID)
	}
	subject, err := w.Subjects.Bulk(o.TenantID)
	if err != nil {
		w.Fatal(err)
	}
	return subject
}

// IntentSubject is where a tenant's interactive payments are asked for.
func (w *World) IntentSubject(tenantID string) string {
	w.Helper()
	subject, err := w.Subjects.Intent(tenantID)
	if err != nil {
		w.Fatal(err)
	}
	return subject
}

// Send publishes a message and waits for its PubAck.
func (w *World) Send(subject string, data []byte, headers nats.Header) *jetstream.PubAck {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), RestLimit)
	defer cancel()
	ack, err := w.JS.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data, Header: headers})
	if err != nil {
		w.Fatalf("publish on %s: %v", subject, err)
	}
	return ack
}

// StoreUnowned stores the payments without an owner, as another part of the installation does that accepts them itself.
func (w *World) StoreUnowned(orders map[string]Order) {
	w.Helper()
	for _, o := range orders {
		intent := payments.Intent{
			TenantID: o.TenantID, IdempotencyKey: o.Key, Amount: o.Money.Amount, Currency: o.Money.Currency, Customer: o.Money.Customer,
			PaymentMethod: o.Method, OffSession: !o.Present, Metadata: o.Metadata,
		}
		if o.Held {
			intent.CaptureMethod = payments.CaptureManual
		}
		a, err := w.Store.Admit(w.Context(), payments.AdmitRequest{Intent: intent.Normalized(), Lane: o.Lane})
		if err != nil || a.Verdict != payments.VerdictStored {
			w.Fatalf("admit %s: %v %v", o.Key, a.Verdict, err)
		}
	}
}

// PublishMany publishes n orders side by side and returns them once all have their PubAcks.
func (w *World) PublishMany(name string, n int) []Order {
	w.Helper()
	orders := make([]Order, n)
	futures := make([]jetstream.PubAckFuture, n)
	subject := w.IntentSubject(Tenant)
	for i := range n {
		orders[i] = w.Order(fmt.Sprintf("%s-%d", name, i))
		w.Expect(orders[i])
		var err error
		if futures[i], err = w.JS.PublishMsgAsync(&nats.Msg{Subject: subject, Data: orders[i].Body(w)}, jetstream.WithStallWait(10*time.Second)); err != nil {
			w.Fatal(err)
		}
	}
	for i, f := range futures {
		select {
		case <-f.Ok():
			w.Acknowledged(orders[i].ID())
		case err := <-f.Err():
			w.Fatal(err)
		case <-time.After(RestLimit):
			w.Fatal("a PubAck did not come")
		}
	}
	return orders
}

// MustHaveSettled waits until all the orders have succeeded.
func (w *World) MustHaveSettled(orders []Order) {
	w.Helper()
	w.Await("the bystanders", func() (bool, string) {
		for _, o := range orders {
			if s := w.Status(o.ID()); s != payments.StatusSucceeded {
				return false, o.Key + " is " + string(s)
			}
		}
		return true, ""
	})
}
