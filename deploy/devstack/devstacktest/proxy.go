package devstacktest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Action says what a Proxy does with a chunk of bytes from a client.
type Action int

const (
	// Forward hands the chunk to the server.
	Forward Action = iota
	// ForwardThenCut hands the chunk to the server, which also sees the end of the
	// connection after it, and cuts the client off: the server acts, its answer
	// never arrives.
	ForwardThenCut
	// Cut cuts both sides; the server never sees the chunk.
	Cut
)

// Proxy is a TCP proxy on 127.0.0.1 that can fail on command.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	hook   func([]byte) Action
	cut    bool
	closed bool
	pairs  map[*pair]struct{}
}

// pair is one proxied connection.
type pair struct{ client, server *net.TCPConn }

// NewProxy starts a proxy to target ("host:port", or a URL with one). It ends with
// the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	if _, rest, ok := strings.Cut(target, "://"); ok {
		rest, _, _ = strings.Cut(rest, "/")
		target = rest[strings.LastIndex(rest, "@")+1:]
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("devstacktest: proxy: %v", err)
	}
	p := &Proxy{target: target, listener: listener, pairs: map[*pair]struct{}{}}
	p.wg.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr is the proxy's "host:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// OnClientData sets what is asked about every chunk that a client sends, nil for
// Forward always. Chunks are what one read returned: a protocol message may be
// part of one or spread over two. The hook may be called from several connections
// at once.
func (p *Proxy) OnClientData(hook func(chunk []byte) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// Cut resets every connection and every new one, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for one := range p.pairs {
		one.reset()
	}
}

// Heal lets new connections through again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// close ends everything and waits for it.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	for one := range p.pairs {
		one.reset()
	}
	p.mu.Unlock()
	p.listener.Close()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(conn.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	if p.refuses() {
		reset(client)
		return
	}
	conn, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	one := &pair{client: client, server: conn.(*net.TCPConn)}
	p.mu.Lock()
	refused := p.cut || p.closed
	if !refused {
		p.pairs[one] = struct{}{}
	}
	p.mu.Unlock()
	if refused {
		one.reset()
		return
	}
	p.wg.Go(func() { p.downstream(one) })
	p.upstream(one)
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut || p.closed
}

func (p *Proxy) decide(chunk []byte) Action {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook == nil {
		return Forward
	}
	return hook(chunk)
}

// upstream carries the client's bytes.
func (p *Proxy) upstream(one *pair) {
	buf := make([]byte, 64<<10)
	for {
		n, err := one.client.Read(buf)
		if n > 0 {
			action := p.decide(buf[:n])
			if action == Cut {
				one.reset()
				return
			}
			if action == ForwardThenCut {
				// The client goes first, so that no answer can overtake the cut. The
				// server's side is only half closed: a reset could make it drop the chunk.
				reset(one.client)
			}
			if _, err := one.server.Write(buf[:n]); err != nil {
				one.reset()
				return
			}
			if action == ForwardThenCut {
				_ = one.server.CloseWrite()
				return
			}
		}
		if err != nil {
			_ = one.server.CloseWrite()
			return
		}
	}
}

// downstream carries the server's bytes, and swallows them once the client is
// gone, so that the server is never reset for an answer nobody took.
func (p *Proxy) downstream(one *pair) {
	if _, err := io.Copy(one.client, one.server); err != nil {
		_, _ = io.Copy(io.Discard, one.server)
	}
	_ = one.client.CloseWrite()
	p.mu.Lock()
	delete(p.pairs, one)
	p.mu.Unlock()
	one.client.Close()
	one.server.Close()
}

func (one *pair) reset() {
	reset(one.client)
	reset(one.server)
}

// reset closes with RST instead of FIN: the peer's next read fails at once.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}
