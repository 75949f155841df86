package stripe

import (
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestConformance runs the suite that every Gateway passes, on the simulator.
func TestConformance(t *testing.T) {
	t.Parallel()
	paymentstest.Gateway(t, func(t *testing.T) paymentstest.Stripe { return openSim(t, 10*time.Second) })
}

// TestFollowUpConformance runs the suite of follow-ups there, with every fault that the simulator knows; in the end nothing was done twice.
func TestFollowUpConformance(t *testing.T) {
	t.Parallel()
	unclear := func(name string) paymentstest.Fault {
		return paymentstest.Fault{Name: name, Kind: payments.ObservedUnclear, Executed: true, Stored: true}
	}
	faults := []paymentstest.Fault{
		{Name: stripesim.FaultResetBefore, Kind: payments.ObservedUnclear},
		unclear(stripesim.FaultCommitThenReset), unclear(stripesim.FaultCommitThenHang), unclear(stripesim.FaultTruncateBody),
		unclear(stripesim.FaultHTML502), unclear(stripesim.FaultGarbage200), unclear(stripesim.FaultSlow + ":60000"),
		{Name: stripesim.FaultCommitThen500, Kind: payments.ObservedUnclear, Executed: true, Stored: true, Stays: true},
		{Name: stripesim.FaultCommitThen503, Kind: payments.ObservedUnclear, Executed: true},
		{Name: stripesim.FaultSlow + ":20", Executed: true, Stored: true},
		{Name: stripesim.FaultShouldRetryTrue, Executed: true, Stored: true},
		{Name: stripesim.FaultShouldRetryFalse, Executed: true, Stored: true},
		{Name: stripesim.FaultInUse409, Kind: payments.ObservedInUse},
		{Name: stripesim.FaultRateLimit429, Kind: payments.ObservedRateLimited},
		{Name: stripesim.FaultLockTimeout429, Kind: payments.ObservedLocked},
		{Name: stripesim.FaultUnauthorized401, Kind: payments.ObservedUnauthorized},
	}
	paymentstest.FollowUpGateway(t, func(t *testing.T) paymentstest.Stripe { return openSim(t, 3*time.Second) }, faults...)
}

// openSim gives one part of a suite a Gateway on a simulator of its own, in which nothing may be charged or refunded twice.
func openSim(t *testing.T, timeout time.Duration) paymentstest.Stripe {
	t.Helper()
	s := newSim(t, stripesim.Options{}, func(o *Options) { o.Timeout = timeout })
	t.Cleanup(func() {
		if sum := s.Summary(); sum.DoubleCharges != 0 || sum.DoubleRefunds != 0 || sum.StrayRefunds != 0 {
			t.Errorf("the ledger has %+v", sum)
		}
	})
	return paymentstest.Stripe{
		Gateway: s.Gateway, FollowUps: s.Gateway, Namespace: testNamespace, RequestVersion: RequestVersion, TenantID: "acme", Customer: "cus_1", Now: s.Now,
		Posts: func() int { return int(s.Summary().Posts) },
		Post:  func(path, form string) (string, error) { return post(t.Context(), s.base.String(), s.key, path, form) },
		Body:  bodyOf,
		Fail: func(path, fault string) error {
			return s.AddFault(stripesim.Rule{Match: stripesim.Match{Path: path}, Fault: fault, Times: 1})
		},
	}
}
