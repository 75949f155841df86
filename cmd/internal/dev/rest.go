package dev

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// leftToDo says what is left to do, "" when nothing is: every message acked, every ticket gone, every batch told, every event sent. They are asked in the order in
// which work moves on, so that none can slip past between two questions.
func leftToDo(ctx context.Context, js jetstream.JetStream, store *postgres.Store, s app.Settings) (string, error) {
	if left, err := atWork(ctx, js, store, s); err != nil || left != "" {
		return left, err
	}
	// The completion of a batch is told once somebody has noticed that its last payment is done.
	open, err := store.OpenBatches(ctx, payments.BatchRef{}, 100)
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d batches whose completion is not told", len(open)), nil
	}
	outbox, err := store.OutboxDepth(ctx)
	if err != nil || outbox == 0 {
		return "", err
	}
	return fmt.Sprintf("%d events or dead letters not sent", outbox), nil
}

// atWork says what workers have to do still: messages that are not acked, and tickets.
func atWork(ctx context.Context, js jetstream.JetStream, store *postgres.Store, s app.Settings) (string, error) {
	subjects, settings := s.Streams()
	for _, c := range subjects.Consumers(settings) {
		consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
		if err != nil {
			return "", err
		}
		if info := consumer.CachedInfo(); info.NumPending > 0 || info.NumAckPending > 0 {
			return fmt.Sprintf("%s: %d messages not delivered, %d not acked", c.Durable, info.NumPending, info.NumAckPending), nil
		}
	}
	tickets, err := store.TicketCount(ctx)
	if err != nil {
		return "", err
	}
	if tickets > 0 {
		return fmt.Sprintf("%d tickets", tickets), nil
	}
	return "", nil
}

// undone counts what is left to do: messages, tickets, and what is to be sent. A run that makes headway has ever less.
func undone(ctx context.Context, js jetstream.JetStream, store *postgres.Store, s app.Settings) (n int64, err error) {
	subjects, settings := s.Streams()
	for _, c := range subjects.Consumers(settings) {
		consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
		if err != nil {
			return 0, err
		}
		info := consumer.CachedInfo()
		n += int64(info.NumPending) + int64(info.NumAckPending)
	}
	tickets, err := store.TicketCount(ctx)
	if err != nil {
		return 0, err
	}
	outbox, err := store.OutboxDepth(ctx)
	return n + tickets + outbox, err
}
