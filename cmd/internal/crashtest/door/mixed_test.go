package door

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// atOnce sends a request by HTTP and a message by NATS at the same moment.
func atOnce(c *world.Caller, addr string, p world.Parcel, subject string, message []byte) world.Answer {
	c.Helper()
	start := make(chan struct{})
	var both sync.WaitGroup
	var got world.Answer
	var asked, published error
	both.Go(func() {
		<-start
		got, asked = c.Send(context.Background(), addr, p, "")
	})
	both.Go(func() {
		<-start
		_, published = c.JS.PublishMsg(context.Background(), &nats.Msg{Subject: subject, Data: message})
	})
	close(start)
	both.Wait()
	if asked != nil || published != nil {
		c.Errorf("%s: %v, %v", p.Key, asked, published)
	}
	return got
}

// dearer is another request under the same key: its last payment costs more.
func dearer(p world.Parcel, w *world.World) world.Parcel {
	w.Helper()
	p.Orders = slices.Clone(p.Orders)
	last := &p.Orders[len(p.Orders)-1]
	before := fmt.Sprintf(`"amount":%d,`, last.Money.Amount)
	last.Money.Amount += 5000
	at := strings.LastIndex(string(p.Body), before)
	if at < 0 {
		w.Fatalf("%s has no amount in %s", p.Key, p.Body)
	}
	p.Body = slices.Concat(p.Body[:at], fmt.Appendf(nil, `"amount":%d,`, last.Money.Amount), p.Body[at+len(before):])
	return p
}

// TestHTTPAndNATSUnderOneKey: the same payments and batches come by HTTP and by NATS at once under one key, and are one. Where the two ask for
// different amounts, one of them wins, whichever; the other is told so, by 422 or by a dead letter, and nothing of it is charged.
func TestHTTPAndNATSUnderOneKey(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.NewOf(t, world.OutageTimes)
	watchCompletions(w)
	addrs := []string{w.SpawnDoor().Address(), w.SpawnDoor().Address()}
	c := w.NewCaller()
	const each = 40
	make := func(kind string, i int) world.Parcel {
		if i%4 == 3 {
			return w.BatchOf(fmt.Sprintf("%s-%d", kind, i), 1+i%5)
		}
		return w.Single(fmt.Sprintf("%s-%d", kind, i))
	}
	var parcels []world.Parcel
	for i := range each {
		p := make("same", i)
		w.ExpectParcel(p)
		subject, data := w.Message(p)
		c.Check(p, atOnce(c, addrs[i%2], p, subject, data))
		parcels = append(parcels, p)
	}
	var lost []string // the keys whose message lost
	for i := range each {
		p := make("other", i)
		other := dearer(p, w)
		subject, data := w.Message(other)
		got := atOnce(c, addrs[i%2], p, subject, data)
		switch {
		case got.Accepted():
			c.Check(p, got)
			lost = append(lost, p.Key)
		case got.Status == http.StatusUnprocessableEntity && got.Document.Code == "idempotency_key_reused":
			p = other
		default:
			t.Errorf("%s: %d %s", p.Key, got.Status, got.Document.Code)
		}
		w.ExpectParcel(p)
		parcels = append(parcels, p)
	}
	for _, p := range parcels {
		for _, o := range p.Orders {
			w.Acknowledged(o.ID())
		}
	}
	t.Logf("of %d pairs that differ HTTP won %d", each, len(lost))
	a := mustPay(w, len(lost), parcels...) // the winner's amounts alone count as asked for
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
		if p.Batch() {
			batches++
		}
	}
	mustHaveWitnessed(w, batches)
	mustRefuseOthers(w, c, addrs[0], parcels)
	if b := oracle.Judge(w.Account().Run); !b.Good() {
		t.Error(b.Findings)
	}
}

// mustRefuseOthers wants another request under each key to be refused by HTTP, and to change nothing.
func mustRefuseOthers(w *world.World, c *world.Caller, addr string, parcels []world.Parcel) {
	w.Helper()
	before := stored(w)
	for _, p := range parcels {
		got, err := c.Send(context.Background(), addr, dearer(p, w), "")
		if err != nil || got.Status != http.StatusUnprocessableEntity || got.Document.Code != "idempotency_key_reused" || len(got.Document.Differs) != 1 ||
			!strings.HasSuffix(got.Document.Differs[0], "amount") {
			w.Errorf("%s: %v, %d %s %v", p.Key, err, got.Status, got.Document.Code, got.Document.Differs)
		}
	}
	if stored(w) != before {
		w.Error("refused requests changed something")
	}
}
