package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// attemptLimit bounds one request, so that a request that was lost with its
	// connection is repeated on the next.
	attemptLimit = 5 * time.Second
	retryFirst   = 50 * time.Millisecond
	retryCap     = time.Second
)

// patiently repeats call until it answers with anything but "not reachable now",
// or ctx ends. Every call here may be repeated: it reads, or it states a
// configuration in full.
func patiently(ctx context.Context, what string, call func(ctx context.Context) error) error {
	pause := retryFirst
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptLimit)
		err := call(attempt)
		cancel()
		if err == nil || !unreachable(err) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: JetStream did not answer: %w (last: %w)", what, ctx.Err(), err)
		}
		pause = min(2*pause, retryCap)
	}
}

// unreachable reports an error that may go away without anybody changing a
// setting: a server that starts, a cluster that elects, a connection that is cut.
func unreachable(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503
	}
	for _, passing := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrNoServers,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
