package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestFollowUpsAmongAll: whoever charges, looks at Stripe, refunds, captures and cancels the same charges at the same time, nobody locks in a circle, no
// charge gives back more than was taken, and each figure is the sum of its refunds.
func TestFollowUpsAmongAll(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.PoolSize = 12 })
	ctx := context.Background()
	const charges, rounds = 6, 12
	list := make([]payments.Payment, charges)
	for i := range list {
		list[i] = b.held(fmt.Sprintf("k%d", i))
	}
	var wg sync.WaitGroup
	for worker := range 4 { // who asks
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for round := range rounds {
				for _, kind := range []payments.Kind{payments.KindCapture, payments.KindRefund, payments.KindCancel, payments.KindRefund} {
					charge := list[random.IntN(charges)]
					r := asking(kind, charge, fmt.Sprintf("%s-%d-%d-%d", kind, worker, round, random.IntN(4)), 0)
					if r.Intent.All && random.IntN(2) == 0 {
						r.Intent.Amount, r.Intent.All = 100+random.Int64N(3000), false
					}
					if _, err := b.AdmitFollowUp(ctx, r); err != nil {
						t.Errorf("AdmitFollowUp: %v", err)
					}
				}
			}
		})
	}
	asked := make(chan struct{})
	var done sync.WaitGroup
	for worker := range 4 { // who works
		done.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(worker)))
			for last := false; ; {
				taking, err := b.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 5, Lease: time.Hour, Account: account})
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				for _, c := range taking.Claims {
					b.workOn(random, c)
				}
				if len(taking.Claims) > 0 {
					last = false
					continue
				}
				if last {
					return
				}
				select {
				case <-asked:
					b.clock.Advance(time.Minute)
					last = true
				default:
				}
			}
		})
	}
	for worker := range 2 { // who learns of Stripe
		wg.Go(func() {
			for n := range 5 * rounds {
				_, err := b.Evidence(ctx, "acme", list[(n+worker)%charges].ID, func(p payments.Payment) (payments.Transition, error) {
					if p.Status != payments.StatusRequiresCapture {
						return payments.Transition{Status: p.Status, Reason: p.Reason}, nil
					}
					return requiresCapture(p), nil
				})
				if err != nil {
					t.Errorf("Evidence: %v", err)
				}
			}
		})
	}
	wg.Go(func() { // and other charges
		for n := range 3 * rounds {
			c := b.claim(fmt.Sprintf("other-%d", n))
			if _, err := b.Record(ctx, payments.Recording{Claim: c, Transition: succeeded(c.Payment), At: b.clock.Now()}); err != nil {
				t.Errorf("Record: %v", err)
			}
		}
	})
	wg.Wait()
	close(asked)
	done.Wait()
	b.sums(list)
	var deadlocks int64
	if err := b.pool.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}

// workOn ends a follow-up as Stripe might, or gives it back.
func (b *bench) workOn(random *rand.Rand, c payments.Claim) {
	ctx, p := context.Background(), c.Payment
	if !p.Kind.FollowUp() {
		b.t.Errorf("a charge is given out: %+v", p)
		return
	}
	state, err := b.FollowUpState(ctx, p)
	if err != nil {
		b.t.Errorf("FollowUpState: %v", err)
		return
	}
	t := payments.Transition{Status: payments.StatusWaiting, Reason: "behind_another", ClearSubmit: true}
	switch held := state.Target.Status == payments.StatusRequiresCapture; {
	case state.Ahead:
	case random.IntN(6) == 0:
		t = payments.Transition{Status: payments.StatusFailed, Reason: "no"}
	case p.Kind == payments.KindCapture && held:
		t = captured(p.Amount)
	case p.Kind == payments.KindCancel && held:
		t = payments.Transition{Status: payments.StatusSucceeded, Target: func(charge payments.Payment) (payments.Transition, error) {
			if charge.Status != payments.StatusRequiresCapture {
				return payments.Transition{}, payments.Errorf(payments.CodeTargetMoved, "it is %s", charge.Status)
			}
			return payments.Transition{Status: payments.StatusCanceled, Reason: "canceled_on_request"}, nil
		}}
	case p.Kind == payments.KindRefund && state.Target.Status == payments.StatusSucceeded && p.Status != payments.StatusPending && random.IntN(3) == 0:
		t = payments.Transition{Status: payments.StatusPending, Refund: refunded(p).Refund}
	case p.Kind == payments.KindRefund && state.Target.Status == payments.StatusSucceeded:
		t = refunded(p)
	default:
		t = payments.Transition{Status: payments.StatusFailed, Reason: "too_late"}
	}
	if _, err := b.RecordFollowUp(ctx, payments.Recording{Claim: c, Transition: t, Delay: time.Second, At: b.clock.Now()}); err != nil {
		b.t.Errorf("RecordFollowUp of %s as %s: %v", p.Kind, t.Status, err)
	}
}

