package consumer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
)

// ahead is what the scout asks of a lane's stream: reads alone, each answered by the stream's leader. The stream's own index of its subjects
// makes a read of one tenant cost the same whatever stands before it.
type ahead interface {
	// position says where the stream and the lane's durable consumer are.
	position(ctx context.Context) (position, error)
	// tenants counts the messages of each tenant in the stream, old ones too.
	tenants(ctx context.Context) (map[string]uint64, error)
	// last is the sequence of the tenant's last message; 0: it has none.
	last(ctx context.Context, tenant string) (uint64, error)
	// next is the tenant's first message at from or after it; nil: it has none.
	next(ctx context.Context, tenant string, from uint64) (*jetstream.RawStreamMsg, error)
	// read begins to read the tenant's messages at from.
	read(ctx context.Context, tenant string, from uint64) (aheadReader, error)
}

// aheadReader reads one tenant's messages in their order, many with one question.
type aheadReader interface {
	// more returns up to n messages; fewer: the stream has no more now.
	more(n int) ([]*jetstream.RawStreamMsg, error)
	close(ctx context.Context)
}

// position is where a lane's stream and consumer are.
type position struct {
	created   time.Time // the stream's
	last      uint64    // the stream's last sequence
	subjects  uint64    // how many the stream has
	delivered uint64    // the highest sequence that was given to any worker
	pending   uint64    // how many messages were not
}

// onStream is ahead on JetStream. position comes first.
type onStream struct {
	js       jetstream.JetStream
	name     string
	consumer string
	subject  func(tenant string) (string, error)
	parse    func(subject string) (tenant string, ok bool)

	mu    sync.Mutex
	bound jetstream.Stream // at the last position
}

func (o *onStream) stream() jetstream.Stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bound
}

func newAhead(l *lane) *onStream {
	subjects, of := l.w.Subjects, l.w.Subjects.Intent
	if l.lane == payments.LaneBulk {
		of = subjects.Bulk
	}
	return &onStream{js: l.w.JetStream, name: l.stream, consumer: l.name, subject: of, parse: func(subject string) (string, bool) {
		_, tenant, err := subjects.ParseSubject(subject)
		return tenant, err == nil
	}}
}

func (o *onStream) position(ctx context.Context) (position, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	stream, err := o.js.Stream(ctx, o.name)
	if err != nil {
		return position{}, err
	}
	consumer, err := stream.Consumer(ctx, o.consumer)
	if err != nil {
		return position{}, err
	}
	o.mu.Lock()
	o.bound = stream
	o.mu.Unlock()
	s, c := stream.CachedInfo(), consumer.CachedInfo()
	return position{
		created: s.Created, last: s.State.LastSeq, subjects: s.State.NumSubjects, delivered: c.Delivered.Stream, pending: c.NumPending,
	}, nil
}

func (o *onStream) tenants(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	const any = "any" // a tenant like another
	subject, err := o.subject(any)
	if err != nil {
		return nil, err
	}
	info, err := o.stream().Info(ctx, jetstream.WithSubjectFilter(strings.TrimSuffix(subject, any)+"*"))
	if err != nil {
		return nil, err
	}
	counts := make(map[string]uint64, len(info.State.Subjects))
	for subject, n := range info.State.Subjects {
		if tenant, ok := o.parse(subject); ok {
			counts[tenant] = n
		}
	}
	return counts, nil
}

func (o *onStream) last(ctx context.Context, tenant string) (uint64, error) {
	m, err := o.get(ctx, tenant, func(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
		return o.stream().GetLastMsgForSubject(ctx, subject)
	})
	if m == nil {
		return 0, err
	}
	return m.Sequence, nil
}

func (o *onStream) next(ctx context.Context, tenant string, from uint64) (*jetstream.RawStreamMsg, error) {
	return o.get(ctx, tenant, func(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
		return o.stream().GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	})
}

func (o *onStream) get(ctx context.Context, tenant string, read func(context.Context, string) (*jetstream.RawStreamMsg, error)) (*jetstream.RawStreamMsg, error) {
	subject, err := o.subject(tenant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	m, err := read(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, err
}

// readerIdle is how long the server keeps a reader that nobody asks.
const readerIdle = 10 * time.Second

// subjectReader is an ephemeral consumer of one subject. It acks nothing and holds nothing back.
type subjectReader struct {
	stream   jetstream.Stream
	consumer jetstream.Consumer
}

func (o *onStream) read(ctx context.Context, tenant string, from uint64) (aheadReader, error) {
	subject, err := o.subject(tenant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	stream := o.stream()
	c, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		InactiveThreshold: readerIdle, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return nil, err
	}
	return &subjectReader{stream: stream, consumer: c}, nil
}

func (r *subjectReader) more(n int) ([]*jetstream.RawStreamMsg, error) {
	batch, err := r.consumer.FetchNoWait(n)
	if err != nil {
		return nil, err
	}
	var list []*jetstream.RawStreamMsg
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return list, err
		}
		list = append(list, &jetstream.RawStreamMsg{Subject: msg.Subject(), Sequence: meta.Sequence.Stream, Header: msg.Headers(), Data: msg.Data(), Time: meta.Timestamp})
	}
	return list, batch.Error()
}

func (r *subjectReader) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	_ = r.stream.DeleteConsumer(ctx, r.consumer.CachedInfo().Name) // else it ends when nobody has asked it for a while
}
