package postgres

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestOpenPayments are those that wait for somebody else and whose PaymentIntent is known, some at a time, each once.
func TestOpenPayments(t *testing.T) {
	t.Parallel()
	b := open(t)
	var want []payments.ID
	for i := range 5 {
		c := b.claim(fmt.Sprintf("open-%d", i))
		status := payments.StatusRequiresAction
		if i%2 == 1 {
			status = payments.StatusRequiresCapture
		}
		b.record(c, payments.Transition{Status: status, Object: &payments.PaymentIntent{ID: fmt.Sprintf("pi_%d", i)}}, 0)
		want = append(want, c.Payment.ID)
	}
	for name, transition := range map[string]payments.Transition{
		"unnamed": {Status: payments.StatusRequiresAction}, "done": {Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{ID: "pi_done"}},
		"review": {Status: payments.StatusNeedsReview, Reason: payments.ReasonSeveral, Object: &payments.PaymentIntent{ID: "pi_review"}},
	} {
		b.record(b.claim(name), transition, 0)
	}
	b.claim("owned")
	r := b.beginRewind(b.clock.Now())
	var got []payments.ID
	pages := 0
	for done := false; !done; pages++ {
		var list []payments.Payment
		var err error
		if list, r, done, err = b.OpenPayments(t.Context(), r, 2); err != nil || len(list) > 2 {
			t.Fatalf("%d, %v", len(list), err)
		}
		for _, p := range list {
			if p.StripePaymentIntent == "" || p.Status.HasTicket() || p.Status.Final() {
				t.Errorf("%s %s %q", p.IdempotencyKey, p.Status, p.StripePaymentIntent)
			}
			got = append(got, p.ID)
		}
	}
	less := func(x, y payments.ID) int { return slices.Compare(x[:], y[:]) }
	if !slices.IsSortedFunc(got, less) {
		t.Errorf("not in order: %v", got)
	}
	slices.SortFunc(want, less)
	if !slices.Equal(got, want) || pages < 3 {
		t.Errorf("in %d pages %v, want %v", pages, got, want)
	}
	r.Progress.Tenant, r.Progress.ID = "acme", "nonsense"
	if _, _, _, err := b.OpenPayments(t.Context(), r, 2); payments.ErrorCode(err) != payments.CodeInternal {
		t.Errorf("%v", err)
	}
}
