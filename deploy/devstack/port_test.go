package devstack

import (
	"net"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// Who is told of a port can listen there, also while child processes are begun, and nobody else is told of it meanwhile, whether somebody listens by
// then or not.
func TestAPortIsGivenOnce(t *testing.T) {
	t.Parallel()
	defer beginChildren(t)()
	given := map[int]bool{}
	for range 200 {
		port, err := FreePort()
		if err != nil || given[port] {
			t.Fatalf("port %d, given before: %v, %v", port, given[port], err)
		}
		given[port] = true
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if reserve(port) {
			t.Errorf("port %d is given a second time", port)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for range 2 { // nor does a look keep it from those who come once it is free
		if reserve(taken.Addr().(*net.TCPAddr).Port) {
			t.Error("a port is given on which somebody listens")
		}
	}
}

// beginChildren begins one child process after another until it is told to stop. A child has all sockets of its parent until it has begun its program.
func beginChildren(t *testing.T) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		close(done)
		wg.Wait()
	}
}
