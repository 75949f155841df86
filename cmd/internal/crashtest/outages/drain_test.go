package outages

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// holdup is JetStream with hands: messages beyond the first so many are pulled and then kept from the worker, until they are let go one by one.
type holdup struct {
	jetstream.JetStream
	free uint64 // messages up to this sequence pass
	let  chan struct{}

	mu   sync.Mutex
	held int
}

func (h *holdup) holding() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Stream wraps what the worker gets, down to the message.
func (h *holdup) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := h.JetStream.Stream(ctx, name)
	return heldStream{s, h}, err
}

type heldStream struct {
	jetstream.Stream
	h *holdup
}

func (s heldStream) Consumer(ctx context.Context, name string) (jetstream.Consumer, error) {
	c, err := s.Stream.Consumer(ctx, name)
	return heldConsumer{c, s.h}, err
}

type heldConsumer struct {
	jetstream.Consumer
	h *holdup
}

func (c heldConsumer) Fetch(n int, options ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	b, err := c.Consumer.Fetch(n, options...)
	if err != nil {
		return nil, err
	}
	out := make(chan jetstream.Msg)
	go func() {
		defer close(out)
		for m := range b.Messages() {
			out <- heldMsg{m, c.h}
		}
	}()
	return heldBatch{b, out}, nil
}

type heldBatch struct {
	jetstream.MessageBatch
	out chan jetstream.Msg
}

func (b heldBatch) Messages() <-chan jetstream.Msg { return b.out }

type heldMsg struct {
	jetstream.Msg
	h *holdup
}

// Metadata is the first thing that a worker asks of a message.
func (m heldMsg) Metadata() (*jetstream.MsgMetadata, error) {
	meta, err := m.Msg.Metadata()
	if err == nil && meta.Sequence.Stream > m.h.free {
		m.h.mu.Lock()
		m.h.held++
		m.h.mu.Unlock()
		<-m.h.let
	}
	return meta, err
}

// TestDrain tells a worker to stop while Stripe answers slowly. What Stripe is working on is recorded before Run returns; what was pulled and
// not started is stored for somebody else and acked; nobody owns anything afterwards.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.Unhurried)
	if err := w.Sim.SetLimits(stripesim.Limits{LatencyMS: 700}); err != nil {
		t.Fatal(err)
	}
	const started, waiting = 20, 20
	hands := &holdup{free: started, let: make(chan struct{})}
	v := w.Start(world.WorkerOptions{Name: "stopping", JetStream: func(js jetstream.JetStream) jetstream.JetStream {
		hands.JetStream = js
		return hands
	}})
	before := w.Sim.Summary().Requests
	w.PublishMany("order", started+waiting)
	if err := w.Sim.WaitRequests(t.Context(), before+started); err != nil {
		t.Fatal(err)
	}
	w.Await("the pulled messages", func() (bool, string) { return hands.holding() == waiting, "not yet" })

	ended := make(chan error, 1)
	go func() { ended <- v.Stop() }()
	// The first that is let go may still be in time to be claimed; the others cannot be.
	hands.let <- struct{}{}
	w.Await("the first of them", func() (bool, string) {
		counts, err := w.Store.CountByStatus(t.Context(), world.Tenant)
		n := 0
		for _, c := range counts {
			n += c
		}
		return err == nil && n == started+1, "not stored"
	})
	close(hands.let)
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}

	counts, err := w.Store.CountByStatus(t.Context(), world.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	done, stored := counts[payments.StatusSucceeded], counts[payments.StatusReceived]
	if done < started || done > started+1 || done+stored != started+waiting {
		t.Errorf("after the drain: %v, want %d succeeded and the others received", counts, started)
	}
	if posts := w.Sim.Summary().Posts; posts != done {
		t.Errorf("%d requests at Stripe for %d recorded outcomes", posts, done)
	}
	if n := ownedTickets(w); n != 0 {
		t.Errorf("%d tickets have an owner, and there is none", n)
	}
	w.Await("the acks", func() (bool, string) { return w.Drained(t.Context()) }) // no worker is there to take them again
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.MustBeGood(0)
}

// ownedTickets counts the tickets that hold a token.
func ownedTickets(w *world.World) (n int) {
	w.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DSN)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM queue WHERE token IS NOT NULL").Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}
