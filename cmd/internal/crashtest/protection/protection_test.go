package protection

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestOwnerSendsOnce asks for every payment several times: on both lanes over NATS, over HTTP, and in batches by either, with several workers and
// Stripe's own memory of keys switched off. Nobody crashes, so only the ticket's token stands between a payment and a second request: there are
// as many requests as intents.
func TestOwnerSendsOnce(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.NewOf(t, world.Unhurried)
	w.Sim.SetIdempotency(false)
	if err := w.Sim.SetLimits(stripesim.Limits{LatencyMS: 300}); err != nil {
		t.Fatal(err)
	}
	orders := make([]world.Order, 60)
	for i := range orders {
		orders[i] = w.Order(fmt.Sprintf("order-%d", i))
		if i%2 == 1 {
			orders[i].Lane = payments.LaneBulk
		}
		w.Publish(orders[i], orders[i]) // twins, which meet in one transaction; those that follow meet their rows
	}
	intents := len(orders)
	var overNATS, overHTTP []world.Parcel
	for i := range 20 {
		overHTTP = append(overHTTP, w.Single(fmt.Sprintf("posted-%d", i)))
	}
	for i := range 3 {
		overHTTP = append(overHTTP, w.BatchOf(fmt.Sprintf("batch-posted-%d", i), 10))
		overNATS = append(overNATS, w.BatchOf(fmt.Sprintf("batch-sent-%d", i), 10))
	}
	for _, p := range slices.Concat(overHTTP, overNATS) {
		w.ExpectParcel(p)
		intents += len(p.Orders)
	}
	for i := range 3 {
		w.Start(world.WorkerOptions{Name: fmt.Sprintf("worker %d", i)})
	}
	addr, c := w.SpawnDoor("ingress", "relay").Address(), w.NewCaller()
	for range 3 {
		var all sync.WaitGroup
		for _, p := range overHTTP {
			all.Go(func() { c.Insist(p, "", func() string { return addr }) })
		}
		for _, p := range overNATS {
			sendParcel(w, p)
		}
		w.Publish(orders...)
		all.Wait()
	}
	conclude(w, func(a world.Account) {
		if a.Summary.Posts != intents || len(a.Charges) != intents {
			t.Errorf("%d requests and %d charges for %d intents", a.Summary.Posts, len(a.Charges), intents)
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.Reasons())
		}
	})
}

// sendParcel publishes what a request asks for over NATS.
func sendParcel(w *world.World, p world.Parcel) {
	w.Helper()
	subject, data := w.Message(p)
	if ack := w.Send(subject, data, nil); !ack.Duplicate {
		for _, o := range p.Orders {
			w.Acknowledged(o.ID())
		}
	}
}

// TestLookBeforeSending loses the answer in every way after the money moved; one of them Stripe does not remember under its key.
func TestLookBeforeSending(t *testing.T) {
	t.Parallel()
	w := world.New(t)
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
			o := w.Order(fmt.Sprintf("%s-%d", fault, i))
			w.Fault(o, fault, 1)
			w.Publish(o)
		}
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	conclude(w, func(a world.Account) {
		if n := 5 * len(unheard); len(a.Charges) != n || a.Summary.PaymentIntents != n {
			t.Errorf("%d charges and %d PaymentIntents for %d intents", len(a.Charges), a.Summary.PaymentIntents, n)
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.Reasons())
		}
	})
}

