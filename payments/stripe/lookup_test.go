package stripe

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

var sentAt = time.Unix(1_700_000_000, 500_000_000)

func inDoubt(change ...func(*payments.Payment)) payments.Payment {
	return testPayment(append([]func(*payments.Payment){func(p *payments.Payment) {
		p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = true, sentAt, sentAt.Add(10*time.Minute)
	}}, change...)...)
}

func listJSON(more bool, items ...string) string {
	return fmt.Sprintf(`{"object":"list","url":"/v1/payment_intents","has_more":%t,"data":[%s]}`, more, strings.Join(items, ","))
}

// stranger is a PaymentIntent of nobody's, of which only id and metadata can be read.
func stranger(id string) string {
	return fmt.Sprintf(`{"id":%q,"object":"payment_intent","metadata":{},"customer":{"deleted":[]}}`, id)
}

func withID(object, id string) string { return strings.Replace(object, "pi_3Test", id, 1) }

// inOrder answers the nth request with the nth answer; there are no events.
func inOrder(answers ...string) answerer {
	turn := make(chan string, len(answers))
	for _, a := range answers {
		turn <- a
	}
	return func(_ int, c net.Conn, r request) bool {
		if r.URL.Path == eventsPath {
			io.WriteString(c, reply(200, listJSON(false)))
			return false
		}
		io.WriteString(c, <-turn)
		return false
	}
}

func TestLookReadsEveryPage(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	ours := intentJSON(p, "succeeded")
	s := newRawServer(t, inOrder(
		reply(200, listJSON(true, stranger("pi_9"), stranger("pi_8"))),
		reply(200, listJSON(true, withID(ours, "pi_7"), stranger("pi_6"))),
		reply(200, listJSON(false, withID(ours, "pi_7"), strings.Replace(withID(ours, "pi_5"), `"oncepay"`, `"other"`, 1),
			strings.Replace(withID(ours, "pi_4"), p.ID.String(), "pay_0", 1))),
	))
	g := gatewayTo(t, options(s.url))
	progress := 0
	o := g.Look(t.Context(), p, func() error {
		if int(s.gets.Load()) != progress {
			t.Errorf("progress %d after %d pages", progress, s.gets.Load())
		}
		progress++
		return nil
	})
	want(t, o, payments.ObservedRecords)
	if len(o.Found) != 1 || o.Found[0].ID != "pi_7" || progress != 3 || s.gets.Load() != 3 || s.posts.Load() != 0 {
		t.Fatalf("found %+v after %d pages and %d extensions", o.Found, s.gets.Load(), progress)
	}
	const window = "created[gte]=1699999700&created[lte]=1700004201&customer=cus_1&limit=100"
	for i, q := range []string{window, window + "&starting_after=pi_8", window + "&starting_after=pi_6"} {
		if r := <-s.arrived; r.URL.Path != createPath || r.URL.RawQuery != q {
			t.Errorf("page %d: %s?%s", i, r.URL.Path, r.URL.RawQuery)
		}
	}
}

func TestLookWithoutCustomerListsTheWindow(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, inOrder(reply(200, listJSON(false))))
	o := gatewayTo(t, options(s.url)).Look(t.Context(), inDoubt(func(p *payments.Payment) { p.Customer = "" }), nil)
	want(t, o, payments.ObservedRecords)
	if r := <-s.arrived; r.URL.RawQuery != "created[gte]=1699999700&created[lte]=1700004201&limit=100" || len(o.Found) != 0 {
		t.Errorf("%s, found %v", r.URL.RawQuery, o.Found)
	}
}

func TestLookFindsSeveral(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	ours := intentJSON(p, "succeeded")
	s := newRawServer(t, inOrder(reply(200, listJSON(false, withID(ours, "pi_1"), withID(ours, "pi_2")))))
	o := gatewayTo(t, options(s.url)).Look(t.Context(), p, nil)
	want(t, o, payments.ObservedRecords)
	if len(o.Found) != 2 {
		t.Errorf("found %v", o.Found)
	}
}

// A customer that Stripe does not know must not keep the payment from being looked up.
func TestLookWithUnknownCustomer(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	s := newRawServer(t, inOrder(
		reply(400, errorJSON("invalid_request_error", "resource_missing", `,"param":"customer"`)),
		reply(200, listJSON(false, intentJSON(p, "succeeded"))),
	))
	o := gatewayTo(t, options(s.url)).Look(t.Context(), p, nil)
	want(t, o, payments.ObservedRecords)
	if len(o.Found) != 1 {
		t.Errorf("found %v", o.Found)
	}
}

