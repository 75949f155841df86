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
	nc, err := nats.Connect(devstacktest.NATS(t).URL(), nats.Timeout(time.Minute))
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
	t.Cleanup(func() { // their bytes are reserved
		for _, s := range streams {
			_ = js.DeleteStream(context.Background(), s.Name)
		}
	})
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

// TestWhatLeavesTogether: the bounds of a batch in messages, in bytes, and in what
// the server takes of one message.
func TestWhatLeavesTogether(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, 8<<20)
	large := func(group []*nats.Msg, at ...int) []*nats.Msg {
		for _, i := range at {
			group[i].Data = make([]byte, 1<<20-200)
		}
		return group
	}
	for name, one := range map[string]struct {
		group []*nats.Msg
		n     int
		batch bool
	}{
		"many":                      {w.group(1500, 10), atomicMax, true},
		"large":                     {w.group(1000, 60_000), atomicBytes / (60_000 + atomicHeaders + 60), true},
		"very large":                {w.group(100, 900_000), 100, false},
		"few":                       {w.group(atomicFrom-1, 10), atomicFrom - 1, false},
		"enough":                    {w.group(atomicFrom, 10), atomicFrom, true},
		"one that leaves no room":   {large(w.group(100, 10), 40), 40, true},
		"it, at the head":           {large(w.group(100, 10), 0), 1, false},
		"it, near the head":         {large(w.group(100, 10), 7), 8, false},
		"two of them":               {large(w.group(100, 10), 7, 12), 13, false},
		"it, at the head of a few":  {large(w.group(atomicFrom, 10), 0), atomicFrom, false},
		"it, at the head of enough": {large(w.group(atomicFrom+1, 10), 0), 1, false},
	} {
		n, batch := w.cut(one.group, true)
		if batch != one.batch || n != one.n && (name != "large" || n < one.n-1 || n > one.n+1) {
			t.Errorf("%s: %d, as a batch: %v; want %d, %v", name, n, batch, one.n, one.batch)
		}
		if n, batch := w.cut(one.group, false); n != len(one.group) || batch {
			t.Errorf("%s, without batches: %d, %v", name, n, batch)
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

// TestTheCourseOfABatch has one line for each rule that no server shows reliably.
func TestTheCourseOfABatch(t *testing.T) {
	t.Parallel()
	refused := func(code jetstream.ErrorCode) answer {
		return answer{refused: &jetstream.APIError{ErrorCode: code}, begun: true}
	}
	gone := answer{unsent: lostInBatch(nats.ErrDisconnected), begun: true}
	away := answer{unsent: notStored(true, "there is no connection", nats.ErrDisconnected)}
	silence := answer{doubt: context.DeadlineExceeded, begun: true}
	for name, one := range map[string]struct {
		unstamped bool
		answers   []answer
		steps     []step
		doubt     bool
	}{
		"no connection":                 {answers: []answer{away}, steps: []step{stepEnd}},
		"lost, and then no connection":  {answers: []answer{gone, away, away, away}, steps: []step{stepAgain, stepAgain, stepAgain, stepEnd}},
		"lost, without an id":           {unstamped: true, answers: []answer{gone}, steps: []step{stepEnd}},
		"silence, without an id":        {unstamped: true, answers: []answer{silence}, steps: []step{stepEnd}, doubt: true},
		"silence, then a repeat":        {answers: []answer{silence, refused(10201)}, steps: []step{stepAgain, stepFind}, doubt: true},
		"a repeat, then silence, again": {answers: []answer{gone, refused(10201)}, steps: []step{stepAgain, stepSingly}},
		"doubt is not forgotten":        {answers: []answer{silence, gone, refused(10176), refused(10201)}, steps: []step{stepAgain, stepAgain, stepAgain, stepFind}, doubt: true},
		"incomplete, twice":             {answers: []answer{refused(10176), gone, refused(10176)}, steps: []step{stepAgain, stepAgain, stepSingly}},
		"crowded":                       {answers: []answer{refused(10210), refused(10167), refused(10158), refused(10210), refused(10210)}, steps: []step{stepPause, stepPause, stepPause, stepPause, stepSingly}},
		"too large for the server":      {answers: []answer{{unsent: refusedToSend(nats.ErrMaxPayload), begun: true}}, steps: []step{stepSingly}},
		"no stream":                     {answers: []answer{{unsent: refusedByServer(nats.ErrNoResponders), begun: true}}, steps: []step{stepSingly}},
		"closed":                        {answers: []answer{{unsent: closedError()}}, steps: []step{stepSingly}},
	} {
		c := course{}
		for i, a := range one.answers {
			if got := c.next(a, !one.unstamped); got != one.steps[i] {
				t.Errorf("%s: step %d is %d, want %d", name, i, got, one.steps[i])
			}
		}
		fates := c.soften([]fate{{err: notStored(true, "full", nil).as(ErrStreamFull)}, {}})
		if (c.doubt != nil) != one.doubt || (fates[0].err.Outcome == Unknown) != one.doubt || fates[1].err != nil {
			t.Errorf("%s: doubt: %v, and a refusal is then %v", name, c.doubt, fates[0].err)
		}
	}
}
