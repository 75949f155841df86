package chaos_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
)

// patience is how long anything may take on a busy machine; moment is how long nothing must happen.
const (
	patience = 2 * time.Minute
	moment   = 200 * time.Millisecond
)

// echo is a server that answers with what it is sent, and remembers it.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	heard    bytes.Buffer
	more     chan struct{}
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener, more: make(chan struct{}, 1000)}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, io.TeeReader(conn, e))
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); conns.Wait() })
	return e
}

func (e *echo) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.more <- struct{}{} }()
	return e.heard.Write(p)
}

// await waits until the server has heard so much.
func (e *echo) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		e.mu.Lock()
		heard := e.heard.String()
		e.mu.Unlock()
		if heard == want {
			return
		}
		select {
		case <-e.more:
		case <-deadline:
			t.Fatalf("the server heard %q, want %q", heard, want)
		}
	}
}

// linked is a link to an echo. It is closed before the server is.
func linked(t *testing.T) (*chaos.Link, *echo) {
	t.Helper()
	e := newEcho(t)
	l, err := chaos.NewLink(e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, e
}

func dial(t *testing.T, l *chaos.Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

// isCut wants the end of a connection, and nothing before it.
func isCut(t *testing.T, conn net.Conn) {
	t.Helper()
	n, err := conn.Read(make([]byte, 100))
	if n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v: want the connection's end", n, err)
	}
}

func talks(t *testing.T, conn net.Conn) {
	t.Helper()
	say(t, conn, "hello")
	hear(t, conn, "hello")
}

func TestLinkPassesAndEnds(t *testing.T) {
	t.Parallel()
	l, _ := linked(t)
	conn := dial(t, l)
	talks(t, conn)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end that the server made", err)
	}
	other := dial(t, l)
	talks(t, other)
	l.Close()
	isCut(t, other)
}

func TestLinkCut(t *testing.T) {
	t.Parallel()
	l, _ := linked(t)
	conn := dial(t, l)
	talks(t, conn)
	l.Cut()
	isCut(t, conn)
	if refused, err := net.Dial("tcp", l.Addr()); err == nil { // the reset may also overtake the end of the handshake
		defer refused.Close()
		_ = refused.SetDeadline(time.Now().Add(patience))
		isCut(t, refused)
	}
	l.Heal()
	talks(t, dial(t, l))
	if l.Faults() < 2 {
		t.Errorf("%d connections were cut", l.Faults())
	}
}

func TestLinkStalls(t *testing.T) {
	t.Parallel()
	l, _ := linked(t)
	conn := dial(t, l)
	talks(t, conn)
	l.Stall()
	say(t, conn, "hello")
	_ = conn.SetReadDeadline(time.Now().Add(moment))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v over a stalled link", n, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	l.Heal()
	hear(t, conn, "hello")
	l.Stall()
	say(t, conn, "lost")
	l.Cut() // what was held back is lost
	isCut(t, conn)
}

func TestLinkIsSlow(t *testing.T) {
	t.Parallel()
	l, _ := linked(t)
	conn := dial(t, l)
	talks(t, conn)
	l.Slow(moment)
	began := time.Now()
	talks(t, conn)
	if took := time.Since(began); took < 2*moment { // to the server and back
		t.Errorf("it took %s, want twice %s", took, moment)
	}
	l.Slow(time.Hour)
	say(t, conn, "hello")
	l.Heal() // what is late comes at once
	hear(t, conn, "hello")
}

// What is snipped arrives, its answer does not, and other connections and later requests pass.
func TestLinkSnips(t *testing.T) {
	t.Parallel()
	l, e := linked(t)
	conn, other := dial(t, l), dial(t, l)
	l.Snip([]byte("COMMIT"))
	talks(t, conn)
	say(t, conn, "COMMIT")
	isCut(t, conn)
	e.await(t, "helloCOMMIT")
	say(t, other, "COMMIT")
	hear(t, other, "COMMIT")
}

// The answer breaks off at the byte that was named, wherever that is.
func TestLinkCutsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 7, 10} {
		l, e := linked(t)
		conn := dial(t, l)
		l.CutAfter(n)
		heard := 0
		if n > 5 {
			talks(t, conn)
			heard = 5
		}
		say(t, conn, "hello")
		got, err := io.ReadAll(conn)
		if err != nil && len(got) == 0 && n != heard { // a reset may overtake what was written just before it
			e.await(t, "hello"+map[bool]string{true: "hello"}[heard > 0])
		}
		if len(got) > n-heard {
			t.Errorf("%d bytes more were heard, at most %d should be", len(got), n-heard)
		}
		talks(t, dial(t, l))
	}
}
