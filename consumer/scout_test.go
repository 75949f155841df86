package consumer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// outlook is a scout on a stream in memory, on the interactive lane of a rig whose slots a tenant's backlog keeps busy.
type outlook struct {
	*rig
	*scout
	stream *fakeAhead
	free   []func() // ends what is in flight
}

func newOutlook(t *testing.T, change ...func(*Config)) *outlook {
	o := &outlook{rig: calmRig(t, change...), stream: newFakeAhead()}
	o.scout = newScout(o.lanes[0], o.dues[0], o.stream)
	return o
}

// backlog publishes n messages of acme, which has all slots.
func (o *outlook) backlog(n int) {
	for i := range n {
		o.stream.publish("acme", intentJSON(fmt.Sprintf("backlog-%d", i)))
	}
	for range o.Concurrency {
		o.free = append(o.free, o.tally.begin(payments.LaneInteractive, "acme"))
	}
}

// lookOnce looks and waits for all that comes of it.
func (o *outlook) lookOnce() {
	o.t.Helper()
	if err := o.round(context.Background(), context.Background()); err != nil {
		o.t.Fatal(err)
	}
	o.bringing.Wait()
}

// stored lists the keys of a tenant's payments.
func (o *outlook) stored(tenant string) (keys []string) {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	for _, row := range o.store.rows {
		if row.payment.TenantID == tenant {
			keys = append(keys, row.payment.IdempotencyKey)
		}
	}
	slices.Sort(keys)
	return keys
}

// takeAll is Take by whoever.
func (o *outlook) takeAll() int {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	n := 0
	for id, row := range o.store.rows {
		if row.ticket && row.token.IsZero() {
			row.ticket, row.payment.Status = false, payments.StatusSucceeded
			o.dues[0].unclaimed.taken([]payments.Claim{{Payment: payments.Payment{ID: id}}})
			n++
		}
	}
	return n
}

// A single payment behind another tenant's backlog is stored, unclaimed, and Take is woken. The backlog is left to the lane, and the message too.
func TestScoutBringsTheOtherTenant(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(1000)
	o.stream.publish("globex", intentJSON("single"))
	o.lookOnce()
	if got := o.stored("globex"); len(got) != 1 || len(o.stored("acme")) != 0 || len(o.dues[0].wake) != 1 || !o.sawFate(fateScouted) {
		t.Errorf("stored %v and %d of the backlog", got, len(o.stored("acme")))
	}
	if row := o.store.rows[payments.NewID("globex", "single")]; !row.token.IsZero() || !row.ticket || row.payment.Lane != payments.LaneInteractive {
		t.Errorf("%+v", row)
	}
	if !o.slots.of(payments.LaneInteractive).hungry[forTickets] {
		t.Error("the lane was not told to leave slots")
	}
	admits := o.store.count("admit")
	o.lookOnce()
	if n := o.store.count("admit"); n != admits || o.store.count("bury message")+o.store.count("suspect") != 0 {
		t.Errorf("%d further calls for what it has had", n-admits)
	}
	// The message itself finds the row.
	msg := newMsg("single", 1)
	msg.subject = "payments.intent.globex"
	o.handle(context.Background(), o.rig.from, msg)
	if calls, _ := o.gateway.calls(); msg.acks() != 1 || calls != 0 || o.tally.came(payments.LaneInteractive)["globex"] != 1 {
		t.Errorf("%d acks, %d calls", msg.acks(), calls)
	}
	for _, end := range o.free {
		end()
	}
}

// Whatever is not a clean new intent has its fate decided when its turn comes, with its message in hand.
func TestScoutLeavesWhatIsNotClean(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(100)
	conflicting := testIntent("taken")
	conflicting.TenantID, conflicting.Amount = "globex", 1
	o.store.insert(conflicting, payments.LaneInteractive, 0)
	o.takeAll()
	for _, body := range [][]byte{
		[]byte("?"), {}, intentJSON("taken"), intentJSON("batch::1"), []byte(`{"idempotency_key":"c","card":"` + card + `"}`),
		bytes.Replace(intentJSON("negative"), []byte("9900"), []byte("-1"), 1), []byte(`{"amount":1}`),
	} {
		o.stream.publish("globex", body)
	}
	o.stream.messages = append(o.stream.messages, fakeStored{o.stream.sequence + 1, "globex", "payments.bulk.globex", intentJSON("other-lane")})
	o.stream.sequence++
	o.stream.publish("globex", intentJSON("clean"))
	for range 3 {
		o.lookOnce()
	}
	if got := o.stored("globex"); !slices.Equal(got, []string{"clean", "taken"}) {
		t.Errorf("stored %v", got)
	}
	for _, verb := range []string{"bury message", "bury payment", "suspect", "find", "record"} {
		if o.store.count(verb) != 0 {
			t.Errorf("%s", verb)
		}
	}
}

