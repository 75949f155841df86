package rewind

import (
	"context"
	"testing"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
)

// refusals is a store that knows what was refused.
type refusals struct {
	Store
	refused map[payments.MessageOrigin]bool
}

func (s refusals) RefusedBefore(_ context.Context, messages []payments.MessageOrigin) (map[payments.MessageOrigin]bool, error) {
	found := map[payments.MessageOrigin]bool{}
	for _, m := range messages {
		if s.refused[m] {
			found[m] = true
		}
	}
	return found, nil
}

// TestRefusedOperationsStayRefused: a refund that was refused when it came is not asked for again by a rewind, whatever room there is now; charges and
// other refunds are.
func TestRefusedOperationsStayRefused(t *testing.T) {
	t.Parallel()
	message := func(n uint64, kind payments.Kind) remembered {
		return remembered{
			Forgotten: consumer.Forgotten{Payments: []payments.ForgottenPayment{{Intent: payments.Intent{Kind: kind}}}},
			origin:    payments.MessageOrigin{Stream: "S", Sequence: n},
		}
	}
	some := []remembered{message(1, payments.KindRefund), message(2, payments.KindRefund), message(3, payments.KindCharge), {origin: payments.MessageOrigin{Stream: "S", Sequence: 4}}}
	r := &Runner{}
	r.Store = refusals{refused: map[payments.MessageOrigin]bool{some[0].origin: true, some[2].origin: true}}
	left, err := r.notRefused(context.Background(), some)
	if err != nil || len(left) != 3 || left[0].origin != some[1].origin || left[1].origin != some[2].origin || left[2].origin != some[3].origin {
		t.Errorf("%+v, %v", left, err)
	}
	if some[0].origin.Sequence != 1 {
		t.Error("what was given has changed")
	}
}
