package stripe

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// eventJSON is an event about the object.
func eventJSON(id, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2019-03-14","type":"payment_intent.created","data":{"object":%s}}`, id, object)
}

// scripted answers lists, events and single PaymentIntents each in their order; those of which there are no more with an empty list.
type scripted struct {
	mu                     sync.Mutex
	lists, events, objects []string
	queries                []string // of events
}

func (b *scripted) answer(_ int, c net.Conn, r request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := &b.lists
	switch {
	case r.URL.Path == eventsPath:
		of = &b.events
		b.queries = append(b.queries, r.URL.RawQuery)
	case strings.HasPrefix(r.URL.Path, createPath+"/"):
		of = &b.objects
	}
	answer := reply(200, listJSON(false))
	if len(*of) > 0 {
		answer, *of = (*of)[0], (*of)[1:]
	}
	io.WriteString(c, answer)
	return false
}

// at is a gateway to the server whose clock stands.
func (s *rawServer) at(t *testing.T, now time.Time, change ...func(*Options)) *Gateway {
	t.Helper()
	o := options(s.url)
	o.Clock = fixedClock(now)
	for _, f := range change {
		f(&o)
	}
	return gatewayTo(t, o)
}

// What only an event tells of is found, as it stands now and not as the event has it.
func TestLookReadsEventsWhenTheListShowsNothing(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	ours := intentJSON(p, "requires_payment_method")
	foreign := strings.Replace(withID(ours, "pi_2"), `"oncepay"`, `"other"`, 1)
	anothers := strings.Replace(withID(ours, "pi_3"), p.ID.String(), "pay_0", 1)
	b := &scripted{
		events: []string{
			reply(200, listJSON(true, eventJSON("evt_9", stranger("pi_9")), eventJSON("evt_8", ours))),
			reply(200, listJSON(false, `{"id":"evt_71","object":"event","type":"plan.created","data":{"object":{"object":"plan"}}}`, eventJSON("evt_7", ours), eventJSON("evt_6", foreign), eventJSON("evt_5", anothers))),
		},
		objects: []string{reply(200, intentJSON(p, "succeeded"))},
	}
	s := newRawServer(t, b.answer)
	progress := 0
	o := s.at(t, p.LastSubmitAt.Add(2*time.Hour)).Look(t.Context(), p, func() error { progress++; return nil })
	want(t, o, payments.ObservedRecords)
	noSecrets(t, o)
	if len(o.Found) != 1 || o.Found[0].ID != "pi_3Test" || o.Found[0].Status != payments.StripeSucceeded {
		t.Fatalf("found %+v", o.Found)
	}
	if s.gets.Load() != 2 || s.events.Load() != 2 || s.posts.Load() != 0 || progress != 4 {
		t.Errorf("%d readings, %d pages of events, %d extensions", s.gets.Load(), s.events.Load(), progress)
	}
	const window = "created[gte]=1699999700&created[lte]=1700004201&limit=100"
	types := "&types[]=" + strings.Join(eventTypes, "&types[]=")
	if got := strings.Join(b.queries, "\n"); got != window+types+"\n"+window+"&starting_after=evt_8"+types {
		t.Errorf("asked for\n%s", got)
	}
}

func TestEventsAreNotReadWhenTheListShowsIt(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	for _, change := range []func(*payments.Payment){func(*payments.Payment) {}, func(p *payments.Payment) { p.Customer = "" }} {
		p := inDoubt(change)
		s := newRawServer(t, (&scripted{lists: []string{reply(200, listJSON(false, intentJSON(p, "succeeded")))}}).answer)
		o := s.at(t, p.LastSubmitAt).Look(t.Context(), p, nil)
		want(t, o, payments.ObservedRecords)
		if len(o.Found) != 1 || s.events.Load() != 0 || s.gets.Load() != 1 {
			t.Errorf("found %+v after %d pages of events", o.Found, s.events.Load())
		}
	}
	// Stripe lists no events that are older than 30 days: nothing would be learnt from them.
	for now, pages := range map[time.Time]int32{
		p.LastSubmitAt.Add(lookAfter + eventsKept):               1,
		p.LastSubmitAt.Add(lookAfter + eventsKept + time.Second): 0,
	} {
		s := newRawServer(t, (&scripted{}).answer)
		o := s.at(t, now).Look(t.Context(), p, nil)
		want(t, o, payments.ObservedRecords)
		if len(o.Found) != 0 || s.events.Load() != pages {
			t.Errorf("at %s: found %+v after %d pages of events, want %d", now, o.Found, s.events.Load(), pages)
		}
	}
}

