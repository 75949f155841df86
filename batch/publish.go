package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Door is what Publish, Follow and Outcomes need of the API; *Client is one.
type Door interface {
	Accept(ctx context.Context, key string, body []byte) (accepted schema.BatchAccepted, replayed bool, err error)
	Batches(ctx context.Context, run, cursor string, limit int) (schema.List[schema.Batch], error)
	Payment(ctx context.Context, key string) (schema.Payment, error)
}

// Sent is how far Publish came.
type Sent struct {
	Rows         int64 // that are accepted, now or before
	Batches      int   // those rows' batches
	Replayed     int   // of these, which had been accepted before
	ReplayedRows int64 // those batches' rows
	// New says that something may have been accepted that had not been before.
	New bool
}

// PublishOptions say how.
type PublishOptions struct {
	Concurrency int // requests in flight, 1 to ConcurrencyMax
	Patience    Patience
	// Found, when set, is told after each page how many batches of the run were found to be accepted before, while these are looked for.
	Found func(batches int)
	// Adds, when set, is told once when the run was begun before and everything of it that was found is known to be the same: how many payments it
	// had, and how many more the file holds. Nothing new was sent until it returns.
	Adds func(had, adds int64)
	// Progress, when set, is told after each batch, never twice at a time.
	Progress func(Sent)
}

// ConcurrencyMax is the greatest number of requests in flight.
const ConcurrencyMax = 64

// ErrChanged is wrapped when the file is not what Check read.
var ErrChanged = errors.New("the file was changed while it was read")

