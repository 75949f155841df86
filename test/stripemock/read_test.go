package stripemock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// contextOf is the context of a test or of a rapid check.
func contextOf(t tester) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}

// TestStart: the readings at start, with every kind of key and for a connected account.
func TestStart(t *testing.T) {
	t.Parallel()
	own := payments.Account{ID: accountID}
	for name, change := range map[string]func(*stripe.Options){
		"secret key":        func(*stripe.Options) {},
		"restricted key":    func(o *stripe.Options) { o.Key = "rk_test_oncepay" },
		"configured":        func(o *stripe.Options) { o.AccountID = own.ID },
		"connected account": func(o *stripe.Options) { o.ConnectedAccount = own.ID },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, change)
			if s.account != own {
				t.Errorf("the account is %+v, want %+v", s.account, own)
			}
			s.submits(t, charge())
			s.looks(t, s.stored(charge()))
			s.retrieves(t, "pi_1")
			want := ""
			if name == "connected account" {
				want = own.ID
			}
			paths := map[string]bool{}
			for _, c := range s.all() {
				paths[c.method+" "+c.path] = true
				if got := c.header.Get("Stripe-Account"); got != want {
					t.Errorf("%s %s names the account %q, want %q", c.method, c.path, got, want)
				}
				if got := c.header.Get("Stripe-Version"); got != apiVersion {
					t.Errorf("%s %s asks for version %q, want %s", c.method, c.path, got, apiVersion)
				}
			}
			// All that the Gateway has: a new path needs a test here.
			for _, path := range []string{"GET /v1/account", "GET /v1/balance", "POST /v1/payment_intents", "GET /v1/payment_intents", "GET /v1/payment_intents/pi_1", "GET /v1/events"} {
				if !paths[path] {
					t.Errorf("%s was not asked", path)
				}
			}
		})
	}
}

// looks lists the payment's records, which must be complete; stripe-mock has none of ours. It returns the queries, and leaves those of events
// in the session.
func (s *session) looks(t tester, p payments.Payment) []string {
	t.Helper()
	before, pages := len(s.all()), 0
	o := s.Look(contextOf(t), p, func() error { pages++; return nil })
	calls := s.all()[before:]
	if o.Kind != payments.ObservedRecords || len(o.Found) != 0 || len(calls) == 0 || pages != len(calls) {
		t.Fatalf("observed %s (%s), %d found on %d pages: %s", o.Kind, o.Detail, len(o.Found), len(calls), strings.Join(s.complaints(), "; "))
	}
	var queries []string
	s.events = nil
	for _, c := range calls {
		switch c.method + " " + c.path {
		case "GET /v1/payment_intents":
			queries = append(queries, c.query)
		case "GET /v1/events":
			s.events = append(s.events, c.query)
		default:
			t.Errorf("a look-up asked %s %s", c.method, c.path)
		}
	}
	return queries
}

func (s *session) retrieves(t tester, id string) {
	t.Helper()
	p := s.stored(charge())
	p.Status, p.StripePaymentIntent = payments.StatusPending, id
	o := s.Retrieve(contextOf(t), p)
	if o.Kind != payments.ObservedObject || o.Object == nil || o.Object.ID != id {
		t.Fatalf("observed %s (%s), %+v: %s", o.Kind, o.Detail, o.Object, strings.Join(s.complaints(), "; "))
	}
}

// inDoubt is a payment that was sent first and last at these times.
func (s *session) inDoubt(customer string, first, last time.Time) payments.Payment {
	p := s.stored(charge(func(i *payments.Intent) { i.Customer = customer }))
	p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = true, first, last
	return p
}

