package stripe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

func cancelSubmission(p payments.Payment) payments.Submission {
	s := submission(p)
	s.StripeKey = payments.StripeKey(testNamespace, payments.KindCancel, p.TenantID, p.IdempotencyKey)
	return s
}

// toCancel is a payment that was declined on session: its customer could still confirm it.
func toCancel(change ...func(*payments.Payment)) payments.Payment {
	return testPayment(append([]func(*payments.Payment){func(p *payments.Payment) {
		p.OffSession, p.Status, p.StripePaymentIntent, p.Tries, p.UpdatedAt = false, payments.StatusWaiting, "pi_3Test", 3, time.Now()
	}}, change...)...)
}

// The body under a key never changes: not with the attempt, the time or the payment.
func TestGoldenCancelBody(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(filepath.Join("testdata", "cancel", "v1.form"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := CancelBody(1)
	if err != nil || body != string(golden) {
		t.Errorf("the body of version 1 is %q, %v; was %q", body, err, golden)
	}
	for _, version := range []int{-1, 0, 2} {
		if body, err := CancelBody(version); err == nil || body != "" {
			t.Errorf("version %d makes %q", version, body)
		}
	}
	s := newRawServer(t, raw(reply(200, intentJSON(toCancel(), "canceled"))))
	g := gatewayTo(t, options(s.url))
	for _, change := range []func(*payments.Payment){func(*payments.Payment) {}, func(p *payments.Payment) { p.Tries, p.Rounds = 9, 9 }} {
		p := toCancel(change)
		want(t, g.Cancel(t.Context(), cancelSubmission(p)), payments.ObservedObject)
		r := <-s.arrived
		if r.body != string(golden) || r.URL.Path != "/v1/payment_intents/pi_3Test/cancel" || r.URL.RawQuery != "" ||
			r.Header.Get("Idempotency-Key") != cancelSubmission(p).StripeKey || r.Header.Get("Idempotency-Key") == submission(p).StripeKey {
			t.Errorf("sent %s %q with %v", r.URL, r.body, r.Header)
		}
	}
}

func TestCancelTable(t *testing.T) {
	t.Parallel()
	p := toCancel()
	const inv, state = "invalid_request_error", "payment_intent_unexpected_state"
	refused := func(pi string) string { return errorJSON(inv, state, `,"payment_intent":`+pi) }
	other := testPayment(func(p *payments.Payment) { p.IdempotencyKey = "order-2" })
	ok := intentJSON(p, "canceled")
	cases := map[string]struct {
		status int
		body   string
		kind   payments.ObservationKind
		stands payments.StripeStatus // "" : no object
	}{
		"canceled":                  {200, ok, payments.ObservedObject, payments.StripeCanceled},
		"answered, not canceled":    {200, intentJSON(p, "succeeded"), payments.ObservedObject, payments.StripeSucceeded},
		"succeeded meanwhile":       {400, refused(intentJSON(p, "succeeded")), payments.ObservedObject, payments.StripeSucceeded},
		"canceled before":           {400, refused(ok), payments.ObservedObject, payments.StripeCanceled},
		"processing":                {400, refused(intentJSON(p, "processing")), payments.ObservedObject, payments.StripeProcessing},
		"unknown there":             {404, errorJSON(inv, "resource_missing", ""), payments.ObservedObject, ""},
		"refused without an object": {400, errorJSON(inv, state, ""), payments.ObservedUnclear, ""},
		"refused about garbage":     {400, refused(`{"id":"pi_3Test"}`), payments.ObservedUnclear, ""},
		"refused about another":     {400, refused(strings.Replace(ok, "pi_3Test", "pi_3Other", 1)), payments.ObservedUnclear, ""},
		"about another":             {200, strings.Replace(ok, "pi_3Test", "pi_3Other", 1), payments.ObservedUnclear, ""},
		"another payment's":         {200, intentJSON(other, "canceled"), payments.ObservedUnclear, ""},
		"garbage":                   {200, "<<", payments.ObservedUnclear, ""},
		"404 that is no answer":     {404, "<html>", payments.ObservedUnclear, ""},
		"parameters":                {400, errorJSON(inv, "parameter_unknown", ""), payments.ObservedInvalid, ""},
		"other parameters":          {400, errorJSON("idempotency_error", "", ""), payments.ObservedKeyConflict, ""},
		"in use":                    {409, errorJSON(inv, "idempotency_key_in_use", ""), payments.ObservedInUse, ""},
		"lock":                      {429, errorJSON(inv, "lock_timeout", ""), payments.ObservedLocked, ""},
		"rate":                      {429, errorJSON(inv, "rate_limit", ""), payments.ObservedRateLimited, ""},
		"key":                       {401, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"permission":                {403, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"decline of what":           {402, errorJSON("card_error", "card_declined", ""), payments.ObservedUnclear, ""},
		"500":                       {500, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
		"500 about it":              {500, errorJSON("api_error", "", `,"payment_intent":`+ok), payments.ObservedUnclear, ""},
		"503":                       {503, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, raw(reply(c.status, c.body, "Request-Id: req_1")))
			o := gatewayTo(t, options(s.url)).Cancel(t.Context(), cancelSubmission(p))
			noSecrets(t, o)
			want(t, o, c.kind)
			if s.posts.Load() != 1 || o.HTTPStatus != c.status || o.RequestID != "req_1" || o.Detail == "" {
				t.Errorf("after %d requests: %+v", s.posts.Load(), o)
			}
			if (o.Object != nil) != (c.stands != "") || o.Object != nil && o.Object.Status != c.stands {
				t.Errorf("the object is %+v, want it %q", o.Object, c.stands)
			}
		})
	}
}

func TestCancelSendsNothingThatItMayNot(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	cases := map[string]struct {
		spoil func(*payments.Submission)
		kind  payments.ObservationKind
	}{
		"no account":     {func(s *payments.Submission) { s.Payment.StripeAccount = "" }, payments.ObservedHeldBack},
		"other account":  {func(s *payments.Submission) { s.Payment.StripeAccount = "acct_2" }, payments.ObservedForeignAccount},
		"other mode":     {func(s *payments.Submission) { s.Payment.Livemode = true }, payments.ObservedForeignAccount},
		"the charge key": {func(s *payments.Submission) { s.StripeKey = submission(s.Payment).StripeKey }, payments.ObservedHeldBack},
		"no key":         {func(s *payments.Submission) { s.StripeKey = "" }, payments.ObservedHeldBack},
		"no name":        {func(s *payments.Submission) { s.Payment.StripePaymentIntent = "" }, payments.ObservedHeldBack},
		"another path":   {func(s *payments.Submission) { s.Payment.StripePaymentIntent = "pi_1/confirm" }, payments.ObservedHeldBack},
		"kind":           {func(s *payments.Submission) { s.Payment.Kind = payments.KindRefund }, payments.ObservedHeldBack},
		"version":        {func(s *payments.Submission) { s.Payment.RequestVersion = 2 }, payments.ObservedHeldBack},
		"no last check":  {func(s *payments.Submission) { s.MayLeave = nil }, payments.ObservedHeldBack},
		"the lease":      {func(s *payments.Submission) { s.MayLeave = func() error { return errors.New("over") } }, payments.ObservedHeldBack},
	}
	for name, c := range cases {
		sub := cancelSubmission(toCancel())
		c.spoil(&sub)
		if o := g.Cancel(t.Context(), sub); o.Kind != c.kind || o.Detail == "" {
			t.Errorf("%s: observed %s (%s), want %s", name, o.Kind, o.Detail, c.kind)
		}
	}
	want(t, g.Cancel(canceled(), cancelSubmission(toCancel())), payments.ObservedNotSent)
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

// A cancel whose answer was lost is repeated under its key, and shows the same.
func TestCancelOnTheSimulator(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	p := s.payment(method("pm_card_visa_chargeDeclined"), func(p *payments.Payment) { p.OffSession = false })
	p.StripePaymentIntent = s.submits(t, p, payments.ObservedDecline).Object.ID
	if err := s.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "POST"}, Fault: stripesim.FaultCommitThenReset, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if o := s.Cancel(t.Context(), cancelSubmission(p)); o.Kind != payments.ObservedUnclear {
		t.Fatalf("observed %s (%s)", o.Kind, o.Detail)
	}
	o := s.Cancel(t.Context(), cancelSubmission(p))
	if o.Kind != payments.ObservedObject || !o.Replayed || o.Object.ID != p.StripePaymentIntent || o.Object.Status != payments.StripeCanceled {
		t.Fatalf("observed %+v, %+v", o, o.Object)
	}
	if sum := s.Summary(); sum.Charges != 0 || sum.PaymentIntents != 1 {
		t.Errorf("the ledger has %+v", sum)
	}
}
