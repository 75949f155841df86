package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// readPayments reads all payments of the tenant.
func readPayments(ctx context.Context, store *postgres.Store, run *oracle.Run) error {
	for cursor := ""; ; {
		page, next, err := store.List(ctx, payments.ListRequest{TenantID: demoTenant, Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, pay := range page {
			run.Payments = append(run.Payments, oracle.Payment{
				ID: pay.ID.String(), TenantID: pay.TenantID, Key: pay.IdempotencyKey, Status: pay.Status,
				Money: oracle.Money{Amount: pay.Amount, Currency: pay.Currency, Customer: pay.Customer},
			})
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// readLetters reads all dead letters.
func readLetters(ctx context.Context, store *postgres.Store, run *oracle.Run) (list []payments.DeadLetter, err error) {
	for cursor := ""; ; {
		letters, next, err := store.DeadLetters(ctx, postgres.DeadLettersRequest{Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		list = append(list, letters...)
		for _, l := range letters {
			run.DeadLetters = append(run.DeadLetters, oracle.DeadLetter{TenantID: l.TenantID, Key: l.IdempotencyKey, Reason: l.Reason})
		}
		if cursor = next; cursor == "" {
			return list, nil
		}
	}
}

// readStream reads a stream from its beginning.
func readStream(ctx context.Context, js jetstream.JetStream, name string, each func(jetstream.Msg) error) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	total := stream.CachedInfo().State.Msgs
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	for read := uint64(0); read < total; {
		batch, err := consumer.Fetch(int(min(500, total-read)), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return err
		}
		before := read
		for m := range batch.Messages() {
			read++
			if err := each(m); err != nil {
				return err
			}
		}
		if read == before {
			return fmt.Errorf("only %d of %d messages of %s could be read: %w", read, total, name, batch.Error())
		}
	}
	return nil
}

// readEvents reads the stream of outcome events from its beginning. It returns when each payment's outcome was recorded, and the ids of the events
// that say that a batch is complete, by batch.
func readEvents(ctx context.Context, js jetstream.JetStream, subjects schema.Subjects, run *oracle.Run) (outcomes map[string]time.Time, complete map[string][]string, err error) {
	run.Events = []oracle.Event{}
	outcomes, complete = map[string]time.Time{}, map[string][]string{}
	err = readStream(ctx, js, subjects.StreamEvents(), func(m jetstream.Msg) error {
		event, err := schema.DecodeEvent(m.Data())
		if err != nil {
			return fmt.Errorf("an event cannot be read: %w", err)
		}
		if event.Type == schema.EventBatchCompleted {
			complete[event.Subject] = append(complete[event.Subject], event.ID)
			return nil
		}
		var data struct {
			Status payments.Status `json:"status"`
		}
		if err := json.Unmarshal(event.Data, &data); err != nil {
			return fmt.Errorf("an event's data cannot be read: %w", err)
		}
		run.Events = append(run.Events, oracle.Event{ID: event.ID, Payment: event.Subject, Sequence: event.Sequence, Status: data.Status})
		if data.Status.Final() {
			outcomes[event.Subject] = event.Time
		}
		return nil
	})
	return outcomes, complete, err
}
