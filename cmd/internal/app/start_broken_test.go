package app

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// through is the setting with another address in it.
func through(t *testing.T, setting, addr string) string {
	t.Helper()
	u, err := url.Parse(setting)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

// startBroken starts a worker whose n-th chunk of bytes to what the setting names is its connection's last, and returns once it works: whether that
// happened, and why it ended by itself.
func (w *world) startBroken(t *testing.T, setting string, n int64, last devstacktest.Action) (broken bool, ended error) {
	t.Helper()
	own := &world{t: t, values: maps.Clone(w.values)}
	proxy := devstacktest.NewProxy(t, own.values[setting])
	own.values[setting] = through(t, own.values[setting], proxy.Addr())
	var chunks atomic.Int64
	proxy.OnClientData(func([]byte) devstacktest.Action {
		if chunks.Add(1) == n {
			return last
		}
		return devstacktest.Forward
	})
	p := own.start()
	select {
	case <-p.ready:
		broken = chunks.Load() >= n
		p.stop()
		<-p.served
	case ended = <-p.served:
		broken = true
	case <-time.After(patience):
		p.stop()
		<-p.served
		ended = fmt.Errorf("it does not get ready\n%s", own.log.String())
		broken = true
	}
	return broken, ended
}

// TestStartOverBrokenConnections breaks the connections of a starting worker at each step of its start, before or after what it asks has arrived. It
// waits and goes on, every time: nothing of that is a refusal. The bucket of the database's mark is among what it asks NATS for.
func TestStartOverBrokenConnections(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{})
	for _, setting := range []string{"ONCEPAY_DATABASE_URL", "ONCEPAY_NATS_URL"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sim)
			w.values["ONCEPAY_ROLES"], w.values["ONCEPAY_HTTP_ADDR"], w.values["ONCEPAY_ADMIN_ADDR"] = RoleWorker+","+RoleRelay, "off", "off"
			var broken, done atomic.Int64
			var starting sync.WaitGroup
			room := make(chan struct{}, 6)
			for n := int64(1); done.Load() == 0 && n < 200; n++ {
				for _, last := range []devstacktest.Action{devstacktest.Cut, devstacktest.ForwardThenCut} {
					room <- struct{}{}
					starting.Go(func() {
						defer func() { <-room }()
						hit, err := w.startBroken(t, setting, n, last)
						switch {
						case err != nil:
							t.Errorf("cut at its chunk %d (%v), a starting worker ended: %v", n, last, err)
						case hit:
							broken.Add(1)
						default:
							done.Add(1)
						}
					})
				}
			}
			starting.Wait()
			t.Logf("%d starts were broken", broken.Load())
			if broken.Load() < 10 {
				t.Errorf("only %d starts were broken", broken.Load())
			}
		})
	}
}

// TestStartWaitsForAnAnswer: a starting worker that is connected to PostgreSQL, and is never answered, waits; when that connection breaks it makes another.
func TestStartWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	sim, _ := simulator(t, stripesim.Options{})
	w := newWorld(t, sim)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dsn := w.values["ONCEPAY_DATABASE_URL"]
	proxy := devstacktest.NewProxy(t, dsn)
	w.values["ONCEPAY_DATABASE_URL"] = through(t, dsn, listener.Addr().String()) + "&connect_timeout=2"
	p := w.start()
	var silent []net.Conn
	for range 2 { // the second comes when the first has been silent for the time that the URL allows
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	select {
	case err := <-p.served:
		t.Fatalf("it ended: %v", err)
	case <-p.ready:
		t.Fatal("it is ready without an answer")
	default:
	}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { relay(t.Context(), c, proxy.Addr()) })
		}
	})
	for _, c := range silent {
		c.Close()
	}
	p.waitReady(t)
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	listener.Close()
	relays.Wait()
}

// relay carries a connection to an address, until either side ends.
func relay(ctx context.Context, from net.Conn, addr string) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer to.Close()
	copied := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				_, _ = to.Write(buf[:n])
			}
			if err != nil {
				break
			}
		}
		copied <- struct{}{}
	}
	go carry(to, from)
	go carry(from, to)
	<-copied
}
