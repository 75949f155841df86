package paymentstest_test

import (
	"context"
	"os"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest"
)

// followUpGateway is a FollowUpGateway that is broken where a function is set.
type followUpGateway struct {
	payments.FollowUpGateway
	capture, refund func(payments.FollowUpGateway, context.Context, payments.Submission) payments.Observation
	look            func(payments.FollowUpGateway, context.Context, payments.Payment, func() error) payments.Observation
}

func (g followUpGateway) Capture(ctx context.Context, s payments.Submission) payments.Observation {
	if g.capture == nil {
		return g.FollowUpGateway.Capture(ctx, s)
	}
	return g.capture(g.FollowUpGateway, ctx, s)
}

func (g followUpGateway) Refund(ctx context.Context, s payments.Submission) payments.Observation {
	if g.refund == nil {
		return g.FollowUpGateway.Refund(ctx, s)
	}
	return g.refund(g.FollowUpGateway, ctx, s)
}

func (g followUpGateway) LookRefunds(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	if g.look == nil {
		return g.FollowUpGateway.LookRefunds(ctx, p, progress)
	}
	return g.look(g.FollowUpGateway, ctx, p, progress)
}

// onRefund changes what a refund shows.
func onRefund(change func(*payments.Observation)) followUpGateway {
	return followUpGateway{refund: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		o := g.Refund(ctx, s)
		change(&o)
		return o
	}}
}

// followUpGateways break a FollowUpGateway, each in one thing.
var followUpGateways = map[string]struct {
	part  string
	brake followUpGateway
}{
	"CapturesAnyhow": {"HeldBack", followUpGateway{capture: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.MayLeave = func() error { return nil }
		return g.Capture(ctx, s)
	}}},
	"RefundsAnyhow": {"HeldBack", followUpGateway{refund: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.MayLeave = func() error { return nil }
		return g.Refund(ctx, s)
	}}},
	"RefundsTwice": {"Refund", followUpGateway{refund: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		g.Refund(ctx, s)
		return g.Refund(ctx, s)
	}}},
	"HidesReplays":      {"Refund", onRefund(func(o *payments.Observation) { o.Replayed = false })},
	"RefusalIsUnclear":  {"RefundRefused", onRefund(renames(payments.ObservedInvalid, payments.ObservedUnclear))},
	"ConflictIsRefusal": {"OtherParametersUnderTheSameKey", onRefund(renames(payments.ObservedKeyConflict, payments.ObservedInvalid))},
	"PendingIsDone": {"RefundPending", onRefund(func(o *payments.Observation) {
		if o.Refund != nil {
			o.Refund.Status = payments.RefundSucceeded
		}
	})},
	"CapturesAll": {"CaptureInPart", followUpGateway{capture: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.Payment.Amount = 4200
		return g.Capture(ctx, s)
	}}},
	"KnowsNoAccounts": {"ForeignAccount", followUpGateway{refund: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		a, _ := g.(payments.Gateway).Account(ctx, s.Payment.TenantID)
		s.Payment.StripeAccount, s.Payment.Livemode = a.ID, a.Livemode
		return g.Refund(ctx, s)
	}}},
	"ForgetsMetadata": {"RefundAllFields", followUpGateway{refund: func(g payments.FollowUpGateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.Payment.Metadata = nil
		return g.Refund(ctx, s)
	}}},
	"FindsNothing": {"Refund", followUpGateway{look: func(g payments.FollowUpGateway, ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
		o := g.LookRefunds(ctx, p, progress)
		o.Refunds = nil
		return o
	}}},
	"LooksWithoutTheTicket": {"LookEndsWithItsTicket", followUpGateway{look: func(g payments.FollowUpGateway, ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
		return g.LookRefunds(ctx, p, func() error {
			if progress != nil {
				_ = progress()
			}
			return nil
		})
	}}},
}

// TestFollowUpGatewayCatches: whatever is broken in a FollowUpGateway, the part of the suite that is about it fails. That is seen in a child process.
func TestFollowUpGatewayCatches(t *testing.T) {
	t.Parallel()
	if os.Getenv(breakIt) == "" {
		parts := map[string]string{}
		for breach, g := range followUpGateways {
			parts[breach] = g.part
		}
		caught(t, t.Name(), parts)
		return
	}
	for breach, g := range followUpGateways {
		t.Run(breach, func(t *testing.T) {
			paymentstest.FollowUpGateway(t, func(t *testing.T) paymentstest.Stripe {
				s := openSimulator(t)
				g.brake.FollowUpGateway = s.FollowUps
				s.FollowUps = g.brake
				return s
			})
		})
	}
}
