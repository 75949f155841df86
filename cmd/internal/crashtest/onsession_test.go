package crashtest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// quickCustomer is a Gateway whose customer pays with another card at the very moment at which a cancel is about to leave.
type quickCustomer struct {
	payments.Gateway
	confirm func(paymentIntent string)
	once    sync.Once
}

func (g *quickCustomer) Cancel(ctx context.Context, s payments.Submission) payments.Observation {
	g.once.Do(func() { g.confirm(s.Payment.StripePaymentIntent) })
	return g.Gateway.Cancel(ctx, s)
}

// TestOnSessionDecline: what is declined with its customer there fails once its PaymentIntent is canceled; and
// should the customer be faster, it is what Stripe says: charged, once.
func TestOnSessionDecline(t *testing.T) {
	t.Parallel()
	for name, faster := range map[string]bool{"canceled": false, "confirmed in between": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			intent := payments.Intent{
				TenantID: tenant, IdempotencyKey: "order-1", Amount: 4200, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_card_visa_chargeDeclined",
			}.Normalized()
			if a, err := w.store.Admit(t.Context(), payments.AdmitRequest{Intent: intent, Lane: payments.LaneInteractive}); err != nil || a.Verdict != payments.VerdictStored {
				t.Fatalf("%+v, %v", a, err)
			}
			w.start(workerOptions{name: "healthy", gateway: func(g payments.Gateway) payments.Gateway {
				if !faster {
					return g
				}
				return &quickCustomer{Gateway: g, confirm: func(pi string) { w.confirmWithAnotherCard(pi) }}
			}})
			want, charges := payments.StatusFailed, 0
			if faster {
				want, charges = payments.StatusSucceeded, 1
			}
			w.await("the outcome", func() (bool, string) { s := w.status(intent.ID()); return !s.HasTicket(), string(s) })
			p, err := w.store.Find(t.Context(), tenant, intent.ID())
			if err != nil {
				t.Fatal(err)
			}
			if p.Status != want || len(w.sim.Ledger().Charges) != charges || w.sim.Summary().PaymentIntents != 1 {
				t.Errorf("it is %s %s with %d charges on %d PaymentIntents, want %s and %d on one", p.Status, p.Reason, len(w.sim.Ledger().Charges), w.sim.Summary().PaymentIntents, want, charges)
			}
			if !faster && (p.Failure == nil || p.Failure.Code != "card_declined" || p.Reason != "card_declined") {
				t.Errorf("why it was declined is lost: %s, %+v", p.Reason, p.Failure)
			}
			keys := map[string]bool{}
			for _, r := range w.sim.Ledger().Requests {
				if r.Method == http.MethodPost && !strings.HasSuffix(r.Path, "/confirm") {
					keys[r.IdempotencyKey] = true
				}
			}
			charge, cancel := payments.StripeKey(namespace, payments.KindCharge, tenant, "order-1"), payments.StripeKey(namespace, payments.KindCancel, tenant, "order-1")
			if len(keys) != 2 || !keys[charge] || !keys[cancel] {
				t.Errorf("sent under the keys %v, want one for the charge and one for the cancel", keys)
			}
			if !faster && w.confirmWithAnotherCard(p.StripePaymentIntent) < 400 {
				t.Error("its customer can still confirm it")
			}
		})
	}
}

// confirmWithAnotherCard is what the page of a customer does, and returns the status of Stripe's answer.
func (w *world) confirmWithAnotherCard(paymentIntent string) int {
	form := url.Values{"payment_method": {"pm_card_visa"}}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.simURL+"/v1/payment_intents/"+paymentIntent+"/confirm", strings.NewReader(form.Encode()))
	if err != nil {
		w.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+stripeKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Error(err)
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