// While the window's end is still to come there is none for events either.
func TestEventsWindowIsOpenUntilItsEnd(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	b := &scripted{}
	s := newRawServer(t, b.answer)
	want(t, s.at(t, p.LastSubmitAt).Look(t.Context(), p, nil), payments.ObservedRecords)
	if len(b.queries) != 1 || !strings.HasPrefix(b.queries[0], "created[gte]=1699999700&limit=100&types[]=") {
		t.Errorf("asked for %v", b.queries)
	}
}

// Events that were not read to their end, and one whose PaymentIntent cannot be read, prove nothing.
func TestBrokenEventsProveNothing(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	const inv = "invalid_request_error"
	mine := reply(200, listJSON(false, eventJSON("evt_1", intentJSON(p, "succeeded"))))
	first := reply(200, listJSON(true, eventJSON("evt_2", stranger("pi_2"))))
	for name, c := range map[string]struct {
		events, objects []string
		health          payments.Health
	}{
		"500":               {[]string{first, reply(500, errorJSON("api_error", "", ""))}, nil, payments.HealthBad},
		"429":               {[]string{first, reply(429, errorJSON(inv, "rate_limit", ""))}, nil, payments.HealthGood},
		"401":               {[]string{reply(401, errorJSON(inv, "", ""))}, nil, payments.HealthRefused},
		"no right":          {[]string{reply(403, errorJSON(inv, "", ""))}, nil, payments.HealthNothing},
		"garbage":           {[]string{first, reply(200, "<<")}, nil, payments.HealthBad},
		"PaymentIntents":    {[]string{reply(200, listJSON(false, intentJSON(p, "succeeded")))}, nil, payments.HealthBad},
		"no type":           {[]string{reply(200, listJSON(false, `{"id":"evt_1","object":"event"}`))}, nil, payments.HealthBad},
		"no data":           {[]string{reply(200, listJSON(false, `{"id":"evt_1","object":"event","type":"payment_intent.canceled"}`))}, nil, payments.HealthBad},
		"about a charge":    {[]string{reply(200, listJSON(false, eventJSON("evt_1", `{"id":"ch_1","object":"charge","metadata":{}}`)))}, nil, payments.HealthBad},
		"no metadata":       {[]string{reply(200, listJSON(false, eventJSON("evt_1", `{"id":"pi_1","object":"payment_intent"}`)))}, nil, payments.HealthBad},
		"circle":            {[]string{first, first}, nil, payments.HealthBad},
		"gone":              {[]string{mine}, []string{reply(404, errorJSON(inv, "resource_missing", ""))}, payments.HealthNothing},
		"cannot be read":    {[]string{mine}, []string{reply(500, errorJSON("api_error", "", ""))}, payments.HealthBad},
		"read as another":   {[]string{mine}, []string{reply(200, withID(intentJSON(p, "succeeded"), "pi_4"))}, payments.HealthNothing},
		"read, not allowed": {[]string{mine}, []string{reply(403, errorJSON(inv, "", ""))}, payments.HealthRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, (&scripted{events: c.events, objects: c.objects}).answer)
			o := s.at(t, p.LastSubmitAt).Look(t.Context(), p, nil)
			want(t, o, payments.ObservedNoRecords)
			noSecrets(t, o)
			if len(o.Found) != 0 || o.Detail == "" || o.Health() != c.health {
				t.Errorf("health %q, want %q: %+v", o.Health(), c.health, o)
			}
		})
	}
}

