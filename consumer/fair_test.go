package consumer

import (
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// publishMany publishes n intents of a tenant, named by prefix.
func (f *field) publishMany(l payments.Lane, tenant, prefix string, n int) {
	f.t.Helper()
	for i := range n {
		if _, err := f.js.PublishAsync(f.subject(l, tenant), intentJSON(prefix+key(i))); err != nil {
			f.t.Fatal(err)
		}
	}
	select {
	case <-f.js.PublishAsyncComplete():
	case <-f.ctx().Done():
		f.t.Fatal("the messages were not stored")
	}
}

// doneOf counts a tenant's outcomes.
func (f *field) doneOf(tenant string) (n int) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	for _, row := range f.store.rows {
		if row.payment.TenantID == tenant && row.payment.Status == payments.StatusSucceeded {
			n++
		}
	}
	return n
}

// stalls measures by how much goroutines come late on this machine, until it is asked: a bucket bridges 50 ms, whoever is later than that leaves tokens
// unused, and calls and answers take longer.
func stalls() (late func() time.Duration) {
	const bridged, every = 50 * time.Millisecond, 10 * time.Millisecond
	stop, sum := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		var stood time.Duration
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-tick.C:
				stood += max(0, time.Since(last)-bridged)
			case <-stop:
				sum <- stood
				return
			}
		}
	}()
	return func() time.Duration { close(stop); return <-sum }
}

// On a real stream: a tenant's few payments, and another's many, are done long before the backlog that they stand behind; every message is acked
// in its turn and charged once, and the scout's readers are gone.
func TestScoutOnJetStream(t *testing.T) {
	t.Parallel()
	for _, l := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			f := newField(t, func(c *Config) { c.Concurrency = 24 })
			f.gateway.submit = takes(30 * time.Millisecond)
			const backlog, many = 3000, 300
			f.publishMany(l, "acme", "a-", backlog)
			f.publishMany(l, "globex", "g-", 1)
			f.publishMany(l, "initech", "i-", many)
			f.run()
			waitFor(t, "the single payment", func() bool { return f.doneOf("globex") == 1 })
			if n := f.doneOf("acme"); n > backlog*3/4 {
				t.Errorf("%d of %d before it were done first", n, backlog)
			}
			waitFor(t, "the other tenant's payments", func() bool { return f.doneOf("initech") == many })
			if n := f.doneOf("acme"); n > backlog-backlog/8 {
				t.Errorf("%d of %d before them were done first", n, backlog)
			}
			stream, err := f.js.Stream(f.ctx(), f.lanes[l-1].stream)
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the backlog's end", func() bool { return f.store.outcomes() == backlog+1+many && f.quiet(l) })
			if all, most := f.gateway.calls(); all != backlog+1+many || most != 1 || len(f.store.open()) != 0 {
				t.Errorf("%d calls, %d under one key", all, most)
			}
			f.stop()
			if err := <-f.ended; err != nil {
				t.Fatal(err)
			}
			if info, err := stream.Info(f.ctx()); err != nil || info.State.Consumers != 1 {
				t.Errorf("%d consumers are left: %v", info.State.Consumers, err)
			}
		})
	}
}

