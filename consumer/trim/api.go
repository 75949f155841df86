package trim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// requestTimeout bounds one question. What is asked while a stream or a consumer has no leader is never answered, and a new leader is there within
// a second or two: it is better asked again than waited for.
const requestTimeout = 2 * time.Second

// api asks JetStream. The client library hides what is needed here: which consumers of a list did not answer, how many messages a purge took,
// and reading by time from a stream whose direct reads are off.
type api struct {
	prefix  string
	request func(ctx context.Context, subject string, body []byte) ([]byte, error)
}

func newAPI(js jetstream.JetStream) *api {
	conn := js.Conn()
	a := &api{prefix: jetstream.DefaultAPIPrefix, request: func(ctx context.Context, subject string, body []byte) ([]byte, error) {
		msg, err := conn.RequestWithContext(ctx, subject, body)
		if err != nil {
			return nil, err
		}
		return msg.Data, nil
	}}
	switch o := js.Options(); {
	case o.APIPrefix != "":
		a.prefix = strings.TrimSuffix(o.APIPrefix, ".") + "."
	case o.Domain != "":
		a.prefix = "$JS." + o.Domain + ".API."
	}
	return a
}

// call asks one question and reads the answer into out, which must embed answer.
func (a *api) call(ctx context.Context, subject string, question any, out interface{ refusal() error }) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body []byte
	if question != nil {
		var err error
		if body, err = json.Marshal(question); err != nil {
			return err
		}
	}
	data, err := a.request(ctx, a.prefix+subject, body)
	if err == nil {
		if err = json.Unmarshal(data, out); err == nil {
			err = out.refusal()
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		err = fmt.Errorf("JetStream does not answer, or this user may not ask: %w", err)
	}
	return fmt.Errorf("%s: %w", subject, err)
}

// answer is what all answers have in common.
type answer struct {
	Error *jetstream.APIError `json:"error"`
}

func (a *answer) refusal() error {
	if a.Error == nil {
		return nil
	}
	return a.Error
}

// streamState is a stream at one moment.
type streamState struct {
	created             time.Time
	maxBytes            int64 // 0 or less: no limit
	bytes, messages     uint64
	first, last         uint64
	firstTime, lastTime time.Time
}

// stream wraps jetstream.ErrStreamNotFound if there is none.
func (a *api) stream(ctx context.Context, name string) (streamState, error) {
	var out struct {
		answer
		Created time.Time `json:"created"`
		Config  struct {
			MaxBytes int64 `json:"max_bytes"`
		} `json:"config"`
		State struct {
			Messages  uint64    `json:"messages"`
			Bytes     uint64    `json:"bytes"`
			First     uint64    `json:"first_seq"`
			Last      uint64    `json:"last_seq"`
			FirstTime time.Time `json:"first_ts"`
			LastTime  time.Time `json:"last_ts"`
		} `json:"state"`
	}
	if err := a.call(ctx, "STREAM.INFO."+name, nil, &out); err != nil {
		return streamState{}, err
	}
	s := out.State
	return streamState{
		created: out.Created, maxBytes: out.Config.MaxBytes, bytes: s.Bytes, messages: s.Messages,
		first: s.First, last: s.Last, firstTime: s.FirstTime, lastTime: s.LastTime,
	}, nil
}

// position asks for the first message at or after a sequence or a time, whose subject matches.
type position struct {
	Sequence uint64     `json:"seq,omitempty"`
	Since    *time.Time `json:"start_time,omitempty"`
	Subject  string     `json:"next_by_subj"`
	NoHeader bool       `json:"no_hdr"`
}

// anySubject matches every subject.
const anySubject = ">"

// next returns the sequence and time of the first message at p, and false if there is none. The server also says that there is none when it
// cannot read its store, so nothing may be concluded from that alone.
func (a *api) next(ctx context.Context, stream string, p position) (sequence uint64, at time.Time, found bool, err error) {
	var out struct {
		answer
		Message struct {
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	p.NoHeader = true
	err = a.call(ctx, "STREAM.MSG.GET."+stream, p, &out)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, time.Time{}, false, nil
	case err != nil:
		return 0, time.Time{}, false, err
	}
	return out.Message.Sequence, out.Message.Time, true, nil
}

// purge removes all messages below the sequence to and returns how many there were.
func (a *api) purge(ctx context.Context, stream string, to uint64) (uint64, error) {
	if to == 0 {
		return 0, errors.New("a purge up to sequence 0 would empty the stream") // JetStream takes 0 for no bound
	}
	var out struct {
		answer
		Success bool   `json:"success"`
		Purged  uint64 `json:"purged"`
	}
	err := a.call(ctx, "STREAM.PURGE."+stream, struct {
		Sequence uint64 `json:"seq"`
	}{to}, &out)
	if err == nil && !out.Success {
		err = fmt.Errorf("STREAM.PURGE.%s: it did not succeed", stream)
	}
	return out.Purged, err
}