// A key that may not read events is told of once, with the remedy.
func TestKeyThatMayNotReadEvents(t *testing.T) {
	t.Parallel()
	log := &lockedLog{}
	refused := reply(403, errorJSON("invalid_request_error", "", ""))
	s := newRawServer(t, (&scripted{events: []string{refused, refused}}).answer)
	g := s.at(t, sentAt, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for range 2 {
		o := g.Look(t.Context(), inDoubt(), nil)
		if o.Kind != payments.ObservedNoRecords || !o.LacksRight || !strings.Contains(o.Detail, "give it \"Events: Read\"") {
			t.Errorf("%+v", o)
		}
	}
	if n := strings.Count(log.String(), `give it \"Events: Read\"`); n != 1 || strings.Contains(log.String(), testSecret) {
		t.Errorf("told %d times: %s", n, log)
	}
}

func TestEventsEndWithTheTicket(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	mine := reply(200, listJSON(false, eventJSON("evt_1", intentJSON(p, "succeeded"))))
	for last := 2; last <= 3; last++ { // before the events, and before what one tells of is read
		s := newRawServer(t, (&scripted{events: []string{mine}}).answer)
		calls := 0
		o := s.at(t, p.LastSubmitAt).Look(t.Context(), p, func() error {
			if calls++; calls == last {
				return errNotNow
			}
			return nil
		})
		want(t, o, payments.ObservedNoRecords)
		if calls != last || s.gets.Load() != 1 || int(s.events.Load()) != last-2 {
			t.Errorf("%d extensions, %d readings, %d pages of events", calls, s.gets.Load(), s.events.Load())
		}
	}
}

// After an outage many payments of many customers are not listed: their events are read together.
func TestLooksShareEvents(t *testing.T) {
	t.Parallel()
	const n = 200
	free := make(chan struct{})
	reading := make(chan struct{}, 1)
	var asked atomic.Int32
	objects := map[string]string{}
	var told []string
	order := func(i int) payments.Payment {
		return inDoubt(func(p *payments.Payment) {
			p.IdempotencyKey, p.Customer = fmt.Sprintf("order-%d", i), []string{"", fmt.Sprintf("cus_%d", i)}[i%2]
		})
	}
	for i := range n / 2 {
		id := fmt.Sprintf("pi_%d", i)
		objects[createPath+"/"+id] = withID(intentJSON(order(i), "succeeded"), id)
		told = append(told, eventJSON(fmt.Sprintf("evt_%d", i), objects[createPath+"/"+id]))
	}
	s := newRawServer(t, func(_ int, c net.Conn, r request) bool {
		switch object := objects[r.URL.Path]; {
		case object != "":
			io.WriteString(c, reply(200, object))
		case r.URL.Path != eventsPath:
			io.WriteString(c, reply(200, listJSON(false)))
		case asked.Add(1) == 1:
			reading <- struct{}{}
			<-free
			io.WriteString(c, reply(200, listJSON(false)))
		default:
			io.WriteString(c, reply(200, listJSON(false, told...)))
		}
		return false
	})
	g := s.at(t, sentAt.Add(10*time.Minute))
	var wg sync.WaitGroup
	look := func(i, found int) {
		wg.Go(func() {
			o := g.Look(t.Context(), order(i), func() error { return nil })
			if o.Kind != payments.ObservedRecords || len(o.Found) != found || found == 1 && o.Found[0].ID != fmt.Sprintf("pi_%d", i) {
				t.Errorf("look-up %d shows %+v", i, o)
			}
		})
	}
	look(n, 0)
	<-reading
	for i := range n {
		look(i, []int{1, 0}[min(i/(n/2), 1)])
	}
	g.events.waiting(t, n)
	close(free)
	wg.Wait()
	if s.events.Load() != 2 || g.events.busy || g.events.next != nil {
		t.Errorf("events were read %d times, busy %t", s.events.Load(), g.events.busy)
	}
}
