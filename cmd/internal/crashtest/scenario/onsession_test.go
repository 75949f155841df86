package scenario

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
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
			w := world.New(t)
			intent := payments.Intent{
				TenantID: world.Tenant, IdempotencyKey: "order-1", Amount: 4200, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_card_visa_chargeDeclined",
			}.Normalized()
			if a, err := w.Store.Admit(t.Context(), payments.AdmitRequest{Intent: intent, Lane: payments.LaneInteractive}); err != nil || a.Verdict != payments.VerdictStored {
				t.Fatalf("%+v, %v", a, err)
			}
			w.Start(world.WorkerOptions{Name: "healthy", Gateway: func(g payments.Gateway) payments.Gateway {
				if !faster {
					return g
				}
				return &quickCustomer{Gateway: g, confirm: func(pi string) { w.ConfirmWithAnotherCard(pi) }}
			}})
			want, charges := payments.StatusFailed, 0
			if faster {
				want, charges = payments.StatusSucceeded, 1
			}
			w.Await("the outcome", func() (bool, string) { s := w.Status(intent.ID()); return !s.HasTicket(), string(s) })
			p, err := w.Store.Find(t.Context(), world.Tenant, intent.ID())
			if err != nil {
				t.Fatal(err)
			}
			if p.Status != want || len(w.Sim.Ledger().Charges) != charges || w.Sim.Summary().PaymentIntents != 1 {
				t.Errorf("it is %s %s with %d charges on %d PaymentIntents, want %s and %d on one", p.Status, p.Reason, len(w.Sim.Ledger().Charges), w.Sim.Summary().PaymentIntents, want, charges)
			}
			if !faster && (p.Failure == nil || p.Failure.Code != "card_declined" || p.Reason != "card_declined") {
				t.Errorf("why it was declined is lost: %s, %+v", p.Reason, p.Failure)
			}
			keys := map[string]bool{}
			for _, r := range w.Sim.Ledger().Requests {
				if r.Method == http.MethodPost && !strings.HasSuffix(r.Path, "/confirm") {
					keys[r.IdempotencyKey] = true
				}
			}
			charge, cancel := payments.StripeKey(world.Namespace, payments.KindCharge, world.Tenant, "order-1"), payments.StripeKey(world.Namespace, payments.KindCancel, world.Tenant, "order-1")
			if len(keys) != 2 || !keys[charge] || !keys[cancel] {
				t.Errorf("sent under the keys %v, want one for the charge and one for the cancel", keys)
			}
			if !faster && w.ConfirmWithAnotherCard(p.StripePaymentIntent) < 400 {
				t.Error("its customer can still confirm it")
			}
		})
	}
}
