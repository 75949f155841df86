package protection

import (
	"fmt"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestLookBeforeRefunding loses answers to refunds that Stripe has made and does not remember under their keys: whoever only sent again would make them
// twice, since each is of a part.
func TestLookBeforeRefunding(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	var orders []world.Order
	for i := range 10 {
		orders = append(orders, w.Order(fmt.Sprintf("order-%d", i)))
	}
	w.Publish(orders...)
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.Rest()
	for _, o := range orders {
		f := w.FollowUp(payments.KindRefund, o, "refund-"+o.Key, o.Money.Amount/3)
		rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/refunds", Metadata: f.Intent().Metadata}, Fault: stripesim.FaultCommitThen503, Times: 1}
		if err := w.Sim.AddFault(rule); err != nil {
			t.Fatal(err)
		}
		w.StoreFollowUps(f)
	}
	conclude(w, func(a world.Account) {
		if len(a.Ledger.Refunds) != len(orders) {
			t.Errorf("%d refunds were made of %d", len(a.Ledger.Refunds), len(orders))
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.Reasons())
		}
	})
}
