package rewind

import (
	"context"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// objectsAtOnce is how many PaymentIntents are stored together.
const objectsAtOnce = 200

// The metadata by which a PaymentIntent of ours says whose it is.
const (
	metadataPayment = "oncepay_payment"
	metadataTenant  = "oncepay_tenant"
)

// listAll lists every account's PaymentIntents of ours, and keeps them. Nothing of it may be missing: it begins anew after a failure.
func (r *Runner) listAll(ctx context.Context, job payments.Rewind) (payments.Rewind, error) {
	ways, err := r.ways(ctx)
	if err != nil {
		return job, err
	}
	job.Progress.Objects, job.Progress.Corrected, job.Progress.Disagrees = 0, 0, 0
	l := &lister{Runner: r, ctx: ctx, job: job, told: r.Clock.Now()}
	for _, tenant := range ways {
		l.account, l.page = r.accounts[tenant], nil
		if err := r.Stripe.ListOurs(ctx, tenant, job.Since.Add(-payments.RewindMargin), l.each, l.progress); err != nil {
			return l.job, err
		}
		if err := l.flush(); err != nil {
			return l.job, err
		}
	}
	return l.job, nil
}

// lister takes in what Stripe lists.
type lister struct {
	*Runner
	ctx     context.Context
	job     payments.Rewind
	account payments.Account
	page    []payments.StripeObject
	told    time.Time // when the rewind's hold was last moved on
}

func (l *lister) each(pi payments.PaymentIntent) error {
	id, err := payments.ParseID(pi.Metadata[metadataPayment])
	tenant := pi.Metadata[metadataTenant]
	if err != nil || payments.CheckTenantID(tenant) != "" {
		l.Log.Error("a PaymentIntent of this installation's namespace names no payment; a person must look at it", "payment_intent", pi.ID)
		l.job.Progress.Disagrees++
		return nil
	}
	l.page = append(l.page, payments.StripeObject{TenantID: tenant, PaymentID: id, Account: l.account, Intent: pi})
	if len(l.page) < objectsAtOnce {
		return nil
	}
	return l.flush()
}

// progress keeps the rewind while Stripe is slow.
func (l *lister) progress() error {
	if now := l.Clock.Now(); now.Sub(l.told).Abs() >= l.Hold/4 {
		job, err := l.Store.GoOn(l.ctx, l.job, l.Hold)
		if err != nil {
			return err
		}
		l.job, l.told = job, now
	}
	return l.ctx.Err()
}

// flush stores a page, and corrects payments that have ended otherwise than Stripe says.
func (l *lister) flush() error {
	if len(l.page) == 0 {
		return nil
	}
	job, contradicted, err := l.Store.StoreObjects(l.ctx, l.job, l.Hold, l.page)
	if err != nil {
		return err
	}
	l.job, l.page, l.told = job, nil, l.Clock.Now()
	for _, p := range contradicted {
		if err := l.correct(p); err != nil {
			return err
		}
	}
	return nil
}

// correct looks at all that Stripe has of a payment, and lets that count.
func (l *lister) correct(p payments.Payment) error {
	o := l.Stripe.Look(l.ctx, l.around(p), l.progress)
	if o.Kind != payments.ObservedRecords {
		return payments.Errorf(payments.CodeUnavailable, "Stripe's records of the payment %s could not be read: %s", p.ID, o.Detail)
	}
	disagrees, changed, err := l.settled(l.ctx, p, o, correctEnded)
	switch {
	case err != nil:
		return err
	case disagrees != "":
		l.disagrees(&l.job, p, disagrees)
	case changed:
		l.job.Progress.Corrected++
	}
	return nil
}

// correctEnded lets what Stripe has count for a payment that had ended, or waits for somebody else.
func correctEnded(now payments.Payment, _ payments.Observation, t payments.Transition) (payments.Transition, verdict) {
	switch {
	case t.Status == now.Status, t.ThenSend:
		return t, staysAsIs
	case now.Status.Final() && t.Status == payments.StatusSucceeded, !now.Status.Final() && now.Status.CanMove(t.Status):
		return t, moves
	}
	return t, contradicts
}

// saying is a transition in words.
func saying(t payments.Transition) string {
	return strings.TrimSpace(string(t.Status) + " " + t.Reason)
}

// around is the payment as a look-up must see it to find whatever was made since the rewind's time.
func (l *lister) around(p payments.Payment) payments.Payment {
	if p.FirstSubmitAt.IsZero() || l.job.Since.Before(p.FirstSubmitAt) {
		p.FirstSubmitAt = l.job.Since.Add(-payments.RewindMargin)
	}
	p.LastSubmitAt = l.Clock.Now()
	if p.StripeAccount == "" {
		p.StripeAccount, p.Livemode = l.account.ID, l.account.Livemode
	}
	return p
}
