package postgres

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const thousand = `{"idempotency_key":"o","amount":100000,"currency":"usd","payment_method":"pm_1"}`

// TestPreviewCountsPayments: a payment is charged once, however many dead letters name it.
func TestPreviewCountsPayments(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 5 {
		b.message(fmt.Sprintf("dl_%d", i), "o", thousand, payments.ReasonTenantUnknown, uint64(i+1))
	}
	settled := b.stall("k")
	if _, err := b.Evidence(context.Background(), "acme", *settled.PaymentID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil }); err != nil {
		t.Fatal(err)
	}
	look := func(what string, n payments.NewReplay, want payments.ReplayPreview) {
		t.Helper()
		v, err := b.PreviewReplay(context.Background(), n)
		amount := v.Amount
		v.Amount, v.ByReason = nil, nil
		if err != nil || fmt.Sprint(v) != fmt.Sprint(payments.ReplayPreview{Count: want.Count, Payments: want.Payments, Unpriced: want.Unpriced, Settled: want.Settled,
			Conflict: want.Conflict, Refused: want.Refused, Skipped: want.Skipped}) || !maps.Equal(amount, want.Amount) {
			t.Errorf("%s: %+v %v, %v, want %+v", what, v, amount, err, want)
		}
	}
	look("copies", payments.NewReplay{}, payments.ReplayPreview{Count: 6, Payments: 2, Settled: 1, Amount: map[string]int64{"usd": 100_000}})
	b.message("dl_other", "k", thousand, payments.ReasonKeyReused, 6)
	b.message("dl_nokey", "", `{"amount":7,"currency":"usd"}`, payments.ReasonKeyMissing, 7)
	b.message("dl_a", "", `x`, payments.ReasonHandlerPanic, 8)
	b.message("dl_b", "", `y`, payments.ReasonHandlerPanic, 9)
	b.message("dl_twice", "o", `{"amount":100001,"currency":"usd","payment_method":"pm_1"}`, payments.ReasonTenantUnknown, 10)
	b.message("dl_slip", "slip", `{"amount":500,"currency":"usdd","payment_method":"pm_1"}`, payments.ReasonInvalid, 11)
	all := payments.ReplayPreview{Count: 12, Payments: 6, Settled: 1, Conflict: 1, Refused: 2, Unpriced: 2, Amount: map[string]int64{"usd": 100_001}}
	look("all", payments.NewReplay{}, all)
	slip := payments.LetterFilter{ID: "dl_slip"}
	look("as it is", payments.NewReplay{Filter: slip}, payments.ReplayPreview{Count: 1, Payments: 1, Refused: 1, Amount: map[string]int64{}})
	set := map[string]string{"currency": "usd", "amount": "700"}
	look("changed", payments.NewReplay{Filter: slip, Set: set}, payments.ReplayPreview{Count: 1, Payments: 1, Amount: map[string]int64{"usd": 700}})
	look("not to be changed", payments.NewReplay{Filter: payments.LetterFilter{IdempotencyKey: "k"}, Set: set}, payments.ReplayPreview{Skipped: 2, Amount: map[string]int64{}})
	r := b.newReplay(payments.NewReplay{Filter: payments.LetterFilter{IdempotencyKey: "k"}, Set: set})
	if r.Total != 2 || r.State != payments.ReplayCompleted || b.items(r.ID)["dl_other"].Detail != keySetSkipped || r.NotBegun != 0 {
		t.Errorf("not to be changed: %+v", r)
	}
	if r := b.newReplay(payments.NewReplay{}); r.Total != all.Count || !maps.Equal(r.Amount, all.Amount) {
		t.Errorf("a replay of %d letters, %v", r.Total, r.Amount)
	}
}

// TestOneSucceeds: of the items of a replay that are about one payment one has succeeded, with several who look for results at once, and when another
// comes after it.
func TestOneSucceeds(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	const payers, copies = 8, 4
	for p := range payers {
		for c := range copies {
			b.message(fmt.Sprintf("dl_%d_%d", p, c), fmt.Sprintf("o%d", p), thousand, payments.ReasonTenantUnknown, uint64(p*copies+c+1))
		}
		c := b.claim(fmt.Sprintf("o%d", p))
		b.record(c, succeeded(c.Payment), 0)
	}
	r := b.newReplay(payments.NewReplay{})
	claims, err := b.ClaimReplayItems(ctx, payers*copies, time.Minute)
	if err != nil || len(claims.Work) != payers*copies {
		t.Fatalf("%d claimed, %v", len(claims.Work), err)
	}
	issue := func(of func(payments.ReplayWork) bool) {
		t.Helper()
		for _, w := range claims.Work {
			if o := (payments.ReplayOutcome{PaymentID: payments.NewID("acme", w.Letter.IdempotencyKey), Status: payments.StatusWaiting}); of(w) {
				if err := b.FinishReplayed(ctx, w, o); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := b.WatchReplays(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	late := "dl_0_0"
	issue(func(w payments.ReplayWork) bool { return w.Letter.ID != late })
	issue(func(w payments.ReplayWork) bool { return w.Letter.ID == late })
	got, err := b.Replay(ctx, r.ID)
	if err != nil || !maps.Equal(got.Results, map[payments.ReplayResult]int{payments.ReplaySucceeded: payers, payments.ReplayAlreadySettled: payers * (copies - 1)}) {
		t.Errorf("%+v, %v", got.Results, err)
	}
	if i := b.items(r.ID)[late]; i.Result != payments.ReplayAlreadySettled {
		t.Errorf("the late one: %+v", i)
	}
}
