package stripe

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

var _ payments.FollowUpGateway = (*Accounts)(nil)

// Capture implements payments.FollowUpGateway.
func (a *Accounts) Capture(ctx context.Context, s payments.Submission) payments.Observation {
	g, t, err := a.gateway(ctx, s.Payment.TenantID)
	if err != nil {
		return held(payments.ObservedAccountUnknown, s.Payment, t, err)
	}
	return a.noticed(t, g, g.Capture(ctx, s))
}

// Refund implements payments.FollowUpGateway.
func (a *Accounts) Refund(ctx context.Context, s payments.Submission) payments.Observation {
	g, t, err := a.gateway(ctx, s.Payment.TenantID)
	if err != nil {
		return held(payments.ObservedAccountUnknown, s.Payment, t, err)
	}
	return a.noticed(t, g, g.Refund(ctx, s))
}

// LookRefunds implements payments.FollowUpGateway.
func (a *Accounts) LookRefunds(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	g, t, err := a.gateway(ctx, p.TenantID)
	if err != nil {
		return held(payments.ObservedNoRecords, p, t, err)
	}
	return a.noticed(t, g, g.LookRefunds(ctx, p, progress))
}

// RetrieveRefund implements payments.FollowUpGateway.
func (a *Accounts) RetrieveRefund(ctx context.Context, p payments.Payment, refundID string) payments.Observation {
	g, t, err := a.gateway(ctx, p.TenantID)
	if err != nil {
		return held(payments.ObservedNoRecords, p, t, err)
	}
	return a.noticed(t, g, g.RetrieveRefund(ctx, p, refundID))
}
