package trim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// anyNode is a connection that goes on with whichever nodes are there.
func anyNode(t *testing.T, nodes []*devstacktest.Node) jetstream.JetStream {
	t.Helper()
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.ClientURL)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// stop ends the node of that name.
func stop(t *testing.T, nodes []*devstacktest.Node, name string) {
	t.Helper()
	i := slices.IndexFunc(nodes, func(n *devstacktest.Node) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("no node is called %q", name)
	}
	if err := nodes[i].Stop(); err != nil {
		t.Fatal(err)
	}
}

// With three replicas and the leader stopped in the middle: what was acknowledged to a producer reaches the worker, and what is done goes.
func TestATrimmedStreamLosesNothingWhenItsLeaderStops(t *testing.T) {
	t.Parallel()
	nodes := devstacktest.Cluster(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, js: anyNode(t, nodes), stream: "INTENTS", clock: &clock{}, seen: &seen{}, log: &logText{}}
	r.config = jetstream.StreamConfig{Name: r.stream, Subjects: []string{r.stream + ".>"}, Discard: jetstream.DiscardNew, MaxBytes: 2 * mib, Replicas: 3}
	r.until(func() bool { // until the cluster has a leader
		asked, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := r.js.CreateStream(asked, r.config)
		return err == nil
	})
	c := r.consumer(work, func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second }) // an ack may be lost on the way
	trimmer, err := New(Config{
		JetStream: anyNode(t, nodes), Lanes: []Lane{{Stream: r.stream, Durable: work}}, Clock: r.clock,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Observer: r.seen.observer(),
	})
	r.check(err)
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- trimmer.Run(running) }()

	var mu sync.Mutex
	given := map[string]bool{}
	run, err := c.Consume(func(msg jetstream.Msg) {
		mu.Lock()
		given[msg.Headers().Get("n")] = true
		mu.Unlock()
		_ = msg.Ack() // a lost one brings the message back
	}, jetstream.PullExpiry(2*time.Second), jetstream.PullHeartbeat(500*time.Millisecond)) // a leader that stops is noticed
	r.check(err)

	const total = 1500 // three times what the stream holds
	var accepted []string
	for i := range total {
		if i == total/2 {
			s, err := r.js.Stream(ctx, r.stream)
			r.check(err)
			stop(t, nodes, s.CachedInfo().Cluster.Leader)
		}
		msg := nats.NewMsg(r.stream + ".x")
		msg.Data = make([]byte, 4000)
		msg.Header.Set("n", strconv.Itoa(i))
		r.until(func() bool { // while there is no leader it is published again
			asked, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := r.js.PublishMsg(asked, msg)
			return err == nil
		})
		accepted = append(accepted, strconv.Itoa(i))
	}
	r.until(func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, one := range accepted {
			if !given[one] {
				return false
			}
		}
		return true
	})
	run.Stop()
	<-run.Closed()
	r.until(func() bool {
		s, err := r.js.Stream(ctx, r.stream)
		return err == nil && s.CachedInfo().State.Bytes <= 2*mib*highPercent/100
	})
	end()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if r.seen.trimmed() < total/3 {
		t.Errorf("%d messages were trimmed of %d", r.seen.trimmed(), total)
	}
	for _, why := range []Why{HeldNoDurable, HeldRemade, HeldAhead, HeldConsumer} {
		if r.seen.heldBy(why) > 0 {
			t.Errorf("held by %s: %s", why, r.log.text.String())
		}
	}
}
