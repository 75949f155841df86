package devstack

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports below the range that Linux and macOS hand out for outgoing connections:
// a server that is down for a moment finds its port free again.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePort finds a TCP port on 127.0.0.1 that nobody listens on at the moment.
func freePort() (int, error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if portFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free TCP port found on 127.0.0.1")
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
