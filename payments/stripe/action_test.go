package stripe

import (
	"encoding/json"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestAction: what the customer has to do next comes from Stripe, by the payment's own account alone.
func TestAction(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	p := s.payment(func(p *payments.Payment) {
		p.OffSession, p.PaymentMethod, p.ReturnURL = false, "pm_card_authenticationRequired", "https://shop.example/back"
	})
	o := s.submits(t, p, payments.ObservedAnswer)
	p.StripePaymentIntent = o.Object.ID
	next, secret, err := s.Action(t.Context(), p)
	if err != nil || secret == "" {
		t.Fatalf("%q, %v", secret, err)
	}
	var action struct {
		Type     string
		Redirect struct{ URL string } `json:"redirect_to_url"`
	}
	if err := json.Unmarshal(next, &action); err != nil || action.Type != "redirect_to_url" || action.Redirect.URL == "" {
		t.Errorf("%s, %v", next, err)
	}
	before := s.Summary().Requests
	for name, change := range map[string]func(*payments.Payment){
		"not sent":        func(p *payments.Payment) { p.StripePaymentIntent = "" },
		"another account": func(p *payments.Payment) { p.StripeAccount = "acct_other" },
		"never pinned":    func(p *payments.Payment) { p.StripeAccount = "" },
		"a path":          func(p *payments.Payment) { p.StripePaymentIntent = "pi_1/../../v1/account" },
	} {
		other := p
		change(&other)
		if next, secret, err := s.Action(t.Context(), other); next != nil || secret != "" || payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%s: %s %q, %v", name, next, secret, err)
		}
	}
	if after := s.Summary().Requests; after != before {
		t.Errorf("Stripe was asked %d times for what is not there", after-before)
	}
	p.StripePaymentIntent = "pi_nobody"
	if _, secret, err := s.Action(t.Context(), p); secret != "" || payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("no such PaymentIntent: %q, %v", secret, err)
	}
}

// TestNoAction: a payment that needs none has none.
func TestNoAction(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	p := s.payment()
	p.StripePaymentIntent = s.submits(t, p, payments.ObservedAnswer).Object.ID
	if next, secret, err := s.Action(t.Context(), p); next != nil || secret == "" || err != nil {
		t.Errorf("%s, %v", next, err)
	}
}