// The stream's answers to the scout's questions, against a stream with gaps.
func TestAheadOnJetStream(t *testing.T) {
	t.Parallel()
	f := newField(t)
	ctx := f.ctx()
	l := f.lanes[0]
	o := newAhead(l)
	f.publishMany(payments.LaneInteractive, "acme", "", 10)   // 1 to 10
	f.publishMany(payments.LaneInteractive, "globex", "", 20) // 11 to 30
	// The server counts what is pending a moment after it has stored it.
	waitFor(t, "30 messages pending", func() bool { at, err := o.position(ctx); return err != nil || at.pending == 30 })
	before, err := o.position(ctx)
	if err != nil || before.last != 30 || before.subjects != 2 || before.pending != 30 || before.delivered != 0 || before.created.IsZero() {
		t.Fatalf("%+v, %v", before, err)
	}
	for _, sequence := range []uint64{11, 15, 30} {
		if err := o.stream().SecureDeleteMsg(ctx, sequence); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := o.tenants(ctx)
	if err != nil || len(counts) != 2 || counts["acme"] != 10 || counts["globex"] != 17 {
		t.Errorf("%v, %v", counts, err)
	}
	last, err := o.last(ctx, "globex")
	none, err2 := o.last(ctx, "initech")
	if last != 29 || none != 0 || err != nil || err2 != nil {
		t.Errorf("last %d and %d, %v, %v", last, none, err, err2)
	}
	m, err := o.next(ctx, "globex", 1)
	if err != nil || m == nil || m.Sequence != 12 || m.Subject != f.subject(payments.LaneInteractive, "globex") || string(m.Data) != string(intentJSON(key(1))) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := o.next(ctx, "globex", 30); m != nil || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := o.next(ctx, "not a tenant", 1); err == nil {
		t.Error("no tenant, and no error")
	}
	r, err := o.read(ctx, "globex", 14)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for len(got) < 15 {
		list, err := r.more(6)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		for _, m := range list {
			got = append(got, m.Sequence)
		}
	}
	if got[0] != 14 || got[1] != 16 || got[14] != 29 {
		t.Errorf("%v", got)
	}
	if list, err := r.more(6); len(list) != 0 || err != nil {
		t.Errorf("%d more, %v", len(list), err)
	}
	r.close(ctx)
	if after, err := o.position(ctx); err != nil || after.delivered != 0 {
		t.Errorf("the scout's reading moved the lane's consumer: %+v, %v", after, err)
	}
	if i := f.info(payments.LaneInteractive); i.NumPending != 27 {
		t.Errorf("%d pending", i.NumPending)
	}
	f.remake(l.stream)
	if _, err := r.more(1); err == nil {
		t.Error("a reader of a stream that is gone reads")
	}
}

// With a rate the backlog stays in the stream: what waits in the store is little, what is in flight less, and the rate is used.
func TestBacklogStaysInTheStream(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.Concurrency, c.PollInterval = 256, 0 })
	const rate, latency = 50, 100 * time.Millisecond
	f.store.bucket = &bucket{rate: rate}
	f.gateway.submit = takes(latency)
	f.publishMany(payments.LaneInteractive, "acme", "", 3000)
	f.run()
	waitFor(t, "the first outcomes", func() bool { return f.store.outcomes() >= 10 })
	late := stalls()
	began, before := time.Now(), f.store.outcomes()
	waitFor(t, "more", func() bool { return f.store.outcomes() >= before+2*rate })
	took, stood := time.Since(began), late()
	f.store.mu.Lock()
	rows := len(f.store.rows)
	f.store.mu.Unlock()
	atOnce := f.gateway.atOnce()
	t.Logf("%d in %v, %d rows, at most %d at once; the machine stood for %v", 2*rate, took, rows, atOnce, stood)
	if waiting := rows - f.store.outcomes(); waiting > 3*rate {
		t.Errorf("%d payments wait in the store", waiting)
	}
	if took > 3*(time.Second+stood) || took < 1500*time.Millisecond {
		t.Errorf("%d at %d a second took %v", 2*rate, rate, took)
	}
	// The bucket holds 50 ms of the rate; the machine may be slow, and that lengthens calls.
	if most := 2 * rate * (latency + stood).Seconds() * 1.5; float64(atOnce) > most {
		t.Errorf("%d at once", atOnce)
	}
}

// While there is room each payment goes at once, claimed by Admit; and repeats of what is settled spend nothing and are soon through.
func TestRoomIsUsedAtOnceAndRepeatsSpendNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.store.bucket = &bucket{rate: 1000, tokens: 50}
	f.run()
	for i := range 10 {
		f.publish(payments.LaneInteractive, intentJSON(key(i)))
		waitFor(t, "an outcome", func() bool { return f.store.outcomes() == i+1 })
	}
	if n := f.store.count("extend"); n != 0 || f.dues[0].unclaimed.all() != 0 {
		t.Errorf("%d extended, %d wait", n, f.dues[0].unclaimed.all())
	}
	f.store.mu.Lock()
	tokens := f.store.tokens
	f.store.mu.Unlock()
	if tokens != 0 {
		t.Errorf("%d were taken, and all should have been claimed", tokens)
	}
	const repeats = 4000
	for range repeats / 10 {
		f.publishMany(payments.LaneInteractive, "acme", "", 10)
	}
	waitFor(t, "the repeats' end", func() bool { return f.quiet(payments.LaneInteractive) })
	f.store.mu.Lock()
	spent := f.store.bucket.given
	f.store.mu.Unlock()
	if calls, most := f.gateway.calls(); calls != 10 || most != 1 || spent != 10 {
		t.Errorf("%d calls, %d tokens spent", calls, spent)
	}
}

// Payments whose account has room do not stand behind those of an account that has none, though the lane pulls nothing for want of that one's
// budget: one that comes later is done at once, and many are done at the pace of their own account.
func TestAnotherAccountsBudget(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.Concurrency = 64 })
	f.store.bucket, f.store.rich = &bucket{rate: 10}, "globex"
	f.gateway.submit = takes(10 * time.Millisecond)
	f.publishMany(payments.LaneInteractive, "acme", "", 2000)
	f.publishMany(payments.LaneInteractive, "globex", "", 500)
	f.run()
	waitFor(t, "the payments of the account with room", func() bool { return f.doneOf("globex") == 500 })
	waitFor(t, "the lane to hold back", func() bool { return f.lanes[0].flow.isHolding() })
	var worst time.Duration
	late := stalls()
	for i := range 5 {
		began := time.Now()
		f.publishMany(payments.LaneInteractive, "globex", "later-"+key(i), 1)
		waitFor(t, "a later one", func() bool { return f.doneOf("globex") == 501+i })
		worst = max(worst, time.Since(began))
	}
	done, stood := f.doneOf("acme"), late()
	t.Logf("a later one took at most %v; %d of the other account were done; the machine stood for %v", worst, done, stood)
	if worst > 20*time.Second+3*stood || done > 1000 { // behind those of the other account they would have come when all 2,000 were done
		t.Errorf("%v, %d of the other account done", worst, done)
	}
}
