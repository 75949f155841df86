package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// provisionTimeout is how long a starting process waits for JetStream.
const provisionTimeout = 60 * time.Second

// ConnectNATS connects, and goes on trying for ever: a broker that is away must not end a worker. Nothing is buffered for it meanwhile, so
// that a publish that was reported as failed does not leave later.
func ConnectNATS(s Settings, name string, log *slog.Logger) (*nats.Conn, jetstream.JetStream, error) {
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond), nats.PingInterval(10 * time.Second),
		nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is away; it is tried again until it is back", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS reported an error", "error", err) }),
	}
	if s.NATSCreds != "" {
		options = append(options, nats.UserCredentials(s.NATSCreds))
	}
	if s.NATSCA != "" {
		options = append(options, nats.RootCAs(s.NATSCA))
	}
	if s.NATSCert != "" {
		options = append(options, nats.ClientCert(s.NATSCert, s.NATSKey))
	}
	nc, err := nats.Connect(s.NATSURL, options...)
	if err != nil {
		return nil, nil, &UsageError{"ONCEPAY_NATS_URL: " + err.Error()}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

// EnsureStreams makes streams and durable consumers as the settings want them.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, s Settings) error {
	subjects, settings := s.Streams()
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	if err := provision.Ensure(ctx, js, subjects.Streams(settings), subjects.Consumers(settings)); err != nil {
		return fmt.Errorf("JetStream streams: %w", err)
	}
	return nil
}

// Streams returns the subjects and the stream settings that follow from the settings.
func (s Settings) Streams() (schema.Subjects, schema.Settings) {
	return schema.Subjects{Prefix: s.SubjectPrefix}, schema.Settings{StreamMaxBytes: s.StreamMaxBytes, Replicas: s.StreamReplicas, AckWait: s.AckWait}
}

// retry calls f until it succeeds, fails for good, or ctx ends. What a starting process needs may be starting too.
func retry(ctx context.Context, log *slog.Logger, what string, again func(error) bool, f func() error) error {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := f()
		if err == nil || !again(err) {
			return err
		}
		log.Warn("not reachable yet; it is tried again", "what", what, "error", firstLine(err))
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(wait):
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// unreachable reports whether PostgreSQL may only be away: what it refuses by name (a password, a database that does not exist) will not mend
// itself.
func unreachable(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return strings.HasPrefix(refused.Code, "57P") || strings.HasPrefix(refused.Code, "53") || strings.HasPrefix(refused.Code, "08")
	}
	var failed *pgconn.ConnectError
	return errors.As(err, &failed)
}

// WaitConnected waits until the connection stands.
func WaitConnected(ctx context.Context, nc *nats.Conn) error {
	for !nc.IsConnected() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
