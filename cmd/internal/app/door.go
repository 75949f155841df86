package app

import (
	"context"
	"net"
	"net/http"

	"github.com/oncepay/oncepay/ingress"
)

// door is a listen address with its server.
type door struct {
	name   string // of the setting
	addr   string
	server *http.Server
	failed chan error
}

// openDoor binds an address and serves at once; nil where the address is "".
func openDoor(name, at string, h http.Handler) (*door, error) {
	if at == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return nil, &UsageError{name + ": " + err.Error() + "; choose another address, or off"}
	}
	d := &door{name: name, addr: listener.Addr().String(), failed: make(chan error, 1), server: ingress.Server(h)}
	go func() { d.failed <- d.server.Serve(listener) }()
	return d, nil
}

// run serves until its context ends, and then lets requests finish.
func (d *door) run(ctx context.Context) error {
	select {
	case err := <-d.failed:
		return err
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpBudget)
		defer cancel()
		return d.server.Shutdown(stop)
	}
}

// close ends the server at once, if it still serves.
func (d *door) close() {
	if d != nil {
		_ = d.server.Close()
	}
}

// address is where it listens, "" where it does not.
func (d *door) address() string {
	if d == nil {
		return ""
	}
	return d.addr
}
