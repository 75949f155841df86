package crashtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// unhurried times: no lease ends and no call times out in a run without faults.
var unhurried = times{
	lease: 20 * time.Second, call: 10 * time.Second, ackWait: 30 * time.Second, backoff: short.backoff, hold: short.hold,
}

// TestOwnerSendsOnce asks for every payment several times: on both lanes over NATS, over HTTP, and in batches by either, with several workers and
// Stripe's own memory of keys switched off. Nobody crashes, so only the ticket's token stands between a payment and a second request: there are
// as many requests as intents.
func TestOwnerSendsOnce(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	w := newWorldOf(t, unhurried)
	w.sim.SetIdempotency(false)
	if err := w.sim.SetLimits(stripesim.Limits{LatencyMS: 300}); err != nil {
		t.Fatal(err)
	}
	orders := make([]order, 60)
	for i := range orders {
		orders[i] = w.order(fmt.Sprintf("order-%d", i))
		if i%2 == 1 {
			orders[i].lane = payments.LaneBulk
		}
		w.publish(orders[i], orders[i]) // twins, which meet in one transaction; those that follow meet their rows
	}
	intents := len(orders)
	var overNATS, overHTTP []parcel
	for i := range 20 {
		overHTTP = append(overHTTP, w.single(fmt.Sprintf("posted-%d", i)))
	}
	for i := range 3 {
		overHTTP = append(overHTTP, w.batchOf(fmt.Sprintf("batch-posted-%d", i), 10))
		overNATS = append(overNATS, w.batchOf(fmt.Sprintf("batch-sent-%d", i), 10))
	}
	for _, p := range slices.Concat(overHTTP, overNATS) {
		w.expectParcel(p)
		intents += len(p.orders)
	}
	for i := range 3 {
		w.start(workerOptions{name: fmt.Sprintf("worker %d", i)})
	}
	addr, c := w.spawnDoor("ingress", "relay").address(), w.newCaller()
	for range 3 {
		var all sync.WaitGroup
		for _, p := range overHTTP {
			all.Go(func() { c.insist(p, "", func() string { return addr }) })
		}
		for _, p := range overNATS {
			w.sendParcel(p)
		}
		w.publish(orders...)
		all.Wait()
	}
	w.conclude(func(a account) {
		if a.Summary.Posts != intents || len(a.Charges) != intents {
			t.Errorf("%d requests and %d charges for %d intents", a.Summary.Posts, len(a.Charges), intents)
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.reasons())
		}
	})
}

// sendParcel publishes what a request asks for over NATS.
func (w *world) sendParcel(p parcel) {
	w.Helper()
	subject, data := w.message(p)
	if ack := w.send(subject, data, nil); !ack.Duplicate {
		for _, o := range p.orders {
			w.acknowledged(o.id())
		}
	}
}

// TestLookBeforeSending loses the answer in every way after the money moved; one of them Stripe does not remember under its key.
func TestLookBeforeSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unheard := []string{
		stripesim.FaultCommitThen503, stripesim.FaultCommitThenHang, stripesim.FaultCommitThenReset, stripesim.FaultCommitThen500,
		stripesim.FaultTruncateBody, stripesim.FaultHTML502, stripesim.FaultGarbage200,
	}
	if payments.SabotageNoLook {
		// A 500 that Stripe has stored comes back for ever to one who only sends again: such a run would never rest.
		unheard = slices.DeleteFunc(unheard, func(fault string) bool { return fault == stripesim.FaultCommitThen500 })
	}
	for _, fault := range unheard {
		for i := range 5 {
			o := w.order(fmt.Sprintf("%s-%d", fault, i))
			w.fault(o, fault, 1)
			w.publish(o)
		}
	}
	w.start(workerOptions{name: "healthy"})
	w.conclude(func(a account) {
		if n := 5 * len(unheard); len(a.Charges) != n || a.Summary.PaymentIntents != n {
			t.Errorf("%d charges and %d PaymentIntents for %d intents", len(a.Charges), a.Summary.PaymentIntents, n)
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.reasons())
		}
	})
}

// front stands before the simulator and can spoil what Stripe tells of its records.
type front struct {
	records atomic.Int32
	reads   atomic.Int32 // while recordsEmpty
}

// What readings of records are answered.
const (
	recordsTrue  = iota
	recordsAway  // 503
	recordsEmpty // a complete listing and complete events, with nothing in them
)