// TestForgottenKey loses an outcome, and looks for it only when 25 hours have passed and Stripe has forgotten the key. Worse, its listing does
// not show what it has. Nothing may be sent any more: the payment ends with a person, after a second listing an hour later.
func TestForgottenKey(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	stripe := w.NewFront()
	stripe.Records.Store(world.RecordsAway)
	o := w.Order("order-1")
	w.Fault(o, stripesim.FaultCommitThenReset, 1)
	w.Publish(o)
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.Await("the unknown outcome", func() (bool, string) { s := w.Status(o.ID()); return s == payments.StatusUnknown, string(s) })
	w.Clock.Advance(25 * time.Hour)
	stripe.Records.Store(world.RecordsEmpty)
	w.Await("a listing, and what follows from it", func() (bool, string) {
		return stripe.Reads.Load() > 0 && w.AbsenceNoted(o) || w.Status(o.ID()).Final(), string(w.Status(o.ID()))
	})
	w.Clock.Advance(2 * time.Hour)
	w.Await("the end", func() (bool, string) {
		s := w.Status(o.ID())
		return !s.HasTicket(), string(s)
	})
	w.Rest()
	concludeUnrested(w, func(a world.Account) {
		if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 {
			t.Errorf("%d PaymentIntents and %d charges in %d requests, want one of each", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts)
		}
		if s := w.Status(o.ID()); s != payments.StatusNeedsReview {
			t.Errorf("the payment came to rest as %s, want needs_review", s)
		}
		if len(a.Violations) > 0 {
			t.Errorf("ticket and status disagree: %v", a.Violations)
		}
	})
}

// TestConflictWithMessageID: two producers use one key for different amounts, under one Nats-Msg-Id. The second publishes until JetStream has
// really stored its message, which is once its window has passed.
func TestConflictWithMessageID(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	stream, err := w.JS.Stream(t.Context(), w.Subjects.StreamIntents())
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Duplicates = 3 * time.Second // 100 ms can pass between two messages on a busy machine
	if _, err := w.JS.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	o, other := conflict(w, "order-1")
	headers := map[string][]string{"Nats-Msg-Id": {"order-1"}}
	var acks [2]*jetstream.PubAck
	var futures [2]jetstream.PubAckFuture
	for i, data := range [][]byte{o.Body(t), other.Body(t)} { // one behind the other, so that both are within the window
		if futures[i], err = w.JS.PublishMsgAsync(&nats.Msg{Subject: w.IntentSubject(world.Tenant), Data: data, Header: headers}); err != nil {
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
	w.Acknowledged(o.ID())
	w.Await("the second message's own PubAck", func() (bool, string) {
		ack := w.Send(w.IntentSubject(world.Tenant), other.Body(t), headers)
		return !ack.Duplicate, "duplicate"
	})
	conclude(w, func(a world.Account) { mustShowConflict(w, a, o, 1) })
}

// TestConflictInOneFlush: the same two requests without Nats-Msg-Id wait in the stream before the worker starts, and meet in one transaction.
func TestConflictInOneFlush(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	o, other := conflict(w, "order-1")
	for _, data := range [][]byte{o.Body(t), other.Body(t)} {
		w.Send(w.IntentSubject(world.Tenant), data, nil)
	}
	w.Acknowledged(o.ID())
	w.Start(world.WorkerOptions{Name: "healthy"})
	conclude(w, func(a world.Account) { mustShowConflict(w, a, o, 1) })
}

// conflict are two orders under one key, expected as such.
func conflict(w *world.World, key string) (world.Order, world.Order) {
	o := w.Order(key)
	other := o
	other.Money.Amount++
	o.Also = append(o.Also, other.Money)
	w.Expect(o)
	return o, other
}

// mustShowConflict wants one charge, and one dead letter that names the amount.
func mustShowConflict(w *world.World, a world.Account, o world.Order, charges int) {
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
	w := world.New(t)
	mine, theirs := w.Order("order-1"), w.Order("order-1")
	theirs.TenantID, theirs.Money.Customer = world.Rival, "cus_rival"
	w.Publish(mine, theirs)
	w.Start(world.WorkerOptions{Name: "healthy"})
	if a := w.MustBeGood(0); len(a.Charges) != 2 || len(a.Payments) != 2 {
		t.Errorf("%d charges and %d payments, want two of each", len(a.Charges), len(a.Payments))
	}
}
