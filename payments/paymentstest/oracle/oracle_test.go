package oracle_test

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

func good() oracle.Run {
	a := oracle.Money{Amount: 100, Currency: "usd", Customer: "cus_a"}
	b := oracle.Money{Amount: 200, Currency: "eur", Customer: "cus_b"}
	c := oracle.Money{Amount: 300, Currency: "usd", Customer: "cus_c"}
	other := c
	other.Amount = 301
	d := oracle.Money{Amount: 400, Currency: "usd", Customer: "cus_d"}
	return oracle.Run{
		Intents: []oracle.Intent{
			{TenantID: "t", Key: "a", Money: a, Acknowledged: true},
			{TenantID: "t", Key: "b", Money: b, Declines: true, Acknowledged: true},
			{TenantID: "t", Key: "c", Money: c, Also: []oracle.Money{other}, Acknowledged: true},
			{TenantID: "t", Key: "d", Money: d, Refused: true, Acknowledged: true},
		},
		Charges: []oracle.Charge{{ID: "ch_1", Money: a}, {ID: "ch_2", Money: other}},
		Payments: []oracle.Payment{
			{ID: "pay_a", TenantID: "t", Key: "a", Status: payments.StatusSucceeded, Money: a},
			{ID: "pay_b", TenantID: "t", Key: "b", Status: payments.StatusFailed, Money: b},
			{ID: "pay_c", TenantID: "t", Key: "c", Status: payments.StatusSucceeded, Money: other},
		},
		DeadLetters: []oracle.DeadLetter{
			{TenantID: "t", Key: "c", Reason: payments.ReasonKeyReused}, {TenantID: "t", Key: "d", Reason: payments.ReasonInvalid},
		},
		Events: []oracle.Event{
			{ID: "a1", Payment: "pay_a", Sequence: 1, Status: payments.StatusUnknown},
			{ID: "a2", Payment: "pay_a", Sequence: 2, Status: payments.StatusSucceeded},
			{ID: "a2", Payment: "pay_a", Sequence: 2, Status: payments.StatusSucceeded},
			{ID: "b1", Payment: "pay_b", Sequence: 1, Status: payments.StatusFailed},
			{ID: "c1", Payment: "pay_c", Sequence: 1, Status: payments.StatusSucceeded},
		},
	}
}

func TestJudgeSeesEachFault(t *testing.T) {
	t.Parallel()
	if v := oracle.Judge(good()); !v.Good() {
		t.Fatalf("a good run was condemned: %v", v.Findings)
	}
	cases := map[string]struct {
		spoil func(*oracle.Run)
		count func(oracle.Verdict) int
	}{
		"charged twice":                  {func(r *oracle.Run) { r.Charges = append(r.Charges, r.Charges[0]) }, func(v oracle.Verdict) int { return v.DoubleCharges }},
		"both requests of a key charged": {func(r *oracle.Run) { r.Charges = append(r.Charges, oracle.Charge{ID: "x", Money: r.Intents[2].Money}) }, func(v oracle.Verdict) int { return v.DoubleCharges }},
		"another amount":                 {func(r *oracle.Run) { r.Charges[0].Amount++ }, func(v oracle.Verdict) int { return v.Unattributed }},
		"another customer":               {func(r *oracle.Run) { r.Charges[0].Customer = "cus_x" }, func(v oracle.Verdict) int { return v.Unattributed }},
		"no row":                         {func(r *oracle.Run) { r.Payments = r.Payments[1:] }, func(v oracle.Verdict) int { return v.Lost }},
		"charged, no row":                {func(r *oracle.Run) { r.Payments = r.Payments[1:] }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"still unknown":                  {func(r *oracle.Run) { r.Payments[0].Status = payments.StatusUnknown }, func(v oracle.Verdict) int { return v.Unsettled }},
		"left for a person":              {func(r *oracle.Run) { r.Payments[0].Status, r.Charges = payments.StatusNeedsReview, r.Charges[1:] }, func(v oracle.Verdict) int { return v.Unsettled }},
		"succeeded without a charge":     {func(r *oracle.Run) { r.Charges = r.Charges[1:] }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"failed and charged":             {func(r *oracle.Run) { r.Payments[0].Status = payments.StatusFailed }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"declined and charged": {func(r *oracle.Run) {
			r.Charges = append(r.Charges, oracle.Charge{ID: "x", Money: r.Intents[1].Money})
		}, func(v oracle.Verdict) int { return v.Misrecorded }},
		"silent conflict":     {func(r *oracle.Run) { r.DeadLetters = r.DeadLetters[1:] }, func(v oracle.Verdict) int { return v.Silent }},
		"silent refusal":      {func(r *oracle.Run) { r.DeadLetters = r.DeadLetters[:1] }, func(v oracle.Verdict) int { return v.Lost }},
		"stored other amount": {func(r *oracle.Run) { r.Payments[1].Amount++ }, func(v oracle.Verdict) int { return v.Misrecorded }},
		"a row nobody wants":  {func(r *oracle.Run) { r.Intents = r.Intents[1:]; r.Charges = r.Charges[1:] }, func(v oracle.Verdict) int { return v.Unattributed }},
		"second outcome event": {func(r *oracle.Run) {
			r.Events[0] = oracle.Event{ID: "a1", Payment: "pay_a", Sequence: 1, Status: payments.StatusFailed}
		}, func(v oracle.Verdict) int { return v.SecondOutcomes }},
		"one number twice": {func(r *oracle.Run) { r.Events[2].ID = "a2b" }, func(v oracle.Verdict) int { return v.SecondOutcomes }},
		"a gap":            {func(r *oracle.Run) { r.Events = r.Events[1:] }, func(v oracle.Verdict) int { return v.SecondOutcomes }},
		"no outcome event": {func(r *oracle.Run) { r.Events = r.Events[:4] }, func(v oracle.Verdict) int { return v.SecondOutcomes }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			c.spoil(&r)
			if v := oracle.Judge(r); c.count(v) == 0 || v.Good() {
				t.Errorf("the fault was not seen: %+v", v)
			}
		})
	}
}
