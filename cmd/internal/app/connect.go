package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// askTimeout bounds one question to JetStream, provisionTimeout one attempt to make streams and consumers.
const (
	askTimeout       = 5 * time.Second
	provisionTimeout = 60 * time.Second
)

// ConnectNATS connects, trying again until ctx ends while NATS is away; a *UsageError says that it refuses us. Once it stands, the connection
// goes on trying for ever: a broker that is away, or whose credentials are being changed, must not end a worker. Nothing is buffered for it
// meanwhile, so that a publish that was reported as failed does not leave later.
func ConnectNATS(ctx context.Context, s Settings, name string, log *slog.Logger) (nc *nats.Conn, js jetstream.JetStream, err error) {
	if err := s.checkNATSFiles(); err != nil {
		return nil, nil, err
	}
	options := append(natsLogging(log),
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(500*time.Millisecond), nats.PingInterval(10*time.Second),
		nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort())
	if s.NATSCreds != "" {
		options = append(options, nats.UserCredentials(s.NATSCreds))
	}
	if s.NATSCA != "" {
		options = append(options, nats.RootCAs(s.NATSCA))
	}
	if s.NATSCert != "" {
		options = append(options, nats.ClientCert(s.NATSCert, s.NATSKey))
	}
	err = retry(ctx, log, "NATS", natsAway, func() (err error) {
		nc, err = nats.Connect(s.NATSURL, options...)
		return err
	})
	switch {
	case err != nil && natsAway(err):
		return nil, nil, fmt.Errorf("ONCEPAY_NATS_URL: NATS cannot be reached: %w", err)
	case err != nil:
		return nil, nil, &UsageError{"ONCEPAY_NATS_URL: NATS cannot be used: " + err.Error()}
	}
	if js, err = jetstream.New(nc); err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

// checkNATSFiles reads what nats.go reads at every connection: it takes a file that is missing for a server that is away.
func (s Settings) checkNATSFiles() error {
	for _, f := range []struct{ name, path string }{
		{"ONCEPAY_NATS_CREDS", s.NATSCreds}, {"ONCEPAY_NATS_CA", s.NATSCA}, {"ONCEPAY_NATS_CERT", s.NATSCert}, {"ONCEPAY_NATS_KEY", s.NATSKey},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.ReadFile(f.path); err != nil {
			return &UsageError{f.name + ": the file cannot be read: " + errors.Unwrap(err).Error()}
		}
	}
	return nil
}

func natsLogging(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is away; it is tried again until it is back", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS reported an error", "error", err) }),
	}
}

// noPeers is JetStream's "no suitable peers for placement": the servers of a cluster that has just come up have not all found each other.
const noPeers jetstream.ErrorCode = 10005

// natsAway reports whether NATS may only be away, or not ready yet: what it refuses (credentials, a certificate) will not mend itself.
func natsAway(err error) bool {
	for _, away := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrStaleConnection,
		nats.ErrNoResponders, nats.ErrMaxConnectionsExceeded, jetstream.ErrNoStreamResponse, context.DeadlineExceeded, io.EOF,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	var network net.Error
	var api *jetstream.APIError
	return errors.As(err, &network) && !badCertificate(err) || errors.As(err, &api) && (api.Code == 503 || api.ErrorCode == noPeers) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// EnsureStreams makes streams and durable consumers as the settings want them, trying again until ctx ends while JetStream is not ready.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, s Settings, log *slog.Logger) error {
	subjects, settings := s.Streams()
	err := retry(ctx, log, "JetStream", natsAway, func() error {
		if err := askJetStream(ctx, js); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
		defer cancel()
		return errors.Join(
			provision.Ensure(ctx, js, subjects.Streams(settings), subjects.Consumers(settings)),
			provision.EnsureBucket(ctx, js, subjects.BucketMark(), settings.Replicas),
		)
	})
	if err != nil {
		return fmt.Errorf("JetStream streams: %w", err)
	}
	return nil
}

// askJetStream says at once when there is no JetStream to work with; provisioning would wait for one in silence. Servers without it answer like
// those whose JetStream is still starting, so both are waited for, by name. Whatever else is wrong, such as a user who may not ask this,
// provisioning finds out.
func askJetStream(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("no JetStream answers; is it enabled on the servers of ONCEPAY_NATS_URL, and for this account? %w", err)
	}
	return nil
}

// Streams returns the subjects and the stream settings that follow from the settings.
func (s Settings) Streams() (schema.Subjects, schema.Settings) {
	return schema.Subjects{Prefix: s.SubjectPrefix}, schema.Settings{StreamMaxBytes: s.StreamMaxBytes, Replicas: s.StreamReplicas, AckWait: s.AckWait}
}
