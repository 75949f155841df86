package chaos

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Link is a TCP proxy on 127.0.0.1 that fails on command. Its methods may be called from any goroutine.
type Link struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup
	faults   atomic.Int64 // connections that it cut

	mu     sync.Mutex
	state  linkState
	change chan struct{} // closed when state changes
	closed bool
	pairs  map[*pair]struct{}
}

// linkState is what a link does to what passes.
type linkState struct {
	cut   bool
	stall bool
	delay time.Duration
	// snip: the next chunk of a client that contains it reaches the server, whose answer never arrives. nil: none.
	snip []byte
	// left is how many bytes servers may still answer before the connection that brings the last of them is cut. 0: unlimited.
	left int
}

type pair struct{ client, server *net.TCPConn }

// NewLink starts a link to target ("host:port") that lets everything pass.
func NewLink(target string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{target: target, listener: listener, change: make(chan struct{}), pairs: map[*pair]struct{}{}}
	l.wg.Go(l.accept)
	return l, nil
}

// Addr is where clients connect.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Faults counts the connections that the link has cut.
func (l *Link) Faults() int { return int(l.faults.Load()) }

// set changes the state, and wakes whoever waits for that.
func (l *Link) set(change func(*linkState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
	close(l.change)
	l.change = make(chan struct{})
	if l.state.cut {
		for one := range l.pairs {
			l.reset(one)
		}
	}
}

// Cut resets every connection, and every new one until Heal.
func (l *Link) Cut() { l.set(func(s *linkState) { s.cut = true }) }

// Stall keeps all bytes back, in both directions, until Heal; connections stand.
func (l *Link) Stall() { l.set(func(s *linkState) { s.stall = true }) }

// Slow delays every chunk, until Heal.
func (l *Link) Slow(by time.Duration) { l.set(func(s *linkState) { s.delay = by }) }

// Snip lets the next chunk of a client that contains the pattern reach the server, and cuts the client off: the server acts, its answer never
// arrives. It holds for one chunk, or until Heal.
func (l *Link) Snip(pattern []byte) { l.set(func(s *linkState) { s.snip = pattern }) }

// CutAfter cuts the connection over which the n-th byte of an answer comes, counted from now. It holds for one connection, or until Heal.
func (l *Link) CutAfter(n int) { l.set(func(s *linkState) { s.left = n }) }

// Heal lets everything pass again.
func (l *Link) Heal() { l.set(func(s *linkState) { *s = linkState{} }) }

// Close ends the link and every connection over it.
func (l *Link) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.state = linkState{cut: true}
	close(l.change)
	for one := range l.pairs {
		l.reset(one)
	}
	l.mu.Unlock()
	l.listener.Close()
	l.wg.Wait()
}

func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.serve(conn.(*net.TCPConn)) })
	}
}

func (l *Link) serve(client *net.TCPConn) {
	var dialer net.Dialer
	dialer.Timeout = 5 * time.Second
	conn, err := dialer.Dial("tcp", l.target)
	if err != nil {
		abort(client)
		return
	}
	one := &pair{client: client, server: conn.(*net.TCPConn)}
	l.mu.Lock()
	refused := l.state.cut || l.closed
	if !refused {
		l.pairs[one] = struct{}{}
	}
	l.mu.Unlock()
	if refused {
		l.reset(one)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(one, one.server, one.client, l.answering) })
	l.carry(one, one.client, one.server, l.asking)
	both.Wait()
	l.mu.Lock()
	delete(l.pairs, one)
	l.mu.Unlock()
	client.Close()
	conn.Close()
}

// fate is what becomes of a chunk.
type fate int

const (
	pass     fate = iota
	passMute      // it reaches the server, and nothing comes back any more
	cutHere       // so many bytes of it arrive, and the connection is cut
)

// asking decides about a client's chunk.
func (l *Link) asking(chunk []byte) (fate, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.snip != nil && bytes.Contains(chunk, l.state.snip) {
		l.state.snip = nil
		return passMute, len(chunk)
	}
	return pass, len(chunk)
}

// answering decides about a server's chunk.
func (l *Link) answering(chunk []byte) (fate, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.left == 0 {
		return pass, len(chunk)
	}
	if l.state.left > len(chunk) {
		l.state.left -= len(chunk)
		return pass, len(chunk)
	}
	n := l.state.left
	l.state.left = 0
	return cutHere, n
}

// carry moves one direction's bytes until it ends.
func (l *Link) carry(one *pair, from, to *net.TCPConn, decide func([]byte) (fate, int)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && l.wait() {
			what, n := decide(buf[:n])
			if what == passMute {
				// The client goes first, so that no answer can overtake the cut. The server's side is only half closed: a reset could make it drop
				// the chunk.
				l.faults.Add(1)
				abort(one.client)
				_, _ = to.Write(buf[:n])
				_ = to.CloseWrite()
				return
			}
			if _, failed := to.Write(buf[:n]); failed != nil && what == pass {
				// Whoever still sends is heard out, so that the sender is never reset for what nobody took.
				discard(from, buf)
				return
			}
			if what == cutHere {
				l.reset(one)
				return
			}
		}
		if err != nil {
			_ = to.CloseWrite()
			return
		}
	}
}

func discard(from *net.TCPConn, buf []byte) {
	for {
		if _, err := from.Read(buf); err != nil {
			return
		}
	}
}

// wait holds a chunk back for as long as the link is slow or stalled; false when it is cut.
func (l *Link) wait() bool {
	l.mu.Lock()
	state, change := l.state, l.change
	l.mu.Unlock()
	if state.delay > 0 && !state.cut {
		timer := time.NewTimer(state.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-change:
		}
		l.mu.Lock()
		state, change = l.state, l.change
		l.mu.Unlock()
	}
	for state.stall && !state.cut {
		<-change
		l.mu.Lock()
		state, change = l.state, l.change
		l.mu.Unlock()
	}
	return !state.cut
}

func (l *Link) reset(one *pair) {
	l.faults.Add(1)
	abort(one.client)
	abort(one.server)
}

// abort closes with RST instead of FIN: the peer's next read fails at once.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}
