package crashtest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// atOnce sends a request by HTTP and a message by NATS at the same moment.
func (c *caller) atOnce(addr string, p parcel, subject string, message []byte) answer {
	c.Helper()
	start := make(chan struct{})
	var both sync.WaitGroup
	var got answer
	var asked, published error
	both.Go(func() {
		<-start
		got, asked = c.send(context.Background(), addr, p, "")
	})
	both.Go(func() {
		<-start
		_, published = c.js.PublishMsg(context.Background(), &nats.Msg{Subject: subject, Data: message})
	})
	close(start)
	both.Wait()
	if asked != nil || published != nil {
		c.Errorf("%s: %v, %v", p.key, asked, published)
	}
	return got
}

// message is the request as it goes through NATS, and where.
func (w *world) message(p parcel) (subject string, data []byte) {
	w.Helper()
	if !p.batch() {
		return w.intentSubject(tenant), p.body
	}
	subject, err := w.subjects.Batch(tenant)
	if err != nil {
		w.Fatal(err)
	}
	wire, err := schema.DecodeBatch(p.body)
	if err == nil {
		wire.IdempotencyKey = schema.Some(p.key)
		data, err = schema.EncodeBatch(wire)
	}
	if err != nil {
		w.Fatal(err)
	}
	return subject, data
}

// dearer is another request under the same key: its last payment costs more.
func (p parcel) dearer(w *world) parcel {
	w.Helper()
	p.orders = slices.Clone(p.orders)
	last := &p.orders[len(p.orders)-1]
	before := fmt.Sprintf(`"amount":%d,`, last.Money.Amount)
	last.Money.Amount += 5000
	at := strings.LastIndex(string(p.body), before)
	if at < 0 {
		w.Fatalf("%s has no amount in %s", p.key, p.body)
	}
	p.body = slices.Concat(p.body[:at], fmt.Appendf(nil, `"amount":%d,`, last.Money.Amount), p.body[at+len(before):])
	return p
}

// TestHTTPAndNATSUnderOneKey: the same payments and batches come by HTTP and by NATS at once under one key, and are one. Where the two ask for
// different amounts, one of them wins, whichever; the other is told so, by 422 or by a dead letter, and nothing of it is charged.
func TestHTTPAndNATSUnderOneKey(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	w := newWorldOf(t, outageTimes)
	w.watchCompletions()
	addrs := []string{w.spawnDoor().address(), w.spawnDoor().address()}
	c := w.newCaller()
	const each = 40
	make := func(kind string, i int) parcel {
		if i%4 == 3 {
			return w.batchOf(fmt.Sprintf("%s-%d", kind, i), 1+i%5)
		}
		return w.single(fmt.Sprintf("%s-%d", kind, i))
	}
	var parcels []parcel
	for i := range each {
		p := make("same", i)
		w.expectParcel(p)
		subject, data := w.message(p)
		c.check(p, c.atOnce(addrs[i%2], p, subject, data))
		parcels = append(parcels, p)
	}
	var lost []string // the keys whose message lost
	for i := range each {
		p := make("other", i)
		other := p.dearer(w)
		subject, data := w.message(other)
		got := c.atOnce(addrs[i%2], p, subject, data)
		switch {
		case got.accepted():
			c.check(p, got)
			lost = append(lost, p.key)
		case got.status == http.StatusUnprocessableEntity && got.document.Code == "idempotency_key_reused":
			p = other
		default:
			t.Errorf("%s: %d %s", p.key, got.status, got.document.Code)
		}
		w.expectParcel(p)
		parcels = append(parcels, p)
	}
	for _, p := range parcels {
		for _, o := range p.orders {
			w.acknowledged(o.id())
		}
	}
	t.Logf("of %d pairs that differ HTTP won %d", each, len(lost))
	a := w.mustPay(len(lost), parcels...) // the winner's amounts alone count as asked for
	var buried []string
	for _, l := range a.Letters {
		buried = append(buried, l.IdempotencyKey)
		if l.Reason != payments.ReasonKeyReused {
			t.Errorf("%s is a dead letter for %s", l.IdempotencyKey, l.Reason)
		}
	}
	slices.Sort(lost)
	if slices.Sort(buried); !slices.Equal(lost, buried) {
		t.Errorf("dead letters of %v, want %v", buried, lost)
	}
	batches := 0
	for _, p := range parcels {
		if p.batch() {
			batches++
		}
	}
	w.mustHaveWitnessed(batches)
	w.mustRefuseOthers(c, addrs[0], parcels)
	if b := oracle.Judge(w.account().Run); !b.Good() {
		t.Error(b.Findings)
	}
}

// mustRefuseOthers wants another request under each key to be refused by HTTP, and to change nothing.
func (w *world) mustRefuseOthers(c *caller, addr string, parcels []parcel) {
	w.Helper()
	before := w.stored()
	for _, p := range parcels {
		got, err := c.send(context.Background(), addr, p.dearer(w), "")
		if err != nil || got.status != http.StatusUnprocessableEntity || got.document.Code != "idempotency_key_reused" || len(got.document.Differs) != 1 ||
			!strings.HasSuffix(got.document.Differs[0], "amount") {
			w.Errorf("%s: %v, %d %s %v", p.key, err, got.status, got.document.Code, got.document.Differs)
		}
	}
	if w.stored() != before {
		w.Error("refused requests changed something")
	}
}