// A tenant that does not exist costs one look, whatever it publishes.
func TestScoutAndAnUnknownTenant(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(10)
	for i := range 500 {
		o.stream.publish("nobody", intentJSON(key(i)))
	}
	for range 5 {
		o.lookOnce()
	}
	if n := o.store.count("admit"); n > windowMin {
		t.Errorf("%d tries", n)
	}
}

// A bug that panics on a message does not end the process, nor what is behind the message.
func TestScoutSurvivesAPanic(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(10)
	poison := payments.NewID("globex", "poison")
	o.store.before = func(verb string, id payments.ID) error {
		if verb == "admit" && id == poison {
			panic("bug")
		}
		return nil
	}
	o.stream.publish("globex", intentJSON("poison"))
	o.stream.publish("globex", intentJSON("fine"))
	o.lookOnce()
	if got := o.stored("globex"); !slices.Equal(got, []string{"fine"}) || o.gate.inside != 0 || len(o.admits)+len(o.seats) != 0 || o.underWay.Load() != 0 {
		t.Errorf("stored %v; left over: %d inside, %d under way", got, o.gate.inside, o.underWay.Load())
	}
}

// What could not be stored for want of the store is tried again when it is back; what can never be stored is not.
func TestScoutAndAStoreAway(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(10)
	for i := range 6 {
		o.stream.publish("globex", intentJSON(key(i)))
	}
	answer := errAway
	var mu sync.Mutex
	o.store.before = func(_ string, id payments.ID) error {
		mu.Lock()
		defer mu.Unlock()
		if answer != nil && id == payments.NewID("globex", key(2)) {
			return answer
		}
		return nil
	}
	o.lookOnce()
	if len(o.stored("globex")) != 5 {
		t.Errorf("stored %v", o.stored("globex"))
	}
	o.noteStore(errAway)
	if o.look(context.Background(), context.Background()) < scoutEvery/2 || o.store.count("admit") != 6 {
		t.Error("the scout did not wait for the store")
	}
	mu.Lock()
	answer = nil
	mu.Unlock()
	o.noteStore(nil)
	o.takeAll()
	o.lookOnce()
	if got := o.stored("globex"); len(got) != 6 {
		t.Errorf("stored %v", got)
	}
	mu.Lock()
	answer = payments.Errorf(payments.CodeInternal, "no such column")
	mu.Unlock()
	o.stream.publish("globex", intentJSON(key(2)))
	o.horizon.reset(o.stream.created)
	o.listed = time.Time{}
	o.lookOnce()
	before := o.store.count("admit")
	o.lookOnce()
	if n := o.store.count("admit"); n != before {
		t.Errorf("%d tries of what never goes", n-before)
	}
}

// Where there is nothing to do next to nothing is asked for.
func TestScoutRests(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	asks := func(o *outlook) string {
		o.stream.mu.Lock()
		defer o.stream.mu.Unlock()
		return fmt.Sprint(o.stream.asked)
	}
	t.Run("one tenant", func(t *testing.T) {
		o := newOutlook(t)
		o.backlog(10_000)
		o.look(ctx, ctx)
		if got := asks(o); got != "map[position:1]" {
			t.Error(got)
		}
	})
	t.Run("no backlog", func(t *testing.T) {
		o := newOutlook(t)
		o.backlog(10)
		o.stream.publish("globex", intentJSON("k"))
		o.stream.deliver(11)
		o.look(ctx, ctx)
		if got := asks(o); got != "map[position:1]" {
			t.Error(got)
		}
	})
	t.Run("a lane that asks for more", func(t *testing.T) {
		o := newOutlook(t)
		o.stream.publish("globex", intentJSON("k"))
		o.lanes[0].asking.Store(true)
		o.look(ctx, ctx)
		if got := asks(o); got != "map[]" {
			t.Error(got)
		}
		o.lanes[0].rest.note(1, 5) // and has heard that there is more
		o.backlog(1)
		o.look(ctx, ctx)
		o.bringing.Wait()
		if len(o.stored("globex")) != 1 {
			t.Error("a message that stands behind was not seen")
		}
	})
	t.Run("a backlog that is soon gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := newOutlook(t)
			for i := range 3000 {
				o.stream.publish([]string{"acme", "globex"}[i%2], intentJSON(key(i)))
			}
			o.look(ctx, ctx)
			o.bringing.Wait()
			time.Sleep(time.Second)
			o.stream.deliver(2000)
			before := o.stream.questions("next") + o.stream.questions("last")
			o.look(ctx, ctx)
			o.bringing.Wait()
			if n := o.stream.questions("next") + o.stream.questions("last"); n != before {
				t.Errorf("%d questions about what comes within half a second", n-before)
			}
			o.closeReaders(ctx, true)
		})
	})
	t.Run("too many tenants", func(t *testing.T) {
		log := &buffer{}
		o := newOutlook(t, logTo(log))
		o.backlog(2)
		o.scout.ahead = crowded{o.stream}
		for range 3 {
			o.look(ctx, ctx)
		}
		if got := asks(o); got != "map[position:3]" || lines(log.String(), "tenants=") != 1 {
			t.Errorf("%s, log:\n%s", got, log)
		}
	})
}

