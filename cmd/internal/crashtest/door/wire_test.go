package door

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// wire is a TCP proxy to a door that does something with answers on their way back.
type wire struct {
	target   string
	listener net.Listener
	group    sync.WaitGroup
	// hold is asked with the first bytes of each answer; it may take its time. So many of these bytes reach the client, which is then cut off;
	// all of them, and what follows, when it says -1.
	hold func(answer []byte) int
}

// wireTo starts a proxy; it ends with the test.
func wireTo(t *testing.T, target string, hold func(answer []byte) int) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &wire{target: target, listener: listener, hold: hold}
	ctx, cancel := context.WithCancel(context.Background())
	v.group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			v.group.Go(func() { v.serve(ctx, client) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		v.group.Wait()
	})
	return v
}

func (v *wire) addr() string { return v.listener.Addr().String() }

// serve carries one connection. The server never sees that an answer was lost before it has sent it.
func (v *wire) serve(ctx context.Context, client net.Conn) {
	server, err := net.Dial("tcp", v.target)
	if err != nil {
		client.Close()
		return
	}
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()
	v.group.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite()
	})
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 {
			through := v.hold(buf[:n])
			if through < 0 {
				through = n
			} else {
				err = io.ErrClosedPipe
			}
			if _, wrong := client.Write(buf[:through]); wrong != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
