package paymentstest

import (
	"slices"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// takeDue: a ticket is given when it is due and not before, the oldest first, and with it the right to send.
func (b *storeBench) takeDue() {
	b.store(b.Tenants[0], "a", payments.LaneInteractive)
	b.Advance(time.Second)
	b.store(b.Tenants[0], "b", payments.LaneInteractive)
	claims := b.take(10)
	if len(claims) != 2 || claims[0].Payment.IdempotencyKey != "a" || claims[1].Payment.IdempotencyKey != "b" || claims[0].Token == claims[1].Token {
		b.t.Fatalf("taken: %+v", claims)
	}
	for _, c := range claims {
		switch {
		case c.Token.IsZero(), c.Abandoned != 0, c.Lane != payments.LaneInteractive, !c.ClaimedAt.Equal(b.Now()), !c.WindowStart().Equal(b.Now()):
			b.t.Errorf("the claim: %+v", c)
		case c.LeaseUntil.After(b.Now().Add(lease)), !c.LeaseUntil.After(b.Now()):
			b.t.Errorf("the lease ends at %v", c.LeaseUntil)
		case c.Payment.InDoubt, !c.Payment.FirstSubmitAt.IsZero(), c.Payment.StripeAccount != stripeAccount.ID:
			b.t.Errorf("the claim's payment: %+v", c.Payment)
		}
		p := b.stored(c.Payment)
		if !p.InDoubt || !p.FirstSubmitAt.Equal(b.Now()) || !p.LastSubmitAt.Equal(b.Now()) || p.StripeAccount != stripeAccount.ID || !p.Livemode || !p.Owned {
			b.t.Errorf("stored: %+v", p)
		}
	}
	b.nothingDue("while they are taken")
	b.record(claims[0], waits(payments.ReasonRateLimited), time.Minute)
	b.record(claims[1], charged(claims[1].Payment), 0)
	b.nothingDue("before its time")
	b.Advance(time.Minute)
	again := b.takeOne()
	if again.Payment.Status != payments.StatusWaiting || again.Abandoned != 0 || again.Payment.InDoubt || again.Token == claims[0].Token {
		b.t.Errorf("the second claim: %+v", again)
	}
	b.record(again, charged(again.Payment), 0)
	b.Advance(365 * 24 * time.Hour)
	b.nothingDue("after the end")
}

// takeLane: a Take gives tickets of its lane alone, and no more than were asked for.
func (b *storeBench) takeLane() {
	for n := range 3 {
		b.store(b.Tenants[n], "bulk", payments.LaneBulk)
		b.store(b.Tenants[n], "interactive", payments.LaneInteractive)
	}
	for lane, key := range map[payments.Lane]string{payments.LaneInteractive: "interactive", payments.LaneBulk: "bulk"} {
		if got := b.takeFrom(b.Store, lane, 0); len(got) != 0 {
			b.t.Errorf("limit 0: %+v", got)
		}
		got := append(b.takeFrom(b.Store, lane, 2), b.takeFrom(b.Store, lane, 10)...)
		if len(got) != 3 {
			b.t.Errorf("%d of the lane %s, want 3", len(got), lane)
		}
		for _, c := range got {
			if c.Payment.IdempotencyKey != key || c.Lane != lane || c.Payment.Lane != lane {
				b.t.Errorf("taken from %s: %+v", lane, c)
			}
		}
	}
}

// takeTurns: tenants are served in turn, whatever the size of a take, and however many of one came first.
func (b *storeBench) takeTurns() {
	for _, limit := range []int{1, 2, 3, 6} {
		for n := range 30 {
			b.store(b.Tenants[0], numbered(numbered("many", limit)+"-", n), payments.LaneInteractive)
		}
		b.Advance(time.Second)
		for n := range 2 {
			b.store(b.Tenants[1], numbered(numbered("few", limit)+"-", n), payments.LaneInteractive)
			b.store(b.Tenants[2], numbered(numbered("few", limit)+"-", n), payments.LaneInteractive)
		}
		served := map[string]int{}
		for taken := 0; taken < 6; {
			claims := b.take(min(limit, 6-taken))
			if len(claims) == 0 {
				b.t.Fatalf("limit %d: nothing after %d", limit, taken)
			}
			taken += len(claims)
			for _, c := range claims {
				served[c.Payment.TenantID]++
				b.record(c, charged(c.Payment), 0)
			}
		}
		for _, tenant := range b.Tenants {
			if served[tenant] != 2 {
				b.t.Errorf("limit %d: the first 6 went to %v, want 2 to each", limit, served)
			}
		}
		for claims := b.take(50); len(claims) > 0; claims = b.take(50) {
			for _, c := range claims {
				b.record(c, charged(c.Payment), 0)
			}
		}
	}
}

// takeRace: takers of several processes share the tickets; nobody gets one that another has, and none is left behind.
func (b *storeBench) takeRace() {
	const tickets = 60
	for n := range tickets {
		b.store(b.Tenants[n%3], numbered("k", n), payments.LaneInteractive)
	}
	stores := []payments.Store{b.Store, b.Another(), b.Another()}
	var mu sync.Mutex
	given := map[payments.ID]int{}
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for empty := 0; empty < 3; {
				taking, err := stores[n%3].Take(b.ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 4, Lease: lease, Account: stripeAccount})
				if err != nil {
					b.t.Errorf("Take: %v", err)
					return
				}
				if len(taking.Claims) == 0 {
					empty++
				}
				mu.Lock()
				for _, c := range taking.Claims {
					given[c.Payment.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, c := range b.take(tickets) { // what two wanted at once may be left for the next
		given[c.Payment.ID]++
	}
	for id, times := range given {
		if times != 1 {
			b.t.Errorf("%s was given to %d", id, times)
		}
	}
	if len(given) != tickets {
		b.t.Errorf("%d were given, want %d", len(given), tickets)
	}
}

// takeover: the ticket of an owner who vanished goes to another when its lease is over, who finds the send in doubt; each such end counts, and a
// recorded answer ends the count.
func (b *storeBench) takeover() {
	first := b.Now()
	c := b.claim("k")
	for times := 1; times <= payments.AbandonedMax+1; times++ {
		b.Advance(lease - time.Second)
		b.nothingDue("within the lease")
		b.Advance(time.Second)
		take := b.takeOne
		if times >= payments.AbandonedAlone {
			take = b.takeAlone
		}
		next := take()
		if next.Abandoned != times || next.Token == c.Token {
			b.t.Errorf("after %d owners: %+v", times, next)
		}
		if !next.Payment.InDoubt || !next.Payment.FirstSubmitAt.Equal(first) || !next.WindowStart().Equal(first) {
			b.t.Errorf("after %d owners the send is forgotten: %+v", times, next.Payment)
		}
		if p := b.stored(c.Payment); !p.FirstSubmitAt.Equal(first) || !p.LastSubmitAt.Equal(first) || !p.InDoubt {
			b.t.Errorf("an owner that must look has set a time: %+v", p)
		}
		c = next
	}
	b.record(c, waits(payments.ReasonLocked), 0)
	c = b.takeOne()
	if c.Abandoned != 0 || c.Payment.InDoubt || !c.WindowStart().Equal(b.Now()) {
		b.t.Errorf("after a definite answer: %+v", c)
	}
	if p := b.stored(c.Payment); !p.InDoubt || !p.FirstSubmitAt.Equal(b.Now()) {
		b.t.Errorf("stored: %+v", p)
	}
	// What is unknown or pending is asked about, not sent: its times stay.
	for _, t := range []payments.Transition{inDoubt(payments.ReasonNoAnswer), processing(c.Payment)} {
		b.record(c, t, 0)
		before := b.stored(c.Payment)
		b.Advance(time.Second)
		c = b.takeOne()
		if p := b.stored(c.Payment); !p.FirstSubmitAt.Equal(before.FirstSubmitAt) || !p.LastSubmitAt.Equal(before.LastSubmitAt) {
			b.t.Errorf("%s: %+v, before %+v", t.Status, p, before)
		}
	}
}

// takeKeepsAccount: a payment stays with the account that it was sent to first, whichever another process is connected to.
func (b *storeBench) takeKeepsAccount() {
	c := b.claim("k")
	b.record(c, waits(payments.ReasonNotSent), 0)
	other := payments.Account{ID: "acct_1ConformanceOther"}
	taking, err := b.Another().Take(b.ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: lease, Account: other})
	if err != nil || len(taking.Claims) != 1 {
		b.t.Fatalf("Take: %+v, %v", taking, err)
	}
	for name, p := range map[string]payments.Payment{"taken": taking.Claims[0].Payment, "stored": b.stored(c.Payment)} {
		if p.StripeAccount != stripeAccount.ID || !p.Livemode {
			b.t.Errorf("%s: the payment was moved to %s", name, p.StripeAccount)
		}
	}
}

// throttle: without a rate a 429 changes nothing of what is given.
func (b *storeBench) throttle() {
	for n := range 5 {
		b.store(b.Tenants[0], numbered("k", n), payments.LaneInteractive)
		if err := b.Store.Throttle(b.ctx, stripeAccount); err != nil {
			b.t.Fatalf("Throttle: %v", err)
		}
	}
	keys := []string{}
	for _, c := range b.take(10) {
		keys = append(keys, c.Payment.IdempotencyKey)
	}
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"k0", "k1", "k2", "k3", "k4"}) {
		b.t.Errorf("taken: %v", keys)
	}
	b.claim("another")
}

