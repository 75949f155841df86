package postgres

import (
	"context"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// TestFollowUpCommitAnswerLost cuts the connection at the COMMIT of each verb of follow-ups, before and after PostgreSQL has got it: the caller learns
// what is really stored, and all of it is there once.
func TestFollowUpCommitAnswerLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		t.Run("admit "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			charge := c.taken("k")
			r := asking(payments.KindRefund, charge, "r", 4000)
			r.Announce = true
			c.at("commit", action)
			a, err := c.far.AdmitFollowUp(ctx, r)
			if err != nil || a.Verdict != payments.VerdictStored || a.FollowUp.Number != 1 || a.FollowUp.Amount != 4000 || c.cuts.Load() != 1 {
				t.Fatalf("AdmitFollowUp: %+v, %v; %d cuts", a, err, c.cuts.Load())
			}
			if n, err := c.Unpublished(ctx); err != nil || n != 1 {
				t.Errorf("%d rows are announced, %v", n, err)
			}
			if a, err = c.far.AdmitFollowUp(ctx, r); err != nil || a.Verdict != payments.VerdictExists {
				t.Errorf("again: %+v, %v", a, err)
			}
			if n := c.rows("operations"); n != 1 {
				t.Errorf("%d operations", n)
			}
		})
		t.Run("record "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			charge := c.taken("k")
			c.ask(asking(payments.KindRefund, charge, "r", 4000), payments.VerdictStored)
			claim := c.takeUp("r")
			c.at("commit", action)
			done, err := c.far.RecordFollowUp(ctx, payments.Recording{Claim: claim, Transition: refunded(claim.Payment), At: c.clock.Now()})
			if err != nil || done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded || c.cuts.Load() != 1 {
				t.Fatalf("RecordFollowUp: %+v, %v; %d cuts", done, err, c.cuts.Load())
			}
			if p, err := c.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 4000 {
				t.Errorf("the charge: %+v, %v", p, err)
			}
		})
		t.Run("record a quiet one "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.ask(asking(payments.KindRefund, c.taken("k"), "r", 4000), payments.VerdictStored)
			c.recordFollowUp(c.takeUp("r"), unknown("no_answer"), 0)
			claim := c.takeUp("r")
			c.at("commit", action)
			if done, err := c.far.RecordFollowUp(ctx, payments.Recording{Claim: claim, Transition: unknown("no_answer"), At: c.clock.Now()}); err != nil || done.Sequence != 0 || done.Payment.Sequence != 1 {
				t.Errorf("RecordFollowUp: %+v, %v", done, err)
			}
		})
		t.Run("capture "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			charge := c.held("k")
			c.ask(asking(payments.KindCapture, charge, "c", 4000), payments.VerdictStored)
			claim := c.takeUp("c")
			c.at("commit", action)
			done, err := c.far.RecordFollowUp(ctx, payments.Recording{Claim: claim, Transition: captured(4000), At: c.clock.Now()})
			p, failed := c.Find(ctx, "acme", charge.ID)
			if err != nil || failed != nil || done.Sequence != 1 || p.Status != payments.StatusSucceeded || p.AmountCaptured != 4000 || p.Sequence != charge.Sequence+1 {
				t.Errorf("RecordFollowUp: %+v, %v; the charge %+v, %v", done, err, p, failed)
			}
		})
	}
}

// captured is Stripe's word that so much of what was held was taken.
func captured(amount int64) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Target: func(charge payments.Payment) (payments.Transition, error) {
		t := succeeded(charge)
		t.Object.AmountReceived = amount
		return t, nil
	}}
}

// TestFollowUpCutAtItsInsert: a connection that is cut before anything was stored is no reason to give up, and nothing is there twice.
func TestFollowUpCutAtItsInsert(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"accept_follow_up", "lock_payments"} {
		c := openCut(t)
		r := asking(payments.KindRefund, c.taken("k"), "r", 4000)
		c.at(query(statement), devstacktest.ForwardThenCut)
		if a, err := c.far.AdmitFollowUp(context.Background(), r); err != nil || a.Verdict != payments.VerdictStored || c.cuts.Load() != 1 {
			t.Errorf("%s: %+v, %v; %d cuts", statement, a, err, c.cuts.Load())
		}
		if n := c.rows("operations"); n != 1 {
			t.Errorf("%s: %d operations", statement, n)
		}
	}
}