// crowded is a stream with more tenants than can be listed.
type crowded struct{ *fakeAhead }

func (c crowded) position(ctx context.Context) (position, error) {
	p, err := c.fakeAhead.position(ctx)
	p.subjects = scoutTenantsMax + 1
	return p, err
}

// The questions of one look are bounded, however many tenants there are; the rest have their turn, and those with new messages come first.
func TestScoutAndManyTenants(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	const tenants = 6000
	for i := range tenants {
		o.stream.publish(fmt.Sprintf("t%d", i), intentJSON("old"))
	}
	o.stream.deliver(tenants)
	o.backlog(10)
	o.lookOnce()
	if n := o.stream.questions("last") + o.stream.questions("next"); n > 2*probesMax {
		t.Errorf("%d questions", n)
	}
	o.stream.publish("t17", intentJSON("new"))
	o.listed = time.Time{} // it is time to list
	o.lookOnce()
	if got := o.stored("t17"); !slices.Equal(got, []string{"new"}) {
		t.Errorf("stored %v", got)
	}
}

// A tenant with many payments has a few brought at first, more as they are taken, and never more than twice the slots; it is read many at a time.
func TestScoutKeepsUp(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(10)
	const n = 3000
	for i := range n {
		o.stream.publish("globex", intentJSON(key(i)))
	}
	o.lookOnce()
	if got := len(o.stored("globex")); got != windowMin {
		t.Errorf("%d at first", got)
	}
	looks, most := 0, 0
	for ; len(o.stored("globex")) < n; looks++ {
		most = max(most, o.takeAll())
		o.lookOnce()
		if looks > 100 {
			t.Fatalf("%d of %d after %d looks", len(o.stored("globex")), n, looks)
		}
	}
	if asked := o.stream.questions("next") + o.stream.questions("more"); most > o.ticketsMax() || asked > n/10 {
		t.Errorf("%d waited at once, %d may; %d questions", most, o.ticketsMax(), asked)
	}
	if got := o.slots.of(payments.LaneInteractive).messages; got != 0.5 {
		t.Errorf("the messages' share with one of two served by tickets: %v", got)
	}
	o.closeReaders(context.Background(), true)
	if o.stream.questions("open") != 0 {
		t.Error("a reader was left open")
	}
}

// Tickets that nobody takes, for want of budget, are not added to.
func TestScoutWaitsForTake(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(10)
	for i := range 100 {
		o.stream.publish("globex", intentJSON(key(i)))
	}
	for range 10 {
		o.lookOnce()
	}
	if got := len(o.stored("globex")); got != windowMin {
		t.Errorf("%d wait", got)
	}
	for taken := range windowMin / 2 {
		o.dues[0].unclaimed.taken([]payments.Claim{claimOf("globex", key(taken))})
		if taken == windowMin/2-2 {
			o.lookOnce()
			if got := len(o.stored("globex")); got != windowMin {
				t.Errorf("%d after %d were taken", got, taken+1)
			}
		}
	}
	o.lookOnce()
	if got := len(o.stored("globex")); got != windowMin*3/2 {
		t.Errorf("%d after half of them were taken", got)
	}
}