// takeCancellation: whoever cancels the PaymentIntent of an on-session decline sends nothing that could charge, so that nothing is in doubt, the
// time of the send that was declined stands, and an owner that vanished leaves a cancel to be repeated.
func (b *storeBench) takeCancellation() {
	c := b.claim("k")
	sent := b.Now()
	object := *charged(c.Payment).Object
	object.Status, object.AmountReceived, object.LatestCharge = payments.StripeRequiresPaymentMethod, 0, ""
	failure := &payments.Failure{Code: "card_declined"}
	b.record(c, payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonCancelling, Failure: failure, Object: &object}, 0)
	for abandoned := range 2 {
		b.Advance(lease)
		c = b.takeOne()
		if !c.Payment.Cancelling() || c.Payment.StripePaymentIntent != object.ID || c.Payment.Failure == nil || *c.Payment.Failure != *failure || c.Abandoned != abandoned {
			b.t.Errorf("the claim: %+v", c)
		}
		if p := b.stored(c.Payment); p.InDoubt || !p.FirstSubmitAt.Equal(sent) || !p.LastSubmitAt.Equal(sent) || !p.Owned {
			b.t.Errorf("stored: %+v", p)
		}
	}
	if err := b.Store.BuryPayment(b.ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "killed"}, 0); err != nil {
		b.t.Fatal(err)
	}
	if p := b.stored(c.Payment); p.Status != payments.StatusUnknown || !p.InDoubt || p.StripePaymentIntent != object.ID || !p.FirstSubmitAt.Equal(sent) {
		b.t.Errorf("given up while its customer could still confirm it: %+v", p)
	}
}