// A listing that was not read to its end proves nothing, on whichever page it breaks.
func TestBrokenListingsProveNothing(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	first := reply(200, listJSON(true, intentJSON(p, "succeeded")))
	noMetadata := `{"id":"pi_1","object":"payment_intent"}`
	broken := map[string]string{
		"500":                 reply(500, errorJSON("api_error", "", ""), "Retry-After: 9"),
		"429":                 reply(429, errorJSON("invalid_request_error", "rate_limit", ""), "Retry-After: 9"),
		"401":                 reply(401, errorJSON("invalid_request_error", "", ""), "Retry-After: 9"),
		"404":                 reply(404, errorJSON("invalid_request_error", "", ""), "Retry-After: 9"),
		"html":                reply(502, "<html>", "Retry-After: 9"),
		"redirect":            reply(302, "", "Location: /v1/balance", "Retry-After: 9"),
		"201":                 reply(201, listJSON(false), "Retry-After: 9"),
		"garbage":             reply(200, "\x00", "Retry-After: 9"),
		"empty":               reply(200, "", "Retry-After: 9"),
		"null":                reply(200, "null", "Retry-After: 9"),
		"no has_more":         reply(200, `{"object":"list","data":[]}`, "Retry-After: 9"),
		"has_more null":       reply(200, `{"object":"list","data":[],"has_more":null}`, "Retry-After: 9"),
		"has_more word":       reply(200, `{"object":"list","data":[],"has_more":"false"}`, "Retry-After: 9"),
		"no data":             reply(200, `{"object":"list","has_more":false}`, "Retry-After: 9"),
		"data null":           reply(200, `{"object":"list","has_more":false,"data":null}`, "Retry-After: 9"),
		"no list":             reply(200, `{"object":"search_result","has_more":false,"data":[]}`, "Retry-After: 9"),
		"case":                reply(200, `{"Object":"list","Has_more":false,"Data":[]}`, "Retry-After: 9"),
		"item without data":   reply(200, listJSON(false, noMetadata), "Retry-After: 9"),
		"item null":           reply(200, listJSON(false, "null"), "Retry-After: 9"),
		"item of another":     reply(200, listJSON(false, `{"id":"ch_1","object":"charge","metadata":{}}`), "Retry-After: 9"),
		"ours cannot be read": reply(200, listJSON(false, strings.Replace(withID(intentJSON(p, "x"), "pi_2"), `"amount":`, `"a":`, 1)), "Retry-After: 9"),
		"more after nothing":  reply(200, listJSON(true), "Retry-After: 9"),
		"truncated":           reply(200, listJSON(false), "Retry-After: 9")[:150],
		"circle":              reply(200, listJSON(true, withID(intentJSON(p, "x"), "pi_3Test")), "Retry-After: 9"),
	}
	healths := map[string]payments.Health{
		"429": payments.HealthGood, "404": payments.HealthGood, "401": payments.HealthRefused, "ours cannot be read": payments.HealthNothing,
	}
	for name, answer := range broken {
		t.Run(name, func(t *testing.T) {
			health, ok := healths[name]
			if !ok {
				health = payments.HealthBad
			}
			t.Parallel()
			for page, answers := range [][]string{{answer, answer}, {first, answer, answer}} {
				if page == 0 && name == "circle" {
					continue
				}
				s := newRawServer(t, inOrder(answers...))
				o := gatewayTo(t, options(s.url)).Look(t.Context(), p, nil)
				want(t, o, payments.ObservedNoRecords)
				noSecrets(t, o)
				if o.Found != nil || o.Object != nil || o.Detail == "" || name != "truncated" && name != "ours cannot be read" && o.RetryAfter != 9*time.Second {
					t.Errorf("page %d: %+v", page, o)
				}
				if o.Health() != health {
					t.Errorf("page %d: says %q of the way to Stripe, want %q: %+v", page, o.Health(), health, o)
				}
			}
		})
	}
}

func TestLookThatIsTooLong(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, inOrder(
		reply(200, listJSON(true, stranger("pi_1"))), reply(200, listJSON(true, stranger("pi_2"))), reply(200, listJSON(false)),
	))
	g := gatewayTo(t, options(s.url))
	g.pagesMax = 2
	want(t, g.Look(t.Context(), inDoubt(), nil), payments.ObservedNoRecords)
	if s.gets.Load() != 2 {
		t.Errorf("%d pages were read", s.gets.Load())
	}
}