// In a mixed stream everybody's messages come by themselves, and are left to. Who gets far less than its share there is brought.
func TestScoutAndAMixedStream(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	for i := range 2000 {
		tenant := []string{"acme", "globex"}[i%2]
		if i%40 == 0 {
			tenant = "initech"
		}
		o.stream.publish(tenant, intentJSON(key(i)))
	}
	o.stream.deliver(1)
	for range o.Concurrency / 2 {
		o.free = append(o.free, o.tally.begin(payments.LaneInteractive, "acme"), o.tally.begin(payments.LaneInteractive, "globex"))
	}
	o.tally.came(payments.LaneInteractive)
	for i := range 200 {
		o.tally.note(payments.LaneInteractive, []string{"acme", "globex"}[i%2])
	}
	o.lookOnce()
	for _, end := range o.free {
		end() // none of theirs is in flight at this moment
	}
	o.bring(context.Background(), context.Background())
	o.bringing.Wait()
	if a, g, i := len(o.stored("acme")), len(o.stored("globex")), len(o.stored("initech")); a+g != 0 || i == 0 {
		t.Errorf("brought %d, %d and %d", a, g, i)
	}
}

// Two scouts do not do all work twice: who finds the other's tickets leaves the tenant to it for a while.
func TestTwoScouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, twoScouts)
}

func twoScouts(t *testing.T) {
	o := newOutlook(t)
	other := calmRig(t, func(c *Config) { c.Store, c.Processor.Store = o.store, o.store })
	second := newScout(other.lanes[0], other.dues[0], o.stream)
	for range other.Concurrency {
		other.tally.begin(payments.LaneInteractive, "acme")
	}
	o.backlog(10)
	for i := range 100 {
		o.stream.publish("globex", intentJSON(key(i)))
	}
	ctx := context.Background()
	o.lookOnce()
	before := o.store.count("admit")
	for range 5 {
		if err := second.round(ctx, ctx); err != nil {
			t.Fatal(err)
		}
		second.bringing.Wait()
	}
	if n := o.store.count("admit") - before; n == 0 || n > windowMin {
		t.Errorf("%d payments were looked at twice", n)
	}
	if len(other.dues[0].wake) != 1 {
		t.Error("Take was not woken for the tickets of the other process")
	}
	o.takeAll()
	time.Sleep(2 * layoffTime) // it is over
	if err := second.round(ctx, ctx); err != nil {
		t.Fatal(err)
	}
	second.bringing.Wait()
	if got := len(o.stored("globex")); got <= windowMin {
		t.Errorf("%d stored: nobody went on", got)
	}
}

// A stream that is made anew counts from 1 again, and a consumer may be set back: what was known is forgotten.
func TestScoutStartsAnew(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.backlog(setBack / 2)
	o.stream.publish("globex", intentJSON("early"))
	o.backlog(setBack*3/2 + 9)
	o.stream.publish("globex", intentJSON("before"))
	o.stream.deliver(2 * setBack)
	o.lookOnce()
	o.takeAll()
	o.stream.deliver(10)
	o.stream.publish("globex", intentJSON("after"))
	o.listed = time.Time{}
	o.lookOnce()
	if got := o.stored("globex"); !slices.Equal(got, []string{"after", "before", "early"}) {
		t.Errorf("stored %v", got)
	}
	o.takeAll()
	o.stream.mu.Lock()
	o.stream.created, o.stream.messages, o.stream.sequence, o.stream.delivered = time.Unix(200, 0), nil, 0, 0
	o.stream.mu.Unlock()
	o.backlog(3)
	o.stream.publish("globex", intentJSON("anew"))
	o.lookOnce()
	if got := o.stored("globex"); !slices.Contains(got, "anew") {
		t.Errorf("stored %v", got)
	}
}

// With JetStream away the scout says so once, asks seldom, and goes on when it is back. It ends when it is told to, with nothing left open.
func TestScoutRun(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	synctest.Test(t, func(t *testing.T) {
		o := newOutlook(t, logTo(log))
		o.backlog(10)
		for i := range 500 {
			o.stream.publish("globex", intentJSON(key(i)))
		}
		o.stream.setAway(errors.New("no servers"))
		ctx, stop := context.WithCancel(context.Background())
		var loop sync.WaitGroup
		loop.Go(func() { o.scout.run(ctx, context.Background()) })
		time.Sleep(30 * time.Second)
		if n := o.stream.questions("position"); n < 4 || n > 10 || strings.Count(log.String(), "no servers") != 1 {
			t.Errorf("%d questions in 30 s, log:\n%s", n, log)
		}
		o.stream.setAway(nil)
		time.Sleep(7 * time.Second)
		for range 40 { // taken as fast as they come: the scout is told, and keeps up
			o.takeAll()
			time.Sleep(2 * scoutGap)
		}
		if got := len(o.stored("globex")); got != 500 {
			t.Errorf("%d of 500", got)
		}
		stop()
		loop.Wait()
		if o.stream.questions("open") != 0 || len(o.readers) != 0 {
			t.Error("a reader was left open")
		}
	})
}