// Publish reads the file again and sends its chunks, several at a time and in order, each under its own key until it is accepted. A chunk that is
// not what Check saw is not sent, and ends the run. Where an earlier call has begun the run, what that one sent is sent again before anything new:
// should the file be another, nothing of it is paid. Sent is right beside an error, too. The error wraps ErrChanged, or is a *RefusedError, a
// *ForeignError, the context's, or the last one of a door that was away for too long. The same call goes on where this one ended.
func Publish(ctx context.Context, plan *Plan, door Door, o PublishOptions) (Sent, error) {
	p := &publisher{plan: plan, door: door, o: o, lately: &progress{}, ready: make(chan chunk)}
	p.lately.note(o.Patience.Now())
	var err error
	if p.begun, err = findBegun(ctx, plan, door, o, p.lately); err != nil {
		return Sent{}, err
	}
	in, err := plan.source()
	if err != nil {
		return Sent{}, err
	}
	c, err := newChunks(plan.Run, plan.Format, in)
	if err != nil {
		return Sent{}, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	groupCtx, cancel := context.WithCancel(groupCtx)
	defer cancel()
	group.Go(func() error {
		defer close(p.ready)
		return p.read(groupCtx, c)
	})
	for range min(max(o.Concurrency, 1), ConcurrencyMax) {
		group.Go(func() error {
			for next := range p.ready {
				err := p.send(groupCtx, next)
				if err != nil {
					p.fail(groupCtx, err)
					cancel() // before Done: whoever waits for this chunk hands out nothing more
				}
				p.flying.Done()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	switch {
	case ctx.Err() != nil: // what the requests that were cut off say is of no use
		err = ctx.Err()
	case p.failed != nil:
		err = p.failed
	}
	return p.sent, err
}

type publisher struct {
	plan   *Plan
	door   Door
	o      PublishOptions
	begun  begun
	lately *progress
	ready  chan chunk
	flying sync.WaitGroup // chunks that are handed out and have no answer
	told   bool           // Adds was

	mu     sync.Mutex
	sent   Sent
	failed error // the first failure of a chunk; those that follow from it are none
}

func (p *publisher) fail(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil && ctx.Err() == nil {
		p.failed = err
	}
}

// heldMax bounds the chunks that wait for those that were accepted before: no more than were in flight when the earlier call ended.
const heldMax = ConcurrencyMax

// read hands out the chunks that are still what they were: those that were accepted before, then the others. The first one goes alone, so that
// another file under the same key is refused by it, whatever is still on its way from an earlier call.
func (p *publisher) read(ctx context.Context, c *chunks) error {
	var held []chunk
	for i := 0; ; i++ {
		next, err := c.next(ctx, nil)
		switch {
		case errors.Is(err, io.EOF) && i == p.plan.chunks.n:
			return p.release(ctx, held)
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: it has %d batches of %d rows where it had %d; nothing that was changed was sent", ErrChanged, i, ChunkRows, p.plan.chunks.n)
		case errors.Is(err, errStop), err == nil && !p.plan.chunks.is(i, next.sum):
			return fmt.Errorf("%w: from row %d on it is not what was checked; nothing that was changed was sent", ErrChanged, int64(i)*ChunkRows+1)
		case err != nil:
			return err
		}
		if i < len(p.begun.has) && !p.begun.there(i) {
			held = append(held, next)
		} else if err := p.hand(ctx, next); err != nil {
			return err
		}
		switch {
		case i == len(p.begun.has)-1, len(held) >= heldMax:
			err, held = p.release(ctx, held), nil
		case i == 0:
			p.flying.Wait()
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// release waits until all that was handed out is accepted, tells what is new, and then hands out what was held.
func (p *publisher) release(ctx context.Context, held []chunk) error {
	p.flying.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if adds := p.plan.Rows - p.begun.rows; !p.told && p.begun.n > 0 && adds > 0 && p.o.Adds != nil {
		p.told = true
		p.o.Adds(p.begun.rows, adds)
	}
	for _, c := range held {
		if err := p.hand(ctx, c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *publisher) hand(ctx context.Context, c chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The first chunk is new only once it is known to be: where it is refused nothing was sent.
	if c.index > 0 && !p.begun.there(c.index) {
		p.mu.Lock()
		p.sent.New = true
		p.mu.Unlock()
	}
	p.flying.Add(1)
	select {
	case p.ready <- c:
		return nil
	case <-ctx.Done():
		p.flying.Done()
		return ctx.Err()
	}
}

// accept posts one chunk until it is accepted.
func accept(ctx context.Context, run string, c chunk, door Door, patience Patience, lately *progress) (accepted schema.BatchAccepted, replayed bool, err error) {
	key := c.key(run)
	err = patience.until(ctx, lately, func(ctx context.Context) (err error) {
		accepted, replayed, err = door.Accept(ctx, key, c.body)
		if err == nil && !answers(accepted, key, c.rows) {
			err = &ProblemError{Status: 202, Code: codeForeign}
		}
		return err
	})
	var problem *ProblemError
	if errors.As(err, &problem) && !problem.retryable() {
		err = &RefusedError{Key: key, First: c.first, Last: c.first + int64(c.rows) - 1, Run: run, Problem: problem}
	}
	return accepted, replayed, err
}

// send has one chunk accepted, and counts it.
func (p *publisher) send(ctx context.Context, c chunk) error {
	_, replayed, err := accept(ctx, p.plan.Run, c, p.door, p.o.Patience, p.lately)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent.Rows += int64(c.rows)
	p.sent.Batches++
	if replayed {
		p.sent.Replayed++
		p.sent.ReplayedRows += int64(c.rows)
	} else {
		p.sent.New = true
	}
	if p.o.Progress != nil {
		p.o.Progress(p.sent)
	}
	return nil
}

// answers reports whether an acceptance is this batch's: a login page or a proxy's greeting accepts nothing.
func answers(accepted schema.BatchAccepted, key string, rows int) bool {
	if accepted.ID == "" || len(accepted.Payments) != rows {
		return false
	}
	for i, p := range accepted.Payments {
		if want, err := payments.ChildKey(key, i); err != nil || p.IdempotencyKey != want {
			return false
		}
	}
	return true
}
