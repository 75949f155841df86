package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v76"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// post does what others do at Stripe beside us, and returns the id of the object that it answers.
func post(ctx context.Context, base, key, path, form string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(form))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Stripe-Version", stripego.APIVersion)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var object struct{ ID string }
	err = json.NewDecoder(resp.Body).Decode(&object)
	if err == nil && (resp.StatusCode != http.StatusOK || object.ID == "") {
		err = fmt.Errorf("POST %s: answered %d", path, resp.StatusCode)
	}
	return object.ID, err
}

func (s sim) post(t *testing.T, path, form string) string {
	t.Helper()
	id, err := post(t.Context(), s.base.String(), s.key, path, form)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// bodyOf is the form that asks for the intent.
func bodyOf(i payments.Intent) (string, error) { return Body(RequestVersion, testNamespace, i) }

func (s sim) fault(t *testing.T, fault string) {
	t.Helper()
	if err := s.AddFault(stripesim.Rule{Match: stripesim.Match{Path: createPath}, Fault: fault, Times: 1}); err != nil {
		t.Fatal(err)
	}
}

// decides is the status that the observation gives a payment whose earlier send is in doubt.
func (s sim) decides(t *testing.T, p payments.Payment, o payments.Observation) payments.Transition {
	t.Helper()
	p.InDoubt = true
	d, err := payments.Decide(p, o, s.Now(), payments.Policy{TriesMax: 20})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A 500 that Stripe remembers is answered for a day to the same key, after the charge was made. It is never taken for a failure, and never
// cured by another key: the records show the charge.
func TestRemembered500(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	p := s.payment()
	s.fault(t, stripesim.FaultCommitThen500)
	for i := range 3 {
		o := s.submits(t, p, payments.ObservedUnclear)
		if o.HTTPStatus != 500 || o.Replayed != (i > 0) {
			t.Fatalf("send %d: %+v", i+1, o)
		}
		if d := s.decides(t, p, o); d.Status != payments.StatusUnknown {
			t.Errorf("send %d is decided as %s (%s)", i+1, d.Status, d.Reason)
		}
	}
	found := s.finds(t, p, 1)
	o := payments.Observation{Kind: payments.ObservedRecords, Account: s.account, Found: found}
	if d := s.decides(t, p, o); d.Status != payments.StatusSucceeded || d.Object.ID != found[0].ID {
		t.Errorf("the records are decided as %s (%s)", d.Status, d.Reason)
	}
	keys := map[string]int{}
	for _, r := range s.Ledger().Requests {
		if r.Method == http.MethodPost {
			keys[r.IdempotencyKey+" "+r.BodySHA256]++
		}
	}
	if len(keys) != 1 || s.Summary().Charges != 1 {
		t.Errorf("%d charges under %d keys and bodies", s.Summary().Charges, len(keys))
	}
}

// A day later Stripe has forgotten the key, and would charge again: the look-up finds the first charge, and the last check before the write says
// that nothing may leave.
func TestForgottenKey(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{}, func(o *Options) { o.Timeout = 5 * time.Second })
	p := s.payment()
	s.fault(t, stripesim.FaultCommitThenReset)
	s.submits(t, p, payments.ObservedUnclear)
	if err := s.AdvanceClock(25 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if d := s.decides(t, p, payments.Observation{Kind: payments.ObservedRecords, Account: s.account, Found: s.finds(t, p, 1)}); d.Status != payments.StatusSucceeded {
		t.Errorf("decided as %s (%s)", d.Status, d.Reason)
	}
	if payments.MaySend(p, p.FirstSubmitAt, s.Now()) {
		t.Fatal("the send may still leave")
	}
	late := submission(p)
	late.MayLeave = func() error { return errNotNow }
	if o := s.Submit(t.Context(), late); o.Kind != payments.ObservedHeldBack {
		t.Errorf("observed %s", o.Kind)
	}
	if sum := s.Summary(); sum.Charges != 1 || sum.Posts != 1 {
		t.Errorf("%d charges after %d POSTs", sum.Charges, sum.Posts)
	}
	s.submits(t, p, payments.ObservedAnswer) // so it would have been
	if sum := s.Summary(); sum.DoubleCharges != 1 {
		t.Errorf("Stripe still knows the key: %+v", sum)
	}
}

// The payment method was detached after a charge whose answer was lost and which Stripe did not store. The send that follows is refused, which
// says nothing of the first: the look-up finds it, and the payment is not rejected.
func TestDetachedBetweenTwoSends(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	pm := s.post(t, "/v1/payment_methods/pm_card_visa/attach", "customer=cus_1")
	p := s.payment(method(pm))
	s.fault(t, stripesim.FaultCommitThen503)
	s.submits(t, p, payments.ObservedUnclear)
	s.post(t, "/v1/payment_methods/"+pm+"/detach", "")
	refused := s.submits(t, p, payments.ObservedInvalid)
	if refused.Failure == nil || !strings.Contains(refused.Failure.Message, "detached") {
		t.Errorf("refused: %+v", refused.Failure)
	}
	if d := s.decides(t, p, refused); d.Status != payments.StatusUnknown || !d.InDoubt {
		t.Errorf("the refusal is decided as %s (%s)", d.Status, d.Reason)
	}
	o := s.Look(t.Context(), p, nil)
	if d := s.decides(t, p, o); d.Status != payments.StatusSucceeded {
		t.Errorf("the records are decided as %s (%s)", d.Status, d.Reason)
	}
	if sum := s.Summary(); sum.Charges != 1 || sum.DoubleCharges != 0 {
		t.Errorf("%d charges", sum.Charges)
	}
}

// A PaymentIntent with our metadata that the list by customer cannot show, since its customer is another, is found in the events and not
// adopted: a person must look.
func TestAnotherCustomersPaymentIntent(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	for key, customer := range map[string]string{"with another": "cus_2", "without one": ""} {
		p := s.payment(func(p *payments.Payment) { p.IdempotencyKey = key })
		other := p.Intent
		other.Customer = customer
		body, err := Body(RequestVersion, testNamespace, other)
		if err != nil {
			t.Fatal(err)
		}
		id := s.post(t, createPath, body)
		o := s.Look(t.Context(), p, nil)
		if o.Kind != payments.ObservedRecords || len(o.Found) != 1 || o.Found[0].ID != id || o.Found[0].Customer != customer {
			t.Fatalf("%s: the look-up shows %+v", key, o)
		}
		if d := s.decides(t, p, o); d.Status != payments.StatusNeedsReview || !strings.Contains(d.Reason, "customer") {
			t.Errorf("%s: decided as %s (%s)", key, d.Status, d.Reason)
		}
	}
	s.finds(t, s.payment(func(p *payments.Payment) { p.IdempotencyKey = "never sent" }), 0)
}

// The installation's key was changed to one of another account while a charge was in doubt: nothing goes there, and nothing there is taken for
// proof. With a key of the first account again, the charge is found.
func TestKeyOfAnotherAccount(t *testing.T) {
	t.Parallel()
	const first, second, rolled = "sk_test_first0000000", "sk_test_second000000", "sk_test_rolled000000"
	s := newSim(t, stripesim.Options{Keys: []stripesim.Key{
		{Secret: first, Account: "acct_1First"}, {Secret: rolled, Account: "acct_1First"}, {Secret: second, Account: "acct_1Second"},
	}}, func(o *Options) { o.Key = first })
	p := s.payment()
	s.fault(t, stripesim.FaultCommitThenReset)
	s.submits(t, p, payments.ObservedUnclear)
	with := func(key string) *Gateway {
		o := options(s.base.String())
		o.Key = key
		g, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	g := with(second)
	before := s.Summary().Requests
	named := p
	named.StripePaymentIntent = "pi_1"
	for name, o := range map[string]payments.Observation{
		"submit": g.Submit(t.Context(), submission(p)), "look": g.Look(t.Context(), p, nil), "cancel": g.Cancel(t.Context(), cancelSubmission(named)),
	} {
		if o.Kind != payments.ObservedForeignAccount {
			t.Errorf("%s: %s (%s)", name, o.Kind, o.Detail)
		}
		if d := s.decides(t, p, o); d.Status != payments.StatusUnknown || d.Reason != payments.ReasonAccountChanged {
			t.Errorf("%s is decided as %s (%s)", name, d.Status, d.Reason)
		}
	}
	if o := g.Retrieve(t.Context(), named); o.Kind != payments.ObservedNoRecords {
		t.Errorf("retrieve: %s", o.Kind)
	}
	if n := s.Summary().Requests - before; n != 0 {
		t.Errorf("%d requests went to the other account", n)
	}
	if o := with(rolled).Look(t.Context(), p, nil); o.Kind != payments.ObservedRecords || len(o.Found) != 1 {
		t.Errorf("with a key of the first account: %+v", o)
	}
}
