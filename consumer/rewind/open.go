package rewind

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

const (
	// openAtOnce payments that wait for somebody else are looked for together, and readAtOnce PaymentIntents read at the same time: nothing is
	// submitted meanwhile, so that these calls are all that Stripe gets.
	openAtOnce = 200
	readAtOnce = 4
)

// open reads the next payments again that wait for their customer or for a capture. They may be older than the rewind's time, and the listing has
// only what was made since; what became of them later is in Stripe's PaymentIntents alone.
func (r *Runner) open(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	account, err := r.account(ctx)
	if err != nil {
		return job, false, err
	}
	list, through, done, err := r.Store.OpenPayments(ctx, job, openAtOnce)
	if err != nil || done {
		return job, done, err
	}
	for some := range slices.Chunk(list, readAtOnce) {
		broken := r.readAgain(ctx, &job, some, account)
		if job, err = r.Store.GoOn(ctx, job, r.Hold); err != nil { // also when one could not be read: those before it are done
			return job, false, err
		}
		if broken != nil {
			return job, false, broken
		}
	}
	job.Progress.Tenant, job.Progress.ID = through.Progress.Tenant, through.Progress.ID
	job, err = r.Store.GoOn(ctx, job, r.Hold)
	return job, false, err
}

// readAgain reads the PaymentIntents of some payments and records what has become of them, in order. The job stands at the last one that is done.
func (r *Runner) readAgain(ctx context.Context, job *payments.Rewind, some []payments.Payment, account func(string) payments.Account) error {
	seen := make([]payments.Observation, len(some))
	ctx, cancel := context.WithTimeout(ctx, r.Hold/2) // else the hold could end meanwhile
	defer cancel()
	var reading sync.WaitGroup
	for i, p := range some {
		if account(p.TenantID) == (payments.Account{ID: p.StripeAccount, Livemode: p.Livemode}) {
			reading.Go(func() { seen[i] = r.Stripe.Retrieve(ctx, p) })
		}
	}
	reading.Wait()
	for i, p := range some {
		if err := unread(ctx, p, seen[i]); err != nil {
			return err
		}
		disagrees, changed, err := r.settled(ctx, p, seen[i], adoptOpen)
		switch {
		case err != nil:
			return err
		case disagrees != "":
			r.disagrees(job, p, disagrees)
		case changed:
			job.Progress.Adopted++
		}
		job.Progress.Tenant, job.Progress.ID = p.TenantID, p.ID.String()
	}
	return nil
}

// unread tells why a PaymentIntent must be read once more. What lies in this payment alone is no reason: it must not keep all others waiting.
func unread(ctx context.Context, p payments.Payment, o payments.Observation) error {
	trouble := o.Kind == payments.ObservedNoRecords && o.Health() != payments.HealthNothing
	if ctx.Err() == nil && !trouble {
		return nil
	}
	why := o.Detail
	if why == "" {
		why = "it was not read in time"
	}
	return unavailable("the PaymentIntent of the payment "+p.ID.String(), errors.New(why))
}

// adoptOpen is what the PaymentIntent makes of a payment that waits for its customer or a capture. What could not be read, since its account is
// connected no more, or leads to where the payment cannot go from here, is looked up by a worker like the others.
func adoptOpen(now payments.Payment, o payments.Observation, t payments.Transition) (next payments.Transition, verdict verdict) {
	if now.Status != payments.StatusRequiresAction && now.Status != payments.StatusRequiresCapture {
		return t, staysAsIs
	}
	if o.Kind == payments.ObservedObject {
		if o.Object != nil && !(payments.StripeObject{Intent: *o.Object}).Contradicts(now) {
			return t, staysAsIs
		}
		if t.Status != now.Status && now.Status.CanMove(t.Status) {
			return t, moves
		}
	}
	return payments.Transition{Status: payments.StatusUnknown, Reason: payments.ReasonRewound, InDoubt: true}, moves
}

// verdict is what Stripe's word does to a payment that nobody works on.
type verdict int

const (
	staysAsIs verdict = iota
	moves
	contradicts // and a person must look at it
)

// settled records what was seen of a payment that nobody works on, as judge says. changed: the payment is another now; disagrees: what Stripe shows
// and judge did not take over.
func (r *Runner) settled(ctx context.Context, p payments.Payment, o payments.Observation,
	judge func(payments.Payment, payments.Observation, payments.Transition) (payments.Transition, verdict),
) (disagrees string, changed bool, err error) {
	done, err := r.Store.Evidence(ctx, p.TenantID, p.ID, func(now payments.Payment) (payments.Transition, error) {
		disagrees = ""
		stays := payments.Transition{Status: now.Status, Reason: now.Reason, InDoubt: now.InDoubt}
		if now.Status.HasTicket() {
			return stays, errWorkedOn
		}
		var t payments.Transition
		if o.Kind != "" {
			var err error
			if t, err = payments.Decide(now, o, r.Clock.Now(), payments.Policy{TriesMax: max(1, r.TriesMax)}); err != nil {
				return t, err
			}
		}
		next, verdict := judge(now, o, t)
		switch verdict {
		case moves:
			return next, nil
		case contradicts:
			disagrees = saying(next)
		}
		return stays, nil
	})
	switch {
	case err == errWorkedOn:
		return "", false, nil // it is looked up like the others
	case errors.Is(err, payments.ErrTaken):
		return string(payments.StatusSucceeded) + " " + payments.ReasonTaken, false, nil
	}
	return disagrees, err == nil && done.Sequence > 0, err
}

var errWorkedOn = payments.Errorf(payments.CodeInvalid, "the payment is worked on")

// disagrees counts a payment that a person must look at, and names it.
func (r *Runner) disagrees(job *payments.Rewind, p payments.Payment, stripe string) {
	job.Progress.Disagrees++
	r.Log.Error("Stripe contradicts a payment that has ended, and what it shows is no simple success; a person must look at it", "payment", p.ID.String(),
		"tenant", p.TenantID, "status", p.Status, "stripe", stripe)
}
