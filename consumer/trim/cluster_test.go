package trim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nodes is a cluster of three servers on loopback.
type nodes struct {
	t       *testing.T
	servers []*server.Server
}

// newNodes starts a cluster. Its ports were free a moment ago; when somebody else has taken one, it is tried with others.
func newNodes(t *testing.T) *nodes {
	t.Helper()
	for range 3 {
		n := &nodes{t: t}
		n.make()
		t.Cleanup(n.end)
		if n.start() {
			return n
		}
		n.end()
	}
	t.Fatal("the nodes do not start")
	return nil
}

func (n *nodes) make() {
	n.t.Helper()
	var ports []int
	var routes []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			n.t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, "nats://"+l.Addr().String())
	}
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: -1, NoSigs: true, JetStream: true, StoreDir: n.t.TempDir(),
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}, Routes: server.RoutesFromStr(strings.Join(routes, ",")),
		})
		if err != nil {
			n.t.Fatal(err)
		}
		n.servers = append(n.servers, s)
	}
}

func (n *nodes) start() bool {
	for _, s := range n.servers {
		s.Start()
	}
	for _, s := range n.servers {
		if !s.ReadyForConnections(10 * time.Second) {
			return false
		}
	}
	return true
}

func (n *nodes) end() {
	for _, s := range n.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

func (n *nodes) connect() jetstream.JetStream {
	n.t.Helper()
	var urls []string
	for _, s := range n.servers {
		urls = append(urls, s.ClientURL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		n.t.Fatal(err)
	}
	return js
}

// stop ends the node of that name.
func (n *nodes) stop(name string) {
	for _, s := range n.servers {
		if s.Name() == name {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
}

// With three replicas and the leader stopped in the middle: what was acknowledged to a producer reaches the worker, and what is done goes.
func TestATrimmedStreamLosesNothingWhenItsLeaderStops(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, js: n.connect(), stream: "INTENTS", clock: &clock{}, seen: &seen{}, log: &logText{}}
	r.config = jetstream.StreamConfig{Name: r.stream, Subjects: []string{r.stream + ".>"}, Discard: jetstream.DiscardNew, MaxBytes: 2 * mib, Replicas: 3}
	r.until(func() bool { // until the cluster has a leader
		asked, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := r.js.CreateStream(asked, r.config)
		return err == nil
	})
	c := r.consumer(work, func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second }) // an ack may be lost on the way
	trimmer, err := New(Config{
		JetStream: n.connect(), Lanes: []Lane{{Stream: r.stream, Durable: work}}, Clock: r.clock,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Observer: r.seen.observer(),
	})
	r.check(err)
	running, stop := context.WithCancel(ctx)
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
			n.stop(s.CachedInfo().Cluster.Leader)
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
	stop()
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
