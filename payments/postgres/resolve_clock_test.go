package postgres

import (
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestResolveGoesByTheStoresTime: a person whose machine's clock is wrong neither takes a payment from its worker nor is kept from one that is free.
func TestResolveGoesByTheStoresTime(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{-10 * time.Hour, 0, 10 * time.Hour} {
		b := open(t)
		s := b.another(Options{Clock: b.clock})
		s.opts.wall = func() time.Time { return b.clock.Now().Add(apart) }
		owned := b.claim("owned")
		b.record(owned, unknown("looking_up"), 0)
		taken := b.take(payments.TakeRequest{Limit: 1, Lease: time.Minute})
		if len(taken) != 1 {
			t.Fatalf("%d taken", len(taken))
		}
		resolve := func() error {
			_, err := s.Resolve(t.Context(), "acme", owned.Payment.ID, payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_seen"}, ada)
			return err
		}
		if err := resolve(); payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%s apart, while its worker has it: %v", apart, err)
		}
		b.clock.Advance(2 * time.Minute) // its worker is gone
		if err := resolve(); err != nil || b.find(owned).Status != payments.StatusSucceeded {
			t.Errorf("%s apart, once nobody has it: %v", apart, err)
		}
	}
}
