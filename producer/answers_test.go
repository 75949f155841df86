package producer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// workbench is a lane's sender on a stream of its own.
type workbench struct {
	*groupSender
	publisher *Publisher
	js        jetstream.JetStream
	stream    string
	subject   string
}

func newWorkbench(t *testing.T, maxBytes int64) workbench {
	t.Helper()
	nc, err := nats.Connect(devstacktest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	subjects := schema.Subjects{Prefix: devstacktest.Prefix(t)}
	settings := schema.DefaultSettings()
	settings.StreamMaxBytes = maxBytes
	streams := subjects.Streams(settings)
	for i := range streams {
		streams[i].DuplicateWindow = time.Minute
	}
	if err := provision.Ensure(t.Context(), js, streams, nil); err != nil {
		t.Fatal(err)
	}
	p, err := New(nc, subjects, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	subject, err := subjects.Intent("acme")
	if err != nil {
		t.Fatal(err)
	}
	return workbench{groupSender: p.interactive.sender, publisher: p, js: js, stream: subjects.StreamIntents(), subject: subject}
}

func (w workbench) group(n, size int) []*nats.Msg {
	out := make([]*nats.Msg, n)
	for i := range out {
		out[i] = nats.NewMsg(w.subject)
		out[i].Data = fmt.Appendf(nil, "%*d", size, i)
		out[i].Header.Set(jetstream.ExpectedStreamHeader, w.stream)
	}
	return out
}

func (w workbench) wantRefused(t *testing.T, a answer, code jetstream.ErrorCode) {
	t.Helper()
	if a.refused == nil || a.refused.ErrorCode != code {
		t.Fatalf("%+v; want %d", a, code)
	}
}

// TestTheServersOwnAnswers provokes what a server says to a batch, so that a version
// that says something else is noticed here.
func TestTheServersOwnAnswers(t *testing.T) {
	t.Parallel()
	t.Run("10201 to a repeat, and where it stands", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		group := w.group(40, 10)
		id := w.mark(group)
		if a := w.attempt(t.Context(), group); a.stored == nil || a.stored.Sequence != 40 {
			t.Fatalf("%+v", a)
		}
		w.wantRefused(t, w.attempt(t.Context(), group), codeAtomicDuplicate)
		first, _, err := w.find(t.Context(), group, id)
		if err != nil || first.stream != w.stream || first.sequence != 1 {
			t.Errorf("found at %+v, %v", first, err)
		}
		if _, forgotten, err := w.find(t.Context(), group, "another"); !forgotten || err == nil {
			t.Errorf("another id: forgotten: %v, %v", forgotten, err)
		}
		s, err := w.js.Stream(t.Context(), w.stream)
		if err != nil || s.CachedInfo().State.Msgs != 40 {
			t.Errorf("%d messages, %v: a question was stored", s.CachedInfo().State.Msgs, err)
		}
	})
	t.Run("10176 without its beginning", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		batch, err := jetstreamext.NewBatchPublisher(w.js, jetstreamext.BatchFlowControl{AckFirst: false})
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := w.group(1, 10)[0]
		elsewhere.Subject = "nobody." + w.subject
		if err := batch.AddMsg(elsewhere); err != nil {
			t.Fatal(err)
		}
		_, err = batch.CommitMsg(t.Context(), w.group(1, 10)[0])
		w.inbox.begin()
		w.wantRefused(t, w.uncommitted(err), codeAtomicIncomplete)
	})
	t.Run("10210 to the first message", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		for range 50 {
			b, err := jetstreamext.NewBatchPublisher(w.js)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Add(w.subject, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.wantRefused(t, w.attempt(t.Context(), w.group(30, 10)), codeAtomicTooMany)
	})
	t.Run("10077 for want of room", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 1<<20)
		a := w.attempt(t.Context(), w.group(100, 20_000))
		w.wantRefused(t, a, codeStoreFailed)
		if e := refusedByStream(a.refused); e.kind != ErrStreamFull || e.Outcome != NotStored {
			t.Errorf("%+v", e)
		}
	})
	t.Run("10199 to more than it takes", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		w.wantRefused(t, w.attempt(t.Context(), w.group(atomicMax+1, 10)), codeAtomicTooLarge)
		w.wantStored(t, w.group(atomicMax, 10))
	})
	t.Run("10060 to a batch for another stream", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		group := w.group(30, 10)
		group[17].Header.Set(jetstream.ExpectedStreamHeader, "OTHER")
		w.wantRefused(t, w.attempt(t.Context(), group), codeOtherStream)
		fates := w.send(t.Context(), group)
		for i, f := range fates {
			if (f.err == nil) == (i == 17) {
				t.Errorf("message %d: %+v", i, f)
			}
		}
	})
	t.Run("nothing, where there is no stream", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, 8<<20)
		if err := w.js.DeleteStream(t.Context(), w.stream); err != nil {
			t.Fatal(err)
		}
		if a := w.attempt(t.Context(), w.group(30, 10)); a.unsent == nil || a.unsent.kind != errNoStream {
			t.Errorf("%+v", a)
		}
	})
}

func (w workbench) wantStored(t *testing.T, group []*nats.Msg) {
	t.Helper()
	for i, f := range w.send(t.Context(), group) {
		if f.err != nil {
			t.Fatalf("message %d: %v", i, f.err)
		}
	}
}

// TestABatchLeavesNoTrace: messages that were refused as a batch go out as they came.
func TestABatchLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, 8<<20)
	group := w.group(25, 10)
	group[3].Header = nil // the batch publisher of the library panics on it elsewhere
	w.wantStored(t, group)
	for i, m := range group {
		if m.Reply != "" || len(m.Header) > 1 {
			t.Errorf("message %d: %q %v", i, m.Reply, m.Header)
		}
	}
}

// TestALaneSurvivesAPanic: its callers are told that nobody knows, and the next are served.
func TestALaneSurvivesAPanic(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, 8<<20)
	group := w.group(2, 10)
	group[1] = nil
	for _, f := range w.publisher.interactive.do(context.Background(), group) {
		if f.err == nil || f.err.Outcome != Unknown {
			t.Errorf("%+v", f)
		}
	}
	if r, err := w.publisher.Publish(t.Context(), Message{Intent: payments.Intent{
		TenantID: "acme", IdempotencyKey: "k", Amount: 100, Currency: "usd", PaymentMethod: "pm_card_visa",
	}}); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
