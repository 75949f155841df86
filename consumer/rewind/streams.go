package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer"
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

// reread reads the streams of intents again, from where the database had all of their messages, or from the rewind's time if that is earlier.
func (r *Runner) reread(ctx context.Context, job payments.Rewind) (payments.Rewind, bool, error) {
	account, err := r.account(ctx)
	if err != nil {
		return job, false, err
	}
	names := []string{r.Subjects.StreamIntents(), r.Subjects.StreamBulk()}
	for i, name := range names {
		if job.Progress.Stream != "" && job.Progress.Stream != name {
			if i == 0 && job.Progress.Stream == names[1] {
				continue // done before
			}
		}
		if job, err = r.rereadStream(ctx, job, name, account); err != nil {
			return job, false, err
		}
		if i+1 < len(names) {
			job.Progress.Stream, job.Progress.Sequence = names[i+1], 0
		}
	}
	return job, true, nil
}

// bounds reads where a stream is, and fixes its last message that is read: what comes later meets a database that knows what Stripe has.
func (r *Runner) bounds(ctx context.Context, job *payments.Rewind, name string) (jetstream.Stream, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stream, err := r.JetStream.Stream(ctx, name)
	if err != nil {
		return nil, 0, unavailable("the stream "+name, err)
	}
	state := stream.CachedInfo().State
	if _, fixed := job.Progress.Bounds[name]; !fixed {
		bounds := map[string]uint64{name: state.LastSeq}
		for other, last := range job.Progress.Bounds {
			bounds[other] = last
		}
		job.Progress.Bounds = bounds
	}
	if job.Progress.Stream == name && job.Progress.Sequence > 0 {
		return stream, job.Progress.Sequence, nil
	}
	from, err := r.first(ctx, job, stream)
	job.Progress.Stream, job.Progress.Sequence = name, from
	return stream, from, err
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

// rereadStream reads one stream to its bound.
func (r *Runner) rereadStream(ctx context.Context, job payments.Rewind, name string, account func(string) payments.Account) (payments.Rewind, error) {
	stream, from, err := r.bounds(ctx, &job, name)
	if err != nil {
		return job, err
	}
	if job, err = r.Store.GoOn(ctx, job, r.Hold); err != nil {
		return job, err
	}
	last := job.Progress.Bounds[name]
	created := stream.CachedInfo().Created
	if from > last {
		return job, nil
	}
	reader, err := newReader(ctx, stream, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from})
	if err != nil {
		return job, err
	}
	defer reader.close(ctx)
	pending := reader.consumer.CachedInfo().NumPending
	for from <= last && pending > 0 {
		list, err := reader.more(int(min(messagesAtOnce, pending)))
		if err != nil {
			return job, err
		}
		if len(list) == 0 {
			return job, unavailable("the stream "+name, errors.New("its messages do not come"))
		}
		for at := 0; at < len(list); {
			var some []consumer.Forgotten
			if some, at, from, err = r.take(list, at, name, created, last); err != nil {
				return job, err
			}
			if job, err = r.restore(ctx, job, some, account); err != nil {
				return job, err
			}
			// Once all is done: a message whose payment was stored and whose batch or dead letter was not is read again.
			job.Progress.Sequence = from
			job.Progress.Messages += len(some)
		}
		pending -= min(pending, uint64(len(list)))
	}
	return job, nil
}

// take reads messages from list[at] on, until there is enough to be stored together; next is where the next ones begin, in the list and the stream.
func (r *Runner) take(list []jetstream.Msg, at int, name string, created time.Time, last uint64) (some []consumer.Forgotten, next int, sequence uint64, err error) {
	n := 0
	for next = at; next < len(list) && n < paymentsAtOnce; next++ {
		m := list[next]
		meta, err := m.Metadata()
		if err != nil {
			return nil, next, 0, err
		}
		if meta.Sequence.Stream > last {
			return some, len(list), last + 1, nil
		}
		origin := payments.MessageOrigin{Stream: name, StreamCreated: created, Sequence: meta.Sequence.Stream, Subject: m.Subject()}
		f := consumer.ReadForgotten(r.Subjects, origin, meta.Timestamp, m.Headers(), m.Data())
		some = append(some, f)
		n += len(f.Payments)
		sequence = meta.Sequence.Stream + 1
	}
	return some, next, sequence, nil
}

// restore stores what messages ask for. A batch is stored after its payments, which it then finds.
func (r *Runner) restore(ctx context.Context, job payments.Rewind, some []consumer.Forgotten, account func(string) payments.Account) (payments.Rewind, error) {
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
		letters[owner[i]] = some[owner[i]].NotAllowed(why)
	}
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

// reader goes through a stream in order; it acks nothing and holds nothing back.
type reader struct {
	stream   jetstream.Stream
	consumer jetstream.Consumer
}

func newReader(ctx context.Context, stream jetstream.Stream, c jetstream.ConsumerConfig) (*reader, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c.AckPolicy, c.InactiveThreshold, c.MemoryStorage, c.Replicas = jetstream.AckNonePolicy, readerIdle, true, 1
	made, err := stream.CreateConsumer(ctx, c)
	if err != nil {
		return nil, unavailable("a reader of the stream "+stream.CachedInfo().Config.Name, err)
	}
	return &reader{stream, made}, nil
}

// more returns the next messages, up to n.
func (r *reader) more(n int) (list []jetstream.Msg, err error) {
	batch, err := r.consumer.Fetch(n, jetstream.FetchMaxWait(fetchWait))
	if err != nil {
		return nil, unavailable("a stream's messages", err)
	}
	for m := range batch.Messages() {
		list = append(list, m)
	}
	if err := batch.Error(); err != nil && len(list) == 0 {
		return nil, unavailable("a stream's messages", err)
	}
	return list, nil
}

func (r *reader) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	_ = r.stream.DeleteConsumer(ctx, r.consumer.CachedInfo().Name) // else it ends when nobody has asked it for a while
}