// sums wants each charge's figures to be those of its follow-ups, all of which have ended.
func (b *bench) sums(charges []payments.Payment) {
	b.t.Helper()
	ctx := context.Background()
	ended := 0
	for _, charge := range charges {
		p, err := b.Find(ctx, charge.TenantID, charge.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		list, err := b.FollowUpsOf(ctx, charge.TenantID, charge.ID, "")
		if err != nil {
			b.t.Fatal(err)
		}
		var captured, refunded int64
		canceled := false
		for i, f := range list {
			if f.Number != int64(i)+1 || !f.Status.Final() {
				b.t.Errorf("follow-up %d: %+v", i, f)
			}
			switch {
			case f.Status != payments.StatusSucceeded:
			case f.Kind == payments.KindCapture:
				captured += f.Amount
			case f.Kind == payments.KindRefund:
				refunded += f.Amount
			default:
				canceled = true
			}
			ended++
		}
		if p.AmountCaptured != captured || p.AmountRefunded != refunded || refunded > captured || canceled != (p.Status == payments.StatusCanceled) || canceled && captured > 0 {
			b.t.Errorf("%s has captured %d and refunded %d, its follow-ups %d and %d, canceled %t", p.Status, p.AmountCaptured, p.AmountRefunded, captured, refunded, canceled)
		}
	}
	if ended == 0 {
		b.t.Error("nothing was accepted")
	}
}

// TestFiguresOfAChargeWithATicket: should something be given back while somebody has the charge's ticket, its owner's word neither takes that away nor
// breaks what must hold.
func TestFiguresOfAChargeWithATicket(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 4000), payments.VerdictStored)
	refund := b.takeUp("r")
	b.exec("UPDATE payments SET status = 'pending', finalized_at = NULL, amount_captured = 0 WHERE id = $1", charge.ID[:])
	b.exec("INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT tenant_id, id, 1, updated_at FROM payments WHERE id = $1", charge.ID[:])
	c := b.takeUp("k")
	b.recordFollowUp(refund, refunded(refund.Payment), 0)
	if p := b.find(c); p.AmountRefunded != 4000 || p.AmountCaptured != 4000 || !p.Owned {
		t.Errorf("given back: %+v", p)
	}
	late := succeeded(c.Payment)
	late.Object.AmountReceived = 0
	if _, err := b.Record(ctx, payments.Recording{Claim: c, Transition: late, At: b.clock.Now()}); err != nil {
		t.Fatal(err)
	}
	if p := b.find(c); p.AmountRefunded != 4000 || p.AmountCaptured != 4000 || p.Status != payments.StatusSucceeded {
		t.Errorf("recorded: %+v", p)
	}
}

// TestCaptureOfWhatAPersonHasGivenAway: the capture is recorded as Stripe shows it, and its charge waits for a person.
func TestCaptureOfWhatAPersonHasGivenAway(t *testing.T) {
	t.Parallel()
	b := open(t)
	charge, other := b.held("k"), b.taken("other")
	b.exec("INSERT INTO resolved_intents (stripe_payment_intent, tenant_id, payment_id, named_at) VALUES ($1, 'acme', $2, now())", charge.StripePaymentIntent, other.ID[:])
	b.ask(asking(payments.KindCapture, charge, "c", 0), payments.VerdictStored)
	done := b.recordFollowUp(b.takeUp("c"), captured(9900), 0)
	p, err := b.Find(context.Background(), "acme", charge.ID)
	if err != nil || done.Payment.Status != payments.StatusSucceeded || p.Status != payments.StatusNeedsReview || p.Reason[:len(payments.ReasonTaken)] != payments.ReasonTaken {
		t.Errorf("recorded %+v, the charge %+v, %v", done, p, err)
	}
}

// TestPausedFollowUps: nobody is given a follow-up of who is paused, and it says so.
func TestPausedFollowUps(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	f := b.ask(asking(payments.KindRefund, b.taken("k"), "r", 0), payments.VerdictStored).FollowUp
	if _, err := b.Pause(ctx, payments.Pause{TenantID: "acme", Actor: "ada", Reason: "looking"}); err != nil {
		t.Fatal(err)
	}
	if claims := b.take(payments.TakeRequest{Limit: 10}); len(claims) != 0 {
		t.Errorf("given out: %+v", claims)
	}
	if got, err := b.FindFollowUp(ctx, "acme", f.ID); err != nil || got.Payment.Reason != payments.ReasonPaused {
		t.Errorf("shown: %+v, %v", got, err)
	}
	if list, err := b.FollowUpsOf(ctx, "acme", f.ID, ""); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("%+v, %v", list, err)
	}
}
