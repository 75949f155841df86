package oracle_test

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// followed is a good run of which one payment was refunded in part, one captured in part, and one canceled.
func followed() oracle.Run {
	a := oracle.Money{Amount: 100, Currency: "usd", Customer: "cus_a"}
	b := oracle.Money{Amount: 200, Currency: "usd", Customer: "cus_b"}
	c := oracle.Money{Amount: 300, Currency: "usd", Customer: "cus_c"}
	return oracle.Run{
		Intents: []oracle.Intent{
			{TenantID: "t", Key: "a", Money: a, Acknowledged: true}, {TenantID: "t", Key: "b", Money: b, Acknowledged: true}, {TenantID: "t", Key: "c", Money: c, Acknowledged: true},
		},
		Charges: []oracle.Charge{{ID: "ch_a", Money: a, Captured: 100}, {ID: "ch_b", Money: b, Captured: 150}, {ID: "ch_c", Money: c, Held: true}},
		Payments: []oracle.Payment{
			{ID: "pay_a", TenantID: "t", Key: "a", Status: payments.StatusSucceeded, Money: a, Captured: 100, Refunded: 40},
			{ID: "pay_b", TenantID: "t", Key: "b", Status: payments.StatusSucceeded, Money: b, Captured: 150},
			{ID: "pay_c", TenantID: "t", Key: "c", Status: payments.StatusCanceled, Money: c},
		},
		FollowUps: []oracle.FollowUp{
			{TenantID: "t", Key: "refund", Kind: payments.KindRefund, Customer: "cus_a", Amount: 40, Acknowledged: true},
			{TenantID: "t", Key: "capture", Kind: payments.KindCapture, Customer: "cus_b", Amount: 150, Acknowledged: true},
			{TenantID: "t", Key: "cancel", Kind: payments.KindCancel, Customer: "cus_c", Acknowledged: true},
		},
		Operations: []oracle.Operation{
			{ID: "ref_1", TenantID: "t", Key: "refund", Kind: payments.KindRefund, Payment: "pay_a", Status: payments.StatusSucceeded, Amount: 40},
			{ID: "op_1", TenantID: "t", Key: "capture", Kind: payments.KindCapture, Payment: "pay_b", Status: payments.StatusSucceeded, Amount: 150},
			{ID: "op_2", TenantID: "t", Key: "cancel", Kind: payments.KindCancel, Payment: "pay_c", Status: payments.StatusSucceeded},
		},
		Refunds: []oracle.Refund{{ID: "re_1", Customer: "cus_a", Amount: 40}},
	}
}

func TestJudgeSeesEachFaultOfFollowUps(t *testing.T) {
	t.Parallel()
	if v := oracle.Judge(followed()); !v.Good() {
		t.Fatalf("a good run was condemned: %v", v.Findings)
	}
	for name, c := range map[string]struct {
		spoil func(*oracle.Run)
		count func(oracle.Verdict) int
	}{
		"refunded twice": {func(r *oracle.Run) { r.Refunds = append(r.Refunds, r.Refunds[0]) }, func(v oracle.Verdict) int { return v.DoubleRefunds }},
		"more than was taken": {func(r *oracle.Run) { r.Refunds[0].Amount = 101 }, func(v oracle.Verdict) int {
			return v.DoubleRefunds
		}},
		"refunded and not known": {func(r *oracle.Run) { r.Operations[0].Status = payments.StatusFailed }, func(v oracle.Verdict) int { return v.Unattributed }},
		"known and not refunded": {func(r *oracle.Run) { r.Refunds = nil }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"another's refund":       {func(r *oracle.Run) { r.Refunds[0].Customer = "cus_b" }, func(v oracle.Verdict) int { return v.Unattributed }},
		"the payment does not say so": {func(r *oracle.Run) { r.Payments[0].Refunded = 0 }, func(v oracle.Verdict) int {
			return v.Misrecorded
		}},
		"lost": {func(r *oracle.Run) { r.Operations, r.Payments[0].Refunded, r.Refunds = r.Operations[1:], 0, nil }, func(v oracle.Verdict) int { return v.Lost }},
		"nobody asked": {func(r *oracle.Run) { r.FollowUps = r.FollowUps[1:] }, func(v oracle.Verdict) int {
			return v.Unattributed
		}},
		"still unknown":       {func(r *oracle.Run) { r.Operations[0].Status = payments.StatusUnknown }, func(v oracle.Verdict) int { return v.Unsettled }},
		"left for a person":   {func(r *oracle.Run) { r.Operations[1].Status = payments.StatusNeedsReview }, func(v oracle.Verdict) int { return v.Unsettled }},
		"another amount":      {func(r *oracle.Run) { r.Operations[0].Amount = 41 }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"failed for no cause": {func(r *oracle.Run) { r.Operations[1].Status = payments.StatusFailed }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"captured otherwise":  {func(r *oracle.Run) { r.Charges[1].Captured = 200 }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"canceled and taken":  {func(r *oracle.Run) { r.Charges[2].Held, r.Charges[2].Captured = false, 300 }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"not captured":        {func(r *oracle.Run) { r.Charges[1].Held, r.Charges[1].Captured = true, 0 }, func(v oracle.Verdict) int { return v.Misrecorded }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := followed()
			c.spoil(&r)
			if v := oracle.Judge(r); c.count(v) == 0 || v.Good() {
				t.Errorf("the fault was not seen: %+v", v)
			}
		})
	}
}