func TestLook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		customer    string
		first, last time.Time
		names       []string // the query's parameters
	}{
		"customer, nothing known": {"cus_1", time.Time{}, time.Time{}, []string{"customer", "limit"}},
		"customer, open window":   {"cus_1", now, now, []string{"created[gte]", "customer", "limit"}},
		"customer, closed window": {"cus_1", now.Add(-9 * time.Hour), now.Add(-8 * time.Hour), []string{"created[gte]", "created[lte]", "customer", "limit"}},
		"nothing known":           {"", time.Time{}, time.Time{}, []string{"limit"}},
		"open window":             {"", now, now, []string{"created[gte]", "limit"}},
		"closed window":           {"", now.Add(-9 * time.Hour), now.Add(-8 * time.Hour), []string{"created[gte]", "created[lte]", "limit"}},
		"odd customer":            {"c&u=s+%[]#?/~", now, now, []string{"created[gte]", "customer", "limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			queries := s.looks(t, s.inDoubt(c.customer, c.first, c.last))
			values, err := url.ParseQuery(queries[0])
			if err != nil || len(queries) != 1 || !slices.Equal(parameterNames(values), c.names) || values.Get("customer") != c.customer {
				t.Errorf("asked for %v, %v", queries, err)
			}
			names := append(slices.DeleteFunc(slices.Clone(c.names), func(n string) bool { return n == "customer" }), "types[]")
			values, err = url.ParseQuery(strings.Join(s.events, "&"))
			if err != nil || len(s.events) != 1 || !slices.Equal(parameterNames(values), names) {
				t.Errorf("asked for the events %v, %v", s.events, err)
			}
		})
	}
}

// TestLookPages: stripe-mock never says that there is more, so the recorder does, for the first pages.
func TestLookPages(t *testing.T) {
	t.Parallel()
	for _, customer := range []string{"", "cus_1"} {
		s := newSession(t)
		more, page := 3, 0
		s.edit = func(c call, answer string) string {
			if c.path != "/v1/payment_intents" || !strings.Contains(c.query, "limit=") {
				return answer
			}
			page++
			return edited(t, answer, page, page <= more)
		}
		long := time.Now().Add(-9 * time.Hour)
		queries := s.looks(t, s.inDoubt(customer, long, long))
		if len(queries) != more+1 {
			t.Fatalf("%d pages, want %d", len(queries), more+1)
		}
		for i, q := range queries {
			after := ""
			if i > 0 {
				after = fmt.Sprintf("&starting_after=pi_page%d", i)
			}
			if first := queries[0]; q != first+after {
				t.Errorf("page %d asked for %s", i, q)
			}
		}
	}
}

// TestEventPages: and events have pages too.
func TestEventPages(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	more, page := 3, 0
	s.edit = func(c call, answer string) string {
		if c.path != "/v1/events" {
			return answer
		}
		page++
		return strings.ReplaceAll(edited(t, answer, page, page <= more), "pi_page", "evt_page")
	}
	long := time.Now().Add(-9 * time.Hour)
	s.looks(t, s.inDoubt("cus_1", long, long))
	if len(s.events) != more+1 {
		t.Fatalf("%d pages, want %d", len(s.events), more+1)
	}
	for i, q := range s.events {
		values, err := url.ParseQuery(q)
		want := ""
		if i > 0 {
			want = fmt.Sprintf("evt_page%d", i)
		}
		if err != nil || values.Get("starting_after") != want {
			t.Errorf("page %d asked for %s", i, q)
		}
	}
}

// edited gives the page's last item an id of its own and says whether there is more.
func edited(t testing.TB, answer string, page int, more bool) string {
	t.Helper()
	var list map[string]any
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		t.Errorf("no list: %v", err)
		return answer
	}
	items, _ := list["data"].([]any)
	if len(items) == 0 {
		t.Error("the list is empty")
		return answer
	}
	items[len(items)-1].(map[string]any)["id"] = fmt.Sprintf("pi_page%d", page)
	list["has_more"] = more
	b, err := json.Marshal(list)
	if err != nil {
		t.Errorf("the edited list: %v", err)
	}
	return string(b)
}

// TestAnyReading draws payments to look up and PaymentIntents to retrieve.
func TestAnyReading(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	times := rapid.Custom(func(rt *rapid.T) time.Time {
		return rapid.SampledFrom([]time.Time{{}, time.Unix(rapid.Int64Range(1_500_000_000, 4_000_000_000).Draw(rt, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(rt, "ns"))}).Draw(rt, "time")
	})
	rapid.Check(t, func(rt *rapid.T) {
		customer := rapid.StringMatching(`|[!-~]{1,255}`).Draw(rt, "customer")
		s.looks(rt, s.inDoubt(customer, times.Draw(rt, "first"), times.Draw(rt, "last")))
		s.retrieves(rt, rapid.StringMatching(`pi_[0-9A-Za-z_]{1,60}`).Draw(rt, "id"))
	})
}
