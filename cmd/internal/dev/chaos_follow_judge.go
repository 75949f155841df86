package dev

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// collectFollowUps adds what producers asked for about payments, what is stored of it, and what Stripe gave back. Stored are those that were asked for
// and those of which an event tells, should nobody have asked.
func (c *chaosRun) collectFollowUps(ctx context.Context, e *evidence) error {
	ids := map[payments.ID]bool{}
	for key, a := range c.book.asked {
		f := a.FollowUp
		f.Acknowledged = c.book.answered[key]
		e.FollowUps = append(e.FollowUps, f)
		ids[payments.NewID(f.TenantID, f.Key)] = true
	}
	for _, event := range e.Events {
		if strings.HasPrefix(event.Payment, "ref_") || strings.HasPrefix(event.Payment, "op_") {
			id, err := payments.ParseID(event.Payment)
			if err != nil {
				return err
			}
			ids[id] = true
		}
	}
	e.followUps = map[string]payments.FollowUp{}
	for id := range maps.Keys(ids) {
		f, err := c.store.FindFollowUp(ctx, demoTenant, id)
		switch {
		case payments.ErrorCode(err) == payments.CodeNotFound:
			continue
		case err != nil:
			return err
		}
		e.followUps[f.IdempotencyKey] = f
		e.Operations = append(e.Operations, oracle.Operation{
			ID: f.ID.Format(f.Kind), TenantID: f.TenantID, Key: f.IdempotencyKey, Kind: f.Kind, Payment: f.PaymentID, Status: f.Status, Amount: f.Amount,
		})
	}
	customers := map[string]string{}
	for _, charge := range e.ledger.Charges {
		customers[charge.PaymentIntent] = charge.Customer
	}
	for _, r := range e.ledger.Refunds {
		e.Refunds = append(e.Refunds, oracle.Refund{ID: r.ID, Customer: customers[r.PaymentIntent], Amount: r.Amount, Failed: r.Status == "failed"})
	}
	return nil
}

// settled reports whether what has the key is stored, and has its outcome.
func (e *evidence) settled() map[string]bool {
	settled := map[string]bool{}
	for _, p := range e.Payments {
		settled[p.Key] = p.Status.Settled()
	}
	for _, o := range e.Operations {
		settled[o.Key] = o.Status.Settled()
	}
	return settled
}

// judgeRequests wants, where Stripe forgets every key and nothing fails, one request for each payment and for each follow-up that needs one. A cancel needs
// none where nothing was sent yet, which then never is, and where it came too late.
func (c *chaosRun) judgeRequests(e evidence, p *ChaosProof) {
	want, held := len(e.Payments)+c.work.cancels(), map[string]bool{}
	for _, i := range e.Intents {
		id := payments.NewID(i.TenantID, i.Key).String()
		if held[id] = i.Held; i.Declines {
			held[id] = true // canceled by its decline, as counted above
		}
	}
	for _, row := range e.Payments {
		if row.Status == payments.StatusCanceled && !held[row.ID] {
			want--
		}
	}
	for _, o := range e.Operations {
		if o.Kind != payments.KindCancel || held[o.Payment] {
			want++
		}
	}
	if e.summary.Posts != want {
		p.find("Stripe was asked %d times, and not %d, for %d payments, %d of them to be canceled, and %d captures, cancels and refunds",
			e.summary.Posts, want, len(e.Payments), c.work.cancels(), len(e.Operations))
	}
}

// operations counts follow-ups by what was asked for and what became of it.
func (e *evidence) operations() map[string]int {
	n := map[string]int{}
	for _, o := range e.Operations {
		n[fmt.Sprintf("%s %s", o.Kind, o.Status)]++
	}
	return n
}
