package stripesim

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// events are the types and ids of a page of events, newest first.
func (r *rig) events(kv ...string) (kinds, ids []string) {
	r.t.Helper()
	m := r.get(eventsPath, kv...).want(r.t, 200, map[string]any{"object": "list", "url": eventsPath})
	for _, e := range m["data"].([]any) {
		kinds, ids = append(kinds, at(e, "type").(string)), append(ids, at(e, "id").(string))
	}
	return kinds, ids
}

// Every status that a PaymentIntent comes to is an event, with the PaymentIntent as it was then.
func TestEventsFollowThePaymentIntents(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{DebitSettle: time.Hour})
	paid := at(r.pay("paid", "customer", "cus_1").want(t, 200, nil), "id").(string)
	r.pay("declined", "payment_method", "pm_card_visa_chargeDeclined").want(t, 402, nil)
	held := at(r.pay("held", "capture_method", "manual").want(t, 200, nil), "id").(string)
	r.do(call{path: intentsPath + "/" + held + "/cancel", key: "cancel"}).want(t, 200, nil)
	r.pay("asked", "payment_method", "pm_card_authenticationRequired", "off_session", "false", "return_url", "https://shop.example").want(t, 200, nil)
	r.pay("debit", "payment_method", "pm_usBankAccount_noAccount").want(t, 200, nil)
	r.do(call{path: intentsPath, key: "open", form: form("amount", "500", "currency", "usd", "payment_method", "pm_card_visa")}).want(t, 200, nil)
	mustNil(t, r.sim.AdvanceClock(time.Hour)) // the debit fails
	kinds, ids := r.events("limit", "100")
	slices.Reverse(kinds)
	want := []string{
		eventCreated, "payment_intent.succeeded", eventCreated, eventFailed, eventCreated, "payment_intent.amount_capturable_updated",
		"payment_intent.canceled", eventCreated, "payment_intent.requires_action", eventCreated, "payment_intent.processing", eventCreated, eventFailed,
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("the events are\n%v, want\n%v", kinds, want)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(want) {
		t.Errorf("ids %v are not one for each", ids)
	}
	m := r.get(eventsPath, "type", "payment_intent.succeeded").want(t, 200, map[string]any{"has_more": false})
	succeededEvent := m["data"].([]any)[0]
	for path, want := range map[string]any{
		"object": "event", "api_version": "2023-10-16", "livemode": false, "data.object.id": paid, "data.object.status": succeeded,
		"data.object.metadata.oncepay_payment": "pay_1", "request.idempotency_key": "paid", "created": float64(1_700_000_000),
	} {
		if got := at(succeededEvent, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	m = r.get(eventsPath, "types[]", eventCreated, "created[lte]", "1700000000").want(t, 200, nil)
	all := m["data"].([]any)
	made := all[len(all)-1]
	if at(made, "data.object.id") != paid || at(made, "data.object.status") != needsMethod || at(made, "data.object.latest_charge") != nil ||
		at(made, "data.object.amount_received") != 0.0 || at(made, "data.object.metadata.oncepay_payment") != "pay_1" {
		t.Errorf("the PaymentIntent was made as %v", made)
	}
	clocked := r.get(eventsPath, "limit", "1").want(t, 200, nil)["data"].([]any)[0]
	if at(clocked, "request.id") != nil || at(clocked, "request.idempotency_key") != nil {
		t.Errorf("what the clock did is an event of the request %v", at(clocked, "request"))
	}
}

func TestEventsList(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	fill(r, 6) // two events a second
	_, newest := r.events("limit", "100")
	sec := func(i int) string { return strconv.Itoa(1_700_000_000 + i) }
	for name, c := range map[string]struct{ kv, want []string }{
		"default":           {nil, newest[:10]},
		"window":            {[]string{"created[gte]", sec(1), "created[lt]", sec(3)}, newest[6:10]},
		"after":             {[]string{"limit", "3", "starting_after", newest[1]}, newest[2:5]},
		"before":            {[]string{"limit", "3", "ending_before", newest[8]}, newest[5:8]},
		"one type":          {[]string{"type", eventCreated, "limit", "2"}, []string{newest[1], newest[3]}},
		"type and after":    {[]string{"type", eventCreated, "limit", "2", "starting_after", newest[3]}, []string{newest[5], newest[7]}},
		"type and before":   {[]string{"type", eventCreated, "limit", "2", "ending_before", newest[7]}, []string{newest[3], newest[5]}},
		"a group":           {[]string{"type", "payment_intent.*", "limit", "3"}, newest[:3]},
		"another group":     {[]string{"type", "charge.*"}, nil},
		"types":             {[]string{"types[]", "payment_intent.succeeded", "limit", "2"}, []string{newest[0], newest[2]}},
		"types of nothing":  {[]string{"types[]", "charge.succeeded"}, nil},
		"after the last":    {[]string{"starting_after", newest[11]}, nil},
		"in a time to come": {[]string{"created[gt]", sec(100)}, nil},
	} {
		if _, got := r.events(c.kv...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	r.get(eventsPath, "type", eventCreated, "limit", "6").want(t, 200, map[string]any{"has_more": false})
	r.get(eventsPath, "type", eventCreated, "limit", "5").want(t, 200, map[string]any{"has_more": true})
	for _, kv := range [][]string{
		{"limit", "0"}, {"created[gte]", "x"}, {"starting_after", "evt_none"}, {"type", "a", "types[]", "b"}, {"customer", "cus_1"}, {"types", "a"},
	} {
		if res := r.get(eventsPath, kv...); res.status != 400 {
			t.Errorf("%v: status %d", kv, res.status)
		}
	}
	r.do(call{method: "GET", path: eventsPath, account: "acct_b"}).want(t, 200, map[string]any{"has_more": false})
	mustNil(t, r.sim.AdvanceClock(30*24*time.Hour-3*time.Second))
	if kinds, _ := r.events("limit", "100"); len(kinds) != 6 {
		t.Errorf("%d events are left after 30 days, want those of the last 3 seconds", len(kinds))
	}
}

// Events have the same ids, times and objects after a restart, and new ones come after them.
func TestEventsSurviveARestart(t *testing.T) {
	t.Parallel()
	opts := Options{Path: filepath.Join(t.TempDir(), "ledger"), DebitSettle: time.Hour}
	r := newRig(t, opts)
	r.pay("paid")
	r.do(call{path: intentsPath, key: "elsewhere", form: pay(), account: "acct_b"}).want(t, 200, nil)
	r.pay("debit", "payment_method", "pm_usBankAccount_success")
	r.do(call{path: intentsPath, key: "lost", form: pay(), fault: FaultCommitThen503})
	r.pay("paid")
	mustNil(t, r.sim.AdvanceClock(time.Hour))
	before := r.get(eventsPath, "limit", "100")
	_, ids := r.events("limit", "100")
	r = r.reopen(opts)
	if after := r.get(eventsPath, "limit", "100"); after.body != before.body {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", after.body, before.body)
	}
	r.pay("new")
	if _, got := r.events("limit", "100"); len(ids) != 7 || len(got) != 9 || !slices.Equal(got[2:], ids) || slices.Contains(ids, got[0]) {
		t.Errorf("then %v, before %v", got, ids)
	}
}
