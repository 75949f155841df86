package rewind

import (
	"context"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// restore stores what messages ask for. A batch is stored after its payments, which it then finds. A capture, cancel or refund that is not allowed is read
// once more when all payments are there; the last time it is a dead letter.
func (r *Runner) restore(ctx context.Context, job payments.Rewind, some []remembered, account func(string) payments.Account, last bool) (payments.Rewind, error) {
	some, err := r.notRefused(ctx, some)
	if err != nil {
		return job, err
	}
	var list []payments.ForgottenPayment
	owner := []int{} // of each payment, the message that it came by
	for i, f := range some {
		for range f.Payments {
			owner = append(owner, i)
		}
		list = append(list, f.Payments...)
	}
	job, done, err := r.Store.RestorePayments(ctx, job, r.Hold, list, account)
	if err != nil {
		return job, err
	}
	letters := map[int]*payments.DeadLetter{}
	for i, f := range some {
		letters[i] = f.Letter
	}
	for i, differs := range done.Conflicts {
		letters[owner[i]] = some[owner[i]].Refused(payments.VerdictConflict, differs)
	}
	for i, tenant := range done.Unknown {
		job.Progress.Misses(tenant)
		letters[owner[i]] = some[owner[i]].Refused(payments.VerdictTenantUnknown, nil)
	}
	for i, why := range done.Refused {
		if m := some[owner[i]]; last {
			letters[owner[i]] = m.NotAllowed(why)
		} else {
			noteAgain(&job, m.origin)
		}
	}
	return r.storeRest(ctx, job, some, letters)
}

// notRefused leaves out captures, cancels and refunds that were refused when they came, as a dead letter says that nobody has replayed. What was refused
// then for how its payment stood might be allowed now, after another one that its sender asked for instead has been executed.
func (r *Runner) notRefused(ctx context.Context, some []remembered) ([]remembered, error) {
	var asked []payments.MessageOrigin
	for _, f := range some {
		if f.FollowUp() {
			asked = append(asked, f.origin)
		}
	}
	if len(asked) == 0 {
		return some, nil
	}
	refused, err := r.Store.RefusedBefore(ctx, asked)
	if err != nil || len(refused) == 0 {
		return some, err
	}
	return slices.DeleteFunc(slices.Clone(some), func(f remembered) bool { return f.FollowUp() && refused[f.origin] }), nil
}

// noteAgain notes that a message must be read once more.
func noteAgain(job *payments.Rewind, origin payments.MessageOrigin) {
	if at, noted := job.Progress.Again[origin.Stream]; !noted || origin.Sequence < at {
		job.Progress.Again = copied(job.Progress.Again)
		job.Progress.Again[origin.Stream] = origin.Sequence
	}
}

// storeRest stores batches, whose payments are there, and dead letters, by message.
func (r *Runner) storeRest(ctx context.Context, job payments.Rewind, some []remembered, letters map[int]*payments.DeadLetter) (payments.Rewind, error) {
	for i, f := range some {
		if f.Batch != nil && letters[i] == nil {
			admitted, err := r.Store.AdmitBatch(ctx, *f.Batch)
			if err != nil {
				return job, err
			}
			letters[i] = f.Refused(admitted.Verdict, admitted.Differs)
		}
		if letters[i] != nil {
			if err := r.Store.BuryMessage(ctx, *letters[i]); err != nil {
				return job, err
			}
			job.Progress.Letters++
		}
	}
	return job, nil
}
