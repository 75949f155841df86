package stripemock

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// TestCancel: the cancel of a PaymentIntent is one that Stripe's specification knows, with its reason.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	p := s.stored(charge())
	p.Status, p.StripePaymentIntent = payments.StatusWaiting, "pi_1"
	key := payments.StripeKey(namespace, payments.KindCancel, p.TenantID, p.IdempotencyKey)
	body, err := stripe.CancelBody(stripe.RequestVersion)
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.all())
	o := s.Cancel(t.Context(), payments.Submission{Payment: p, StripeKey: key, MayLeave: func() error { return nil }})
	if o.Kind != payments.ObservedObject || o.Object == nil || o.Object.ID != "pi_1" {
		t.Fatalf("observed %s (%s), %+v: %s", o.Kind, o.Detail, o.Object, strings.Join(s.complaints(), "; "))
	}
	calls := s.all()[before:]
	if len(calls) != 1 || calls[0].method != "POST" || calls[0].path != "/v1/payment_intents/pi_1/cancel" || calls[0].body != body ||
		calls[0].header.Get("Idempotency-Key") != key {
		t.Errorf("sent %+v", calls)
	}
}
