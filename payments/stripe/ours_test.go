package stripe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestListOursReadsEveryPage(t *testing.T) {
	t.Parallel()
	p := inDoubt()
	ours := intentJSON(p, "succeeded")
	foreign := func(id string) string { return strings.Replace(withID(ours, id), `"oncepay"`, `"other"`, 1) }
	s := newRawServer(t, inOrder(
		reply(200, listJSON(true, withID(ours, "pi_9"), stranger("pi_8"))),
		reply(200, listJSON(true, foreign("pi_7"), foreign("pi_6"))),
		reply(200, listJSON(false, withID(ours, "pi_5"), withID(ours, "pi_4"))),
	))
	g := gatewayTo(t, options(s.url))
	g.pagesMax = 1 // bounds look-ups alone
	var ids []string
	asked := 0
	err := g.ListOurs(t.Context(), "", sentAt, func(pi payments.PaymentIntent) error {
		ids = append(ids, pi.ID)
		if pi.Amount != p.Amount || pi.Metadata[MetadataTenant] != "" || pi.Metadata[MetadataPayment] != p.ID.String() || pi.Status != payments.StripeSucceeded {
			t.Errorf("given %+v", pi)
		}
		return nil
	}, func() error { asked++; return nil })
	if err != nil || !slices.Equal(ids, []string{"pi_9", "pi_5", "pi_4"}) || asked != 3 {
		t.Fatalf("listed %v after asking %d times, %v", ids, asked, err)
	}
	const window = "created[gte]=1700000000&limit=100"
	for i, q := range []string{window, window + "&starting_after=pi_8", window + "&starting_after=pi_6"} {
		if r := <-s.arrived; r.URL.Path != createPath || r.URL.RawQuery != q {
			t.Errorf("page %d: %s?%s", i, r.URL.Path, r.URL.RawQuery)
		}
	}
}

func TestListOursEndsWithAnError(t *testing.T) {
	t.Parallel()
	ours := intentJSON(inDoubt(), "succeeded")
	first := reply(200, listJSON(true, ours))
	yes := func() error { return nil }
	take := func(payments.PaymentIntent) error { return nil }
	for name, c := range map[string]struct {
		second   string
		each     func(payments.PaymentIntent) error
		progress func() error
		code     payments.Code // "" : errNotNow
		pages    int32
	}{
		"500":     {reply(500, errorJSON("api_error", "", "")), take, yes, payments.CodeUnavailable, 2},
		"401":     {reply(401, errorJSON("invalid_request_error", "", "")), take, yes, payments.CodeUnavailable, 2},
		"garbage": {reply(200, "<<"), take, yes, payments.CodeUnavailable, 2},
		"cut":     {reply(200, listJSON(false))[:150], take, yes, payments.CodeUnavailable, 2},
		"circle":  {reply(200, listJSON(true, ours)), take, yes, payments.CodeUnavailable, 2},
		"one of ours cannot be read": {
			reply(200, listJSON(false, strings.Replace(withID(ours, "pi_2"), `"amount":`, `"a":`, 1))), take, yes, payments.CodeUnavailable, 2,
		},
		"each":     {"", func(payments.PaymentIntent) error { return errNotNow }, yes, "", 1},
		"progress": {"", take, func() error { return errNotNow }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, inOrder(first, c.second))
			err := gatewayTo(t, options(s.url)).ListOurs(t.Context(), "", time.Time{}, c.each, c.progress)
			if c.code == "" && !errors.Is(err, errNotNow) || c.code != "" && payments.ErrorCode(err) != c.code || s.gets.Load() != c.pages {
				t.Errorf("ended with %v after %d pages, want %q after %d", err, s.gets.Load(), c.code, c.pages)
			}
		})
	}
}

// Each account's list is read by its own tenant's way.
func TestListOursGoesEachTenantsWay(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	accounts := map[string]string{"plain": ownAccount, "plain2": ownAccount, "connected": connAccount, "keyed": keyedAccount}
	for tenant, account := range accounts {
		b.known(t, tenant)
		for i := range 2 {
			p := b.order(tenant, account, func(p *payments.Payment) { p.IdempotencyKey = fmt.Sprintf("order-%d", i) })
			if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer {
				t.Fatalf("%s: observed %s (%s)", tenant, o.Kind, o.Detail)
			}
		}
	}
	accounts[""] = ownAccount
	for tenant, account := range accounts {
		n, since := map[string]int{}, b.Now().Add(-time.Minute)
		if tenant == "plain" {
			since = time.Time{}
		}
		err := b.ListOurs(t.Context(), tenant, since, func(pi payments.PaymentIntent) error { n[pi.Metadata[MetadataTenant]]++; return nil }, nil)
		want := map[string]int{tenant: 2}
		if account == ownAccount { // tenants that share an account share its list
			want = map[string]int{"plain": 2, "plain2": 2}
		}
		if err != nil || !maps.Equal(n, want) {
			t.Errorf("the list of %q has %v, %v; want %v", tenant, n, err, want)
		}
		none := func(pi payments.PaymentIntent) error { return errNotNow }
		if err := b.ListOurs(t.Context(), tenant, b.Now().Add(time.Hour), none, nil); err != nil {
			t.Errorf("the list of %q since a time to come: %v", tenant, err)
		}
	}
	if err := b.ListOurs(t.Context(), "nobody", time.Time{}, nil, nil); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a tenant that is not there: %v", err)
	}
}
