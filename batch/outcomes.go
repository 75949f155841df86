package batch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Outcome is what became of one row of a file. The payment's key says which row it is: the i-th payment of the n-th batch, both from 0, is row
// 100*n + i + 1.
type Outcome struct {
	Row            int64           `json:"row"` // from 1, the header and blank lines not counted
	IdempotencyKey string          `json:"idempotency_key"`
	ID             string          `json:"id"`
	Status         string          `json:"status"`
	Reason         *string         `json:"reason"`  // null where the payment succeeded
	Failure        *schema.Failure `json:"failure"` // what Stripe said, if it refused
}

// OutcomesOptions say which rows are asked for, and how.
type OutcomesOptions struct {
	Concurrency int // payments that are read at once, 1 to ConcurrencyMax
	Patience    Patience
	// Batch, when set, says whether the i-th batch is asked for; the file's other rows are passed over.
	Batch func(i int) bool
	// Outcome is told of each row in the file's order. Its error ends the reading, and is returned.
	Outcome func(Outcome) error
}

// Outcomes says what became of the rows of a plan that Publish has sent. It reads the file once more and repeats each batch that is asked for under
// its own key, which is answered with the payments as they stand; only those that did not succeed are read one by one. The error wraps ErrChanged,
// or is a *RefusedError, Outcome's, the context's, or the last one of a door that was away for too long.
func Outcomes(ctx context.Context, plan *Plan, door Door, o OutcomesOptions) error {
	in, err := plan.source()
	if err != nil {
		return err
	}
	c, err := newChunks(plan.Run, plan.Format, in)
	if err != nil {
		return err
	}
	lately := &progress{}
	lately.note(o.Patience.Now())
	var body []byte
	for i := range plan.chunks.n {
		next, err := c.next(ctx, body[:0])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errStop), err == nil && !plan.chunks.is(i, next.sum):
			return fmt.Errorf("%w: from row %d on it is not what was paid", ErrChanged, int64(i)*ChunkRows+1)
		case err != nil:
			return err
		}
		body = next.body
		if o.Batch != nil && !o.Batch(i) {
			continue
		}
		outcomes, err := outcomesOf(ctx, plan.Run, next, door, o, lately)
		if err != nil {
			return err
		}
		for _, one := range outcomes {
			if err := o.Outcome(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcomesOf asks what became of one batch.
func outcomesOf(ctx context.Context, run string, c chunk, door Door, o OutcomesOptions, lately *progress) ([]Outcome, error) {
	accepted, _, err := accept(ctx, run, c, door, o.Patience, lately)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(accepted.Payments))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(min(max(o.Concurrency, 1), ConcurrencyMax))
	for i, p := range accepted.Payments {
		one := &outcomes[i]
		*one = Outcome{Row: c.first + int64(i), IdempotencyKey: p.IdempotencyKey, ID: p.ID, Status: p.Status}
		if p.Status == string(payments.StatusSucceeded) {
			continue
		}
		group.Go(func() error {
			var found schema.Payment
			err := o.Patience.until(groupCtx, lately, func(ctx context.Context) (err error) {
				found, err = door.Payment(ctx, one.IdempotencyKey)
				return err
			})
			one.Status, one.Reason, one.Failure = found.Status, found.Reason, found.Failure
			return err
		})
	}
	err = group.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return outcomes, err
}