func TestLookWindow(t *testing.T) {
	t.Parallel()
	for query, change := range map[string]func(*payments.Payment){
		"created[gte]=1699999700&created[lte]=1700003601&limit=100": func(p *payments.Payment) { p.LastSubmitAt = time.Time{} },
		"created[gte]=1699999699&created[lte]=1700003600&limit=100": func(p *payments.Payment) {
			p.FirstSubmitAt, p.LastSubmitAt = time.Unix(1_699_999_999, 1), time.Unix(1_700_000_000, 0)
		},
		// When nothing is known of a send, everything is read.
		"limit=100": func(p *payments.Payment) { p.FirstSubmitAt, p.LastSubmitAt = time.Time{}, time.Time{} },
	} {
		s := newRawServer(t, inOrder(reply(200, listJSON(false))))
		p := inDoubt(func(p *payments.Payment) { p.Customer = "" }, change)
		want(t, gatewayTo(t, options(s.url)).Look(t.Context(), p, nil), payments.ObservedRecords)
		if r := <-s.arrived; r.URL.RawQuery != query {
			t.Errorf("query %s, want %s", r.URL.RawQuery, query)
		}
	}
}

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }

// While the window's end is still to come there is none: Stripe's clock may be far ahead of ours.
func TestLookWindowIsOpenUntilItsEnd(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	end := p.LastSubmitAt.Add(lookAfter)
	for now, query := range map[time.Time]string{
		end.Add(-time.Nanosecond): "created[gte]=1699999700&customer=cus_1&limit=100",
		end:                       "created[gte]=1699999700&created[lte]=1700004201&customer=cus_1&limit=100",
	} {
		s := newRawServer(t, inOrder(reply(200, listJSON(false))))
		o := options(s.url)
		o.Clock = fixedClock(now)
		want(t, gatewayTo(t, o).Look(t.Context(), p, nil), payments.ObservedRecords)
		if r := <-s.arrived; r.URL.RawQuery != query {
			t.Errorf("at %v: query %s, want %s", now, r.URL.RawQuery, query)
		}
	}
}

func TestLookEndsWithItsTicket(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, inOrder(reply(200, listJSON(true, stranger("pi_1"))), reply(200, listJSON(false))))
	calls := 0
	o := gatewayTo(t, options(s.url)).Look(t.Context(), inDoubt(), func() error {
		if calls++; calls == 2 {
			return errNotNow
		}
		return nil
	})
	want(t, o, payments.ObservedNoRecords)
	if s.gets.Load() != 1 {
		t.Errorf("%d pages were read", s.gets.Load())
	}
}

func TestLookWithoutStripe(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	want(t, gatewayTo(t, options(s.url)).Look(t.Context(), inDoubt(), nil), payments.ObservedNoRecords)
	s.listener.Close()
	o := gatewayTo(t, options(s.url)).Look(canceled(), inDoubt(), nil)
	want(t, o, payments.ObservedNoRecords)
	if o.Health() != payments.HealthNothing {
		t.Errorf("a look-up that this process ended says %q of Stripe", o.Health())
	}
}

func TestRetrieve(t *testing.T) {
	t.Parallel()
	p := testPayment(func(p *payments.Payment) { p.StripePaymentIntent = "pi_3Test" })
	ok := intentJSON(p, "succeeded")
	missing := errorJSON("invalid_request_error", "resource_missing", "")
	cases := map[string]struct {
		answer string
		kind   payments.ObservationKind
		object bool
	}{
		"there":             {reply(200, ok), payments.ObservedObject, true},
		"gone":              {reply(404, missing), payments.ObservedObject, false},
		"404 of another":    {reply(404, errorJSON("invalid_request_error", "", "")), payments.ObservedNoRecords, false},
		"404 in HTML":       {reply(404, "<html>"), payments.ObservedNoRecords, false},
		"400 missing":       {reply(400, missing), payments.ObservedNoRecords, false},
		"another object":    {reply(200, withID(ok, "pi_4")), payments.ObservedNoRecords, false},
		"no PaymentIntent":  {reply(200, "{}"), payments.ObservedNoRecords, false},
		"500":               {reply(500, errorJSON("api_error", "", "")), payments.ObservedNoRecords, false},
		"closed":            {"", payments.ObservedNoRecords, false},
		"an error with 200": {reply(200, missing), payments.ObservedNoRecords, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, raw(c.answer))
			o := gatewayTo(t, options(s.url)).Retrieve(t.Context(), p)
			want(t, o, c.kind)
			noSecrets(t, o)
			if (o.Object != nil) != c.object {
				t.Errorf("object %+v", o.Object)
			}
			if r := <-s.arrived; r.URL.Path != "/v1/payment_intents/pi_3Test" || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
		})
	}
	s := newRawServer(t, raw(""))
	for _, id := range []string{"", "pi_", "pi_1/cancel", "pi_1?a=b", "../x"} {
		strange := testPayment(func(p *payments.Payment) { p.StripePaymentIntent = id })
		want(t, gatewayTo(t, options(s.url)).Retrieve(t.Context(), strange), payments.ObservedNoRecords)
	}
	if s.bytes.Load() != 0 {
		t.Error("an id that is none was asked for")
	}
}
