package mark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Copy is the copy of the mark, in a key-value bucket.
type Copy struct {
	js     jetstream.JetStream
	bucket string
}

// NewCopy is the copy in the bucket of that name.
func NewCopy(js jetstream.JetStream, bucket string) *Copy { return &Copy{js: js, bucket: bucket} }

// entry is the copy as it is written.
type entry struct {
	SystemID string    `json:"system_id"`
	Timeline int64     `json:"timeline"`
	Counter  int64     `json:"counter"`
	Time     time.Time `json:"time"`
	Accepted int64     `json:"accepted,omitempty"`
}

// Read returns the copy, nil if there is none. An error says that it is not known.
func (c *Copy) Read(ctx context.Context) (*payments.Mark, error) {
	m, _, err := c.read(ctx)
	return m, err
}

func (c *Copy) open(ctx context.Context) (jetstream.KeyValue, error) {
	return c.js.KeyValue(ctx, c.bucket)
}

func (c *Copy) read(ctx context.Context) (*payments.Mark, uint64, error) {
	kv, err := c.open(ctx)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	found, err := kv.Get(ctx, schema.KeyMark)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	var e entry
	if err := json.Unmarshal(found.Value(), &e); err != nil || e.SystemID == "" {
		return nil, 0, fmt.Errorf("the copy of the mark in the bucket %s cannot be read: somebody else has written to it", c.bucket)
	}
	return &payments.Mark{SystemID: e.SystemID, Timeline: e.Timeline, Counter: e.Counter, At: e.Time, Accepted: e.Accepted}, found.Revision(), nil
}

// Put writes a mark, never over one that has come further. It returns the copy as it is then.
func (c *Copy) Put(ctx context.Context, m payments.Mark) (*payments.Mark, error) {
	return c.write(ctx, nil, func(there *payments.Mark) *payments.Mark {
		switch {
		case there == nil, there.Accepted < m.Accepted: // the bucket itself was restored from a backup
			return &m
		case there.Accepted > m.Accepted, there.SystemID != m.SystemID, there.Timeline != m.Timeline, there.Counter >= m.Counter:
			return nil
		}
		return &m
	})
}

// Accept writes a mark that the database is to have from now on, and that is further than any: its counter is higher than m's and the copy's. It
// counts for everybody, also for those who remember a copy that is gone. m.At is the time of now, by PostgreSQL's clock.
func (c *Copy) Accept(ctx context.Context, m payments.Mark) (*payments.Mark, error) {
	return c.AcceptWhile(ctx, m, nil)
}

// AcceptWhile is Accept by somebody who may have lost the right to it: still is asked after the copy was read, and a copy that was written since is
// not written over before it was asked again. Its error is returned as it is.
func (c *Copy) AcceptWhile(ctx context.Context, m payments.Mark, still func() error) (*payments.Mark, error) {
	return c.write(ctx, still, func(there *payments.Mark) *payments.Mark {
		next := m
		next.Counter, next.Accepted = next.Counter+1, m.At.UnixMicro()
		if there != nil {
			next.Counter, next.Accepted = max(next.Counter, there.Counter+1), max(next.Accepted, there.Accepted+1)
		}
		return &next
	})
}

// writesMax is how often a write begins anew because somebody else has written meanwhile.
const writesMax = 20

// write puts what change makes of the copy, nil: it stays. still, when set, is asked between reading and writing.
func (c *Copy) write(ctx context.Context, still func() error, change func(*payments.Mark) *payments.Mark) (*payments.Mark, error) {
	kv, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	for range writesMax {
		there, revision, err := c.read(ctx)
		if err != nil {
			return nil, err
		}
		next := change(there)
		if next == nil {
			return there, nil
		}
		if still != nil {
			if err := still(); err != nil {
				return nil, err
			}
		}
		data, err := json.Marshal(entry{next.SystemID, next.Timeline, next.Counter, next.At, next.Accepted})
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			_, err = kv.Create(ctx, schema.KeyMark, data)
		} else {
			_, err = kv.Update(ctx, schema.KeyMark, data, revision)
		}
		if err == nil {
			return next, nil
		}
		var api *jetstream.APIError
		if !errors.Is(err, jetstream.ErrKeyExists) && !(errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence) {
			return nil, err
		}
	}
	return nil, errors.New("the copy of the mark is written by too many at once")
}
