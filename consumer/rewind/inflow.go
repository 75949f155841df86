package rewind

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// inflow reads several streams as one, in the order in which their messages were stored.
type inflow struct {
	subjects schema.Subjects
	sources  []*source
}

// source is one of its streams.
type source struct {
	name    string
	created time.Time
	last    uint64 // the last message that is read
	*reader
	pending uint64 // messages that have not been fetched
	list    []jetstream.Msg
	head    *jetstream.MsgMetadata // of list[0]; nil: not looked at yet
}

// remembered is a message that is read again, and where it stands.
type remembered struct {
	consumer.Forgotten
	origin payments.MessageOrigin
}

// openInflow opens those of the streams of which something is to be read: from the message that from names, up to the one that bounds does.
func (r *Runner) openInflow(ctx context.Context, streams []jetstream.Stream, from, bounds map[string]uint64) (*inflow, error) {
	in := &inflow{subjects: r.Subjects}
	for _, stream := range streams {
		info := stream.CachedInfo()
		s := &source{name: info.Config.Name, created: info.Created, last: bounds[info.Config.Name]}
		first := from[s.name]
		if first == 0 || first > s.last {
			continue
		}
		var err error
		if s.reader, err = newReader(ctx, stream, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first}); err != nil {
			in.close(ctx)
			return nil, err
		}
		s.pending = s.consumer.CachedInfo().NumPending
		in.sources = append(in.sources, s)
	}
	return in, nil
}

func (in *inflow) close(ctx context.Context) {
	for _, s := range in.sources {
		s.reader.close(ctx)
	}
}

// take reads messages until there is enough to be stored together; none: all were read. What is stored together is stored charges first, so that no charge
// comes after a capture, cancel or refund: of two under one key the first counts. next is where reading goes on, which was at from.
func (in *inflow) take(from map[string]uint64) (some []remembered, next map[string]uint64, err error) {
	next = copied(from)
	followUps := false
	for n := 0; n < paymentsAtOnce && len(some) < messagesAtOnce; {
		s, err := in.earliest()
		if err != nil {
			return nil, from, err
		}
		if s == nil {
			break
		}
		m := s.read(in.subjects)
		if followUps && !m.FollowUp() && len(m.Payments) > 0 {
			break
		}
		followUps = followUps || m.FollowUp()
		some = append(some, m)
		n += len(m.Payments)
		next[s.name] = m.origin.Sequence + 1
		s.list, s.head = s.list[1:], nil
	}
	return some, next, nil
}

// earliest is the stream whose next message was stored first; nil: nothing is left.
func (in *inflow) earliest() (first *source, err error) {
	for _, s := range in.sources {
		if err := s.fill(); err != nil {
			return nil, err
		}
		if s.head != nil && (first == nil || s.head.Timestamp.Before(first.head.Timestamp)) {
			first = s
		}
	}
	return first, nil
}

// fill sees to it that the next message is there, if one is left.
func (s *source) fill() (err error) {
	if s.head != nil {
		return nil
	}
	if len(s.list) == 0 {
		if s.pending == 0 {
			return nil
		}
		if s.list, err = s.more(int(min(messagesAtOnce, s.pending))); err != nil {
			return err
		}
		if len(s.list) == 0 {
			return unavailable("the stream "+s.name, errors.New("its messages do not come"))
		}
		s.pending -= min(s.pending, uint64(len(s.list)))
	}
	if s.head, err = s.list[0].Metadata(); err == nil && s.head.Sequence.Stream > s.last {
		s.list, s.head, s.pending = nil, nil, 0
	}
	return err
}

func (s *source) read(subjects schema.Subjects) remembered {
	m := s.list[0]
	origin := payments.MessageOrigin{Stream: s.name, StreamCreated: s.created, Sequence: s.head.Sequence.Stream, Subject: m.Subject()}
	return remembered{consumer.ReadForgotten(subjects, origin, s.head.Timestamp, m.Headers(), m.Data()), origin}
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
