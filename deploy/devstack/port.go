package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Ports below the range that Linux and macOS hand out for outgoing connections:
// a server that is down for a moment finds its port free again.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// reserved keeps what was handed out for as long as this process lives. A UDP socket
// on the same number, which nobody else has a use for, tells other processes that
// look for a port: between looking and listening, or while a server is down, they
// find another one.
var reserved struct {
	mu      sync.Mutex
	sockets []net.PacketConn
}

// reserve reports whether nobody has the port, and keeps it for this process from then on.
func reserve(port int) bool {
	socket, err := net.ListenPacket("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false
	}
	free := silent(port)
	switch {
	case err != nil: // a machine without UDP reserves nothing
	case !free:
		_ = socket.Close()
	default:
		reserved.mu.Lock()
		defer reserved.mu.Unlock()
		reserved.sockets = append(reserved.sockets, socket)
	}
	return free
}

// silent reports whether nobody listens on the port. It does not listen there itself: a child process that is forked at that moment keeps the socket
// until it has begun its program, and whoever is told of the port finds it in use.
func silent(port int) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// freePort finds a TCP port on 127.0.0.1 that nobody listens on at the moment.
func freePort() (int, error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if reserve(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free TCP port found on 127.0.0.1")
}

// checkPort says at once what is wrong with a port that was asked for; 0 is none.
func checkPort(port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("port %d: must be between 1 and 65535, or 0 for a free one", port)
	}
	if port != 0 && !portFree(port) {
		return fmt.Errorf("port %d on 127.0.0.1 is in use: choose another, or 0 for a free one", port)
	}
	return nil
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// FreePort finds a TCP port on 127.0.0.1 that nobody listens on at the moment, that no outgoing connection will be given, and that nobody is told of
// who asks here while this process lives: a server that is down for a moment finds it free again.
func FreePort() (int, error) { return freePort() }
