package rewind

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

const (
	// messagesAtOnce are read together, and paymentsAtOnce stored together: a message may be a batch of a hundred.
	messagesAtOnce = 200
	paymentsAtOnce = 200
	// fetchWait bounds the reading of some messages that are there; readerIdle is how long the server keeps a reader that nobody asks.
	fetchWait  = 5 * time.Second
	readerIdle = time.Minute
	askTimeout = 5 * time.Second
)

// reread reads the streams of intents again, from where the database had all of their messages, or from the rewind's time if that is earlier. They are read
// as one, in the order in which their messages were stored, since a payment and what was asked of it later may have come in different lanes.
func (r *Runner) reread(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	account, err := r.account(ctx)
	if err != nil {
		return job, false, err
	}
	streams, err := r.streams(ctx)
	if err != nil {
		return job, false, err
	}
	if err := r.bound(ctx, &job, streams); err != nil {
		return job, false, err
	}
	if job, err = r.Store.GoOn(ctx, job, r.Hold); err != nil {
		return job, false, err
	}
	in, err := r.openInflow(ctx, streams, job.Progress.Next, job.Progress.Bounds)
	if err != nil {
		return job, false, err
	}
	defer in.close(ctx)
	for {
		some, next, err := in.take(job.Progress.Next)
		if err != nil || len(some) == 0 {
			return job, err == nil, err
		}
		if job, err = r.restore(ctx, job, some, account, false); err != nil {
			return job, false, err
		}
		// Once all is done: a message whose payment was stored and whose batch or dead letter was not is read again.
		job.Progress.Next = next
		job.Progress.Messages += len(some)
	}
}

// rereadAgain reads once more the captures, cancels and refunds that their payments did not allow, now that all payments are there: the order in which two
// streams stored their messages is not always the one in which things happened. What is refused again is a dead letter.
func (r *Runner) rereadAgain(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	if len(job.Progress.Again) == 0 {
		return job, true, nil
	}
	account, err := r.account(ctx)
	if err != nil {
		return job, false, err
	}
	streams, err := r.streams(ctx)
	if err != nil {
		return job, false, err
	}
	in, err := r.openInflow(ctx, streams, job.Progress.Again, job.Progress.Bounds)
	if err != nil {
		return job, false, err
	}
	defer in.close(ctx)
	for {
		some, next, err := in.take(job.Progress.Again)
		if err != nil || len(some) == 0 {
			return job, err == nil, err
		}
		followUps := some[:0]
		for _, m := range some {
			if m.FollowUp() {
				followUps = append(followUps, m)
			}
		}
		if job, err = r.restore(ctx, job, followUps, account, true); err != nil {
			return job, false, err
		}
		job.Progress.Again = next
	}
}

// streams are those of intents, as they are now.
func (r *Runner) streams(ctx context.Context) (list []jetstream.Stream, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, name := range []string{r.Subjects.StreamIntents(), r.Subjects.StreamBulk()} {
		stream, err := r.JetStream.Stream(ctx, name)
		if err != nil {
			return nil, unavailable("the stream "+name, err)
		}
		list = append(list, stream)
	}
	return list, nil
}

// bound fixes the first and the last message of each stream that is read: what comes later meets a database that knows what Stripe has.
func (r *Runner) bound(ctx context.Context, job *payments.Rewind, streams []jetstream.Stream) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	next, bounds := copied(job.Progress.Next), copied(job.Progress.Bounds)
	for _, stream := range streams {
		info := stream.CachedInfo()
		if _, fixed := bounds[info.Config.Name]; !fixed {
			bounds[info.Config.Name] = info.State.LastSeq
		}
		if next[info.Config.Name] > 0 {
			continue
		}
		if next[info.Config.Name], err = r.first(ctx, job, stream); err != nil {
			return err
		}
	}
	job.Progress.Next, job.Progress.Bounds = next, bounds
	return nil
}

// copied is a map of its own: other states of the job have the old one.
func copied(m map[string]uint64) map[string]uint64 {
	c := make(map[string]uint64, len(m))
	maps.Copy(c, m)
	return c
}

// first is the first message that must be read.
func (r *Runner) first(ctx context.Context, job *payments.Rewind, stream jetstream.Stream) (uint64, error) {
	info := stream.CachedInfo()
	database, err := r.Store.Mark(ctx)
	if err != nil {
		return 0, err
	}
	floor, known := database.Floors[info.Config.Name]
	if !known || !floor.Created.Equal(info.Created) {
		return max(info.State.FirstSeq, 1), nil // all that there is
	}
	from := floor.Sequence + 1
	if from < info.State.FirstSeq {
		job.Progress.Note = fmt.Sprintf("messages %d to %d of %s are gone from the stream: payments of theirs that were not charged are known to nobody", from, info.State.FirstSeq-1, info.Config.Name)
	}
	at, err := r.sequenceAt(ctx, stream, job.Since.Add(-payments.RewindMargin))
	if err != nil {
		return 0, err
	}
	if at > 0 {
		from = min(from, at)
	}
	return max(from, info.State.FirstSeq), nil
}

// sequenceAt is the first message that was stored at the time or later; 0: none was.
func (r *Runner) sequenceAt(ctx context.Context, stream jetstream.Stream, at time.Time) (uint64, error) {
	if stream.CachedInfo().State.Msgs == 0 {
		return 0, nil
	}
	reader, err := newReader(ctx, stream, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &at})
	if err != nil {
		return 0, err
	}
	defer reader.close(ctx)
	if reader.consumer.CachedInfo().NumPending == 0 {
		return 0, nil
	}
	list, err := reader.more(1)
	if err != nil || len(list) == 0 {
		return 0, unavailable("a stream's messages", err)
	}
	meta, err := list[0].Metadata()
	if err != nil {
		return 0, err
	}
	return meta.Sequence.Stream, nil
}
