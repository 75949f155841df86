package paymentstest

import (
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// atOnce runs n calls at the same time.
func atOnce(n int, call func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	wg.Wait()
}

// refundsAmongMany: whoever comes at the same time, all refunds of a charge that are accepted are no more than what was taken.
func (b *storeBench) refundsAmongMany() {
	charge := b.taken("k")
	const callers = 20
	stored := make([]bool, callers)
	atOnce(callers, func(i int) {
		a, err := b.FollowUps.AdmitFollowUp(b.ctx, asking(payments.KindRefund, charge, numbered("r", i), 1000))
		if err != nil || a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictAmountExceeds {
			b.t.Errorf("AdmitFollowUp: %+v, %v", a, err)
		}
		stored[i] = a.Verdict == payments.VerdictStored
	})
	n := 0
	for _, one := range stored {
		if one {
			n++
		}
	}
	list, err := b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, payments.KindRefund)
	if err != nil || n != 9 || len(list) != 9 {
		b.t.Fatalf("%d of %d refunds of 10.00 are accepted, %d are there, %v; 99.00 were taken", n, callers, len(list), err)
	}
	for i, f := range list {
		if f.Number != int64(i)+1 {
			b.t.Errorf("refund %d has the number %d", i, f.Number)
		}
	}
	b.endAll(b.take(100))
	if p := b.stored(charge); p.AmountRefunded != 9000 {
		b.t.Errorf("the charge: %+v", p)
	}
}

// endAll records all at the same time that refunds were made.
func (b *storeBench) endAll(claims []payments.Claim) {
	b.t.Helper()
	atOnce(len(claims), func(i int) {
		if _, err := b.FollowUps.RecordFollowUp(b.ctx, b.recording(claims[i], refunded(claims[i].Payment), 0)); err != nil {
			b.t.Errorf("RecordFollowUp: %v", err)
		}
	})
}

// followUpOnceAmongMany: of many who ask under one key for the same one stores it.
func (b *storeBench) followUpOnceAmongMany() {
	charge := b.taken("k")
	const callers = 20
	verdicts := make([]payments.FollowUpAdmission, callers)
	atOnce(callers, func(i int) {
		var err error
		if verdicts[i], err = b.FollowUps.AdmitFollowUp(b.ctx, asking(payments.KindRefund, charge, "r", 0)); err != nil {
			b.t.Errorf("AdmitFollowUp: %v", err)
		}
	})
	count := map[payments.Verdict]int{}
	for _, a := range verdicts {
		if count[a.Verdict]++; a.FollowUp.Number != 1 {
			b.t.Errorf("%+v", a)
		}
	}
	if count[payments.VerdictStored] != 1 || count[payments.VerdictExists] != callers-1 {
		b.t.Errorf("the verdicts are %v", count)
	}
	b.takeOne()
}

// followUpKeyAmongMany: one key is given once, also when it is asked for at the same time for two charges, and for a charge.
func (b *storeBench) followUpKeyAmongMany() {
	for round := range 5 {
		key := numbered("r", round)
		charges := [2]payments.Payment{b.taken(numbered("k", round)), b.taken(numbered("l", round))}
		const callers = 12
		var mu sync.Mutex
		stored := map[payments.ID]int{}
		atOnce(callers, func(i int) {
			if i%3 == 2 {
				a, err := b.Store.Admit(b.ctx, payments.AdmitRequest{Intent: b.intent(key), Lane: payments.LaneInteractive})
				if err != nil || a.Verdict != payments.VerdictConflict && a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictExists {
					b.t.Errorf("Admit: %+v, %v", a, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if a.Verdict == payments.VerdictStored {
					stored[payments.ID{}]++
				}
				return
			}
			charge := charges[i%3]
			a, err := b.FollowUps.AdmitFollowUp(b.ctx, asking(payments.KindRefund, charge, key, 100))
			if err != nil || a.Verdict != payments.VerdictConflict && a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictExists {
				b.t.Errorf("AdmitFollowUp: %+v, %v", a, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if a.Verdict == payments.VerdictStored {
				stored[charge.ID]++
			}
		})
		if len(stored) != 1 {
			b.t.Errorf("%s: stored for %v", key, stored)
		}
		for of, n := range stored {
			list := 0
			for _, charge := range charges {
				all, err := b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, "")
				if err != nil || len(all) > 0 && charge.ID != of {
					b.t.Errorf("%s: %+v, %v", key, all, err)
				}
				list += len(all)
			}
			if n != 1 || (of == payments.ID{}) != (list == 0) {
				b.t.Errorf("%s: %d stored, %d follow-ups", key, n, list)
			}
		}
		b.take(10)
	}
}

// cancelRaces: of whoever takes a charge that was not sent and whoever cancels it one succeeds.
func (b *storeBench) cancelRaces() {
	for round := range 10 {
		charge := b.admit(payments.AdmitRequest{Intent: b.intent(numbered("k", round)), Lane: payments.LaneBulk}, payments.VerdictStored).Payment
		b.ask(asking(payments.KindCancel, charge, numbered("x", round), 0), payments.VerdictStored)
		c := b.takeUp(numbered("x", round))
		var taken []payments.Claim
		var err error
		atOnce(2, func(i int) {
			if i == 0 {
				taken = b.takeFrom(b.Store, payments.LaneBulk, 1)
			} else {
				_, err = b.FollowUps.RecordFollowUp(b.ctx, b.recording(c, canceling(), 0))
			}
		})
		p := b.stored(charge)
		switch {
		case err == nil:
			if len(taken) > 0 { // it was taken before: then it was not canceled
				b.t.Errorf("canceled and taken: %+v", p)
			}
			if p.Status != payments.StatusCanceled {
				b.t.Errorf("canceled: %+v", p)
			}
		case payments.ErrorCode(err) == payments.CodeTargetMoved:
			if len(taken) != 1 || p.Status != payments.StatusReceived || !p.Owned {
				b.t.Errorf("not canceled: %+v, taken %+v", p, taken)
			}
			b.record(taken[0], charged(charge), 0)
			b.recordFollowUp(c, payments.Transition{Status: payments.StatusFailed, Reason: "paid"}, 0)
		default:
			b.t.Errorf("RecordFollowUp: %v", err)
		}
	}
}
