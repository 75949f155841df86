//go:build stripetest

package stripe

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments/paymentstest"
)

// TestStripeTestMode runs the suites that every Gateway passes on Stripe's own test mode, which moves no money:
//
//	ONCEPAY_STRIPE_TEST_KEY=sk_test_… go test -tags stripetest -run TestStripeTestMode ./payments/stripe
//
// It needs a key that may read the account, and create and delete customers. It makes one customer, some eighty PaymentIntents and thirty refunds
// under keys that no other run has, and takes about two minutes.
func TestStripeTestMode(t *testing.T) {
	m, err := openTestMode(t.Context(), os.Getenv("ONCEPAY_STRIPE_TEST_KEY"), DefaultURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := m.close(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("charges", func(t *testing.T) { paymentstest.Gateway(t, m.open) })
	t.Run("follow-ups", func(t *testing.T) { paymentstest.FollowUpGateway(t, m.open) })
}