// newFront puts a front before the world's simulator.
func (w *world) newFront() *front {
	w.Helper()
	target, err := url.Parse(w.simURL)
	if err != nil {
		w.Fatal(err)
	}
	f := &front{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && (r.URL.Path == "/v1/payment_intents" || r.URL.Path == "/v1/events") {
			switch f.records.Load() {
			case recordsAway:
				http.Error(rw, "away", http.StatusServiceUnavailable)
				return
			case recordsEmpty:
				f.reads.Add(1)
				rw.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(rw, `{"object":"list","data":[],"has_more":false,"url":%q}`, r.URL.Path)
				return
			}
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.simURL = server.URL
	w.Cleanup(server.Close)
	return f
}

// TestForgottenKey loses an outcome, and looks for it only when 25 hours have passed and Stripe has forgotten the key. Worse, its listing does
// not show what it has. Nothing may be sent any more: the payment ends with a person, after a second listing an hour later.
func TestForgottenKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stripe := w.newFront()
	stripe.records.Store(recordsAway)
	o := w.order("order-1")
	w.fault(o, stripesim.FaultCommitThenReset, 1)
	w.publish(o)
	w.start(workerOptions{name: "healthy"})
	w.await("the unknown outcome", func() (bool, string) { s := w.status(o.id()); return s == payments.StatusUnknown, string(s) })
	w.clock.advance(25 * time.Hour)
	stripe.records.Store(recordsEmpty)
	w.await("a listing, and what follows from it", func() (bool, string) {
		return stripe.reads.Load() > 0 && w.absenceNoted(o) || w.status(o.id()).Final(), string(w.status(o.id()))
	})
	w.clock.advance(2 * time.Hour)
	w.await("the end", func() (bool, string) {
		s := w.status(o.id())
		return !s.HasTicket(), string(s)
	})
	w.rest()
	w.concludeUnrested(func(a account) {
		if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 {
			t.Errorf("%d PaymentIntents and %d charges in %d requests, want one of each", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts)
		}
		if s := w.status(o.id()); s != payments.StatusNeedsReview {
			t.Errorf("the payment came to rest as %s, want needs_review", s)
		}
		if len(a.Violations) > 0 {
			t.Errorf("ticket and status disagree: %v", a.Violations)
		}
	})
}

// absenceNoted reports whether a complete listing without the payment has been written down.
func (w *world) absenceNoted(o order) bool {
	w.Helper()
	p, err := w.store.Find(w.Context(), o.TenantID, o.id())
	if err != nil {
		w.Fatal(err)
	}
	return !p.AbsentAt.IsZero()
}

// TestConflictWithMessageID: two producers use one key for different amounts, under one Nats-Msg-Id. The second publishes until JetStream has
// really stored its message, which is once its window of 100 ms has passed.
func TestConflictWithMessageID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(workerOptions{name: "healthy"})
	o, other := w.conflict("order-1")
	headers := map[string][]string{"Nats-Msg-Id": {"order-1"}}
	var acks [2]*jetstream.PubAck
	var futures [2]jetstream.PubAckFuture
	for i, data := range [][]byte{o.body(t), other.body(t)} { // one behind the other, so that both are within the window on any machine
		var err error
		if futures[i], err = w.js.PublishMsgAsync(&nats.Msg{Subject: w.intentSubject(tenant), Data: data, Header: headers}); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range futures {
		select {
		case acks[i] = <-f.Ok():
		case err := <-f.Err():
			t.Fatal(err)
		}
	}
	if acks[0].Duplicate || !acks[1].Duplicate {
		t.Fatalf("the first message is a duplicate: %v; the second: %v", acks[0].Duplicate, acks[1].Duplicate)
	}
	w.acknowledged(o.id())
	w.await("the second message's own PubAck", func() (bool, string) {
		ack := w.send(w.intentSubject(tenant), other.body(t), headers)
		return !ack.Duplicate, "duplicate"
	})
	w.conclude(func(a account) { w.mustShowConflict(a, o, 1) })
}

// TestConflictInOneFlush: the same two requests without Nats-Msg-Id wait in the stream before the worker starts, and meet in one transaction.
func TestConflictInOneFlush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o, other := w.conflict("order-1")
	for _, data := range [][]byte{o.body(t), other.body(t)} {
		w.send(w.intentSubject(tenant), data, nil)
	}
	w.acknowledged(o.id())
	w.start(workerOptions{name: "healthy"})
	w.conclude(func(a account) { w.mustShowConflict(a, o, 1) })
}

// conflict are two orders under one key, expected as such.
func (w *world) conflict(key string) (order, order) {
	o := w.order(key)
	other := o
	other.Money.Amount++
	o.Also = append(o.Also, other.Money)
	w.expect(o)
	return o, other
}

// mustShowConflict wants one charge, and one dead letter that names the amount.
func (w *world) mustShowConflict(a account, o order, charges int) {
	w.Helper()
	if len(a.Charges) != charges || a.Summary.Posts != charges {
		w.Errorf("%d charges in %d requests, want %d", len(a.Charges), a.Summary.Posts, charges)
	}
	if len(a.Letters) != 1 || a.Letters[0].Reason != payments.ReasonKeyReused || a.Letters[0].IdempotencyKey != o.Key ||
		!strings.Contains(a.Letters[0].Message, "differs: amount.") {
		w.Errorf("dead letters %v, want one of key_reused that names the amount alone", a.Letters)
	}
}

// TestSameKeyOfTwoTenants: a key belongs to its tenant.
func TestSameKeyOfTwoTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs := w.order("order-1"), w.order("order-1")
	theirs.TenantID, theirs.Money.Customer = rival, "cus_rival"
	w.publish(mine, theirs)
	w.start(workerOptions{name: "healthy"})
	if a := w.mustBeGood(0); len(a.Charges) != 2 || len(a.Payments) != 2 {
		t.Errorf("%d charges and %d payments, want two of each", len(a.Charges), len(a.Payments))
	}
}
