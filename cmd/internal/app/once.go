package app

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConnectNATSOnce connects as ConnectNATS does, and tries each server once: for whoever wants to know whether NATS is there now. nats.go gives
// each server two seconds.
func ConnectNATSOnce(s Settings, name string) (*nats.Conn, jetstream.JetStream, error) {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // ConnectNATS tries, and then finds that its time is over
	return ConnectNATS(ended, s, name, slog.New(slog.DiscardHandler))
}

// Live reports whether the key moves real money, by the form of Stripe's keys.
func (s Settings) Live() bool { return s.live() }
