package stripe

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

var (
	errShut       = errors.New("the call is over; nothing may leave any more")
	errSecondSend = errors.New("the request has left already and may not leave again")
)

// passage is one request's permission to leave. A connection enters it right before the first byte of the request is written; from then on
// the request may have reached Stripe. Once it is shut nothing leaves, also if net/http's writer only gets to it later.
type passage struct {
	once bool // a second connection may not enter

	mu       sync.Mutex
	mayLeave func() error
	used     bool
	by       *gatedConn
	closed   bool
	heldBack error // what mayLeave said
}

// enter is asked by a connection before every write.
func (p *passage) enter(c *gatedConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.used && p.by == c:
		return nil
	case p.used && p.once:
		return errSecondSend
	case p.closed:
		return errShut
	}
	if p.mayLeave != nil {
		if err := p.mayLeave(); err != nil {
			p.closed, p.heldBack = true, err
			return err
		}
		p.mayLeave = nil
	}
	p.used, p.by = true, c
	return nil
}

// shut ends the passage and reports whether a byte may have left, and why it was held back.
func (p *passage) shut() (maybeSent bool, heldBack error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.used, p.heldBack
}

// gatedConn asks the passage of the request that it carries before it writes. Without one it is being set up (TLS, a proxy's CONNECT).
type gatedConn struct {
	net.Conn
	passage atomic.Pointer[passage]
}

// Write writes b if the passage lets it through; otherwise not one byte leaves. TLS's own last word on a connection that dies right then counts as the
// request: it is taken for sent, and looked up.
func (c *gatedConn) Write(b []byte) (int, error) {
	if p := c.passage.Load(); p != nil {
		if err := p.enter(c); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// arm sets the passage that the connection asks from now on. A connection that was not dialled by us cannot be gated: it is closed.
func arm(conn net.Conn, p *passage) {
	for inner := conn; ; {
		switch c := inner.(type) {
		case *gatedConn:
			c.passage.Store(p)
			return
		case interface{ NetConn() net.Conn }: // tls.Conn, over TCP or over a proxy's TLS
			inner = c.NetConn()
		default:
			_ = conn.Close()
			return
		}
	}
}
