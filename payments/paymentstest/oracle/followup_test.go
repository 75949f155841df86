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
			{TenantID: "t", Key: "a", Money: a, Acknowledged: true}, {TenantID: "t", Key: "b", Money: b, Held: true, Acknowledged: true}, {TenantID: "t", Key: "c", Money: c, Held: true, Acknowledged: true},
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
		"taken without a capture": {func(r *oracle.Run) { r.FollowUps, r.Operations = r.FollowUps[:1], r.Operations[:1] }, func(v oracle.Verdict) int {
			return v.Misrecorded
		}},
		"held, and Stripe holds nothing": {func(r *oracle.Run) {
			r.Payments[2].Status, r.Charges, r.FollowUps, r.Operations = payments.StatusRequiresCapture, r.Charges[:2], r.FollowUps[:2], r.Operations[:2]
		}, func(v oracle.Verdict) int { return v.Misrecorded }},
		"canceled, and nobody asked": {func(r *oracle.Run) { r.FollowUps, r.Operations = r.FollowUps[:2], r.Operations[:2] }, func(v oracle.Verdict) int {
			return v.Misrecorded
		}},
		"canceled, and its cancel is no success": {func(r *oracle.Run) { r.Operations[2].Status, r.FollowUps[2].Refused = payments.StatusFailed, true }, func(v oracle.Verdict) int {
			return v.Misrecorded
		}},
		"captured and canceled": {func(r *oracle.Run) {
			r.FollowUps = append(r.FollowUps, oracle.FollowUp{TenantID: "t", Key: "late", Kind: payments.KindCancel, Customer: "cus_b", Refused: true})
			r.Operations = append(r.Operations, oracle.Operation{ID: "op_3", TenantID: "t", Key: "late", Kind: payments.KindCancel, Payment: "pay_b", Status: payments.StatusSucceeded})
		}, func(v oracle.Verdict) int { return v.Misrecorded }},
		"a second row of what was asked for once": {func(r *oracle.Run) {
			again := r.Operations[0]
			again.ID, again.Key = "ref_2", "refund-again"
			r.Operations, r.Refunds, r.Payments[0].Refunded = append(r.Operations, again), append(r.Refunds, r.Refunds[0]), 80
		}, func(v oracle.Verdict) int { return v.DoubleRefunds }},
		"more than was asked for": {func(r *oracle.Run) {
			r.Refunds[0].Amount, r.Operations[0].Amount, r.Payments[0].Refunded = 60, 60, 60
		}, func(v oracle.Verdict) int { return v.Unattributed }},
		"acknowledged and not made": {func(r *oracle.Run) {
			r.Operations[0].Status, r.Payments[0].Refunded, r.Refunds = payments.StatusFailed, 0, nil
		}, func(v oracle.Verdict) int {
			return v.Lost
		}},
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

// emptied is a run of which one payment was refunded in part, and then all that was left of it.
func emptied() oracle.Run {
	r := followed()
	r.FollowUps = append(r.FollowUps, oracle.FollowUp{TenantID: "t", Key: "rest", Kind: payments.KindRefund, Customer: "cus_a", Acknowledged: true})
	r.Operations = append(r.Operations, oracle.Operation{ID: "ref_2", TenantID: "t", Key: "rest", Kind: payments.KindRefund, Payment: "pay_a", Status: payments.StatusSucceeded, Amount: 60})
	r.Refunds = append(r.Refunds, oracle.Refund{ID: "re_2", Customer: "cus_a", Amount: 60})
	r.Payments[0].Refunded = 100
	return r
}

func TestJudgeRefundsOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	if v := oracle.Judge(emptied()); !v.Good() {
		t.Fatalf("a good run was condemned: %v", v.Findings)
	}
	for name, c := range map[string]struct {
		spoil func(*oracle.Run)
		count func(oracle.Verdict) int
	}{
		"less than was left": {func(r *oracle.Run) {
			r.Refunds[1].Amount, r.Operations[3].Amount, r.Payments[0].Refunded = 50, 50, 90
		}, func(v oracle.Verdict) int { return v.Misrecorded }},
		"in two halves": {func(r *oracle.Run) {
			r.Refunds[1].Amount = 30
			r.Refunds = append(r.Refunds, r.Refunds[1])
		}, func(v oracle.Verdict) int { return v.DoubleRefunds }},
		"the part twice instead": {func(r *oracle.Run) {
			r.Refunds[1].Amount, r.Operations[3].Amount, r.Payments[0].Refunded = 40, 40, 80
		}, func(v oracle.Verdict) int { return v.Misrecorded }},
		"acknowledged and not made": {func(r *oracle.Run) {
			r.Refunds, r.Operations[3].Status, r.Payments[0].Refunded = r.Refunds[:1], payments.StatusFailed, 40
		}, func(v oracle.Verdict) int { return v.Lost }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := emptied()
			c.spoil(&r)
			if v := oracle.Judge(r); c.count(v) == 0 || v.Good() {
				t.Errorf("the fault was not seen: %+v", v)
			}
		})
	}
}
