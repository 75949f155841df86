package dev

import (
	"context"
	"encoding/json"
	"errors"
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
				ID: pay.ID.String(), TenantID: pay.TenantID, Key: pay.IdempotencyKey, Status: pay.Status, Captured: pay.AmountCaptured, Refunded: pay.AmountRefunded,
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

// readPatience is how long a stream may stand still while it is read: a cluster that was broken a moment ago still changes its leaders.
const readPatience = 2 * time.Minute

// readStream reads a stream from its beginning.
func readStream(ctx context.Context, js jetstream.JetStream, name string, each func(jetstream.Msg) error) error {
	var read, last uint64
	var total uint64
	moved := time.Now()
	for {
		n, err := readOn(ctx, js, name, last+1, &total, func(m jetstream.Msg) error {
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			last = meta.Sequence.Stream
			return each(m)
		})
		if read += n; n > 0 {
			moved = time.Now()
		}
		var broken *contentError
		switch {
		case errors.As(err, &broken) || ctx.Err() != nil:
			return err
		case err == nil && read >= total:
			return nil
		case time.Since(moved) > readPatience:
			return fmt.Errorf("only %d of %d messages of %s could be read: %w", read, total, name, err)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// contentError is a message that cannot be read.
type contentError struct{ error }

// readOn reads a stream from a sequence on, for as long as messages come.
func readOn(ctx context.Context, js jetstream.JetStream, name string, from uint64, total *uint64, each func(jetstream.Msg) error) (read uint64, err error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	state := stream.CachedInfo().State
	*total = state.Msgs
	if state.LastSeq < from {
		return 0, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from})
	if err != nil {
		return 0, err
	}
	for left := state.LastSeq - from + 1; left > 0; {
		batch, err := consumer.Fetch(int(min(500, left)), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return read, err
		}
		before := read
		for m := range batch.Messages() {
			read++
			left--
			if err := each(m); err != nil {
				return read, &contentError{err}
			}
		}
		if read == before {
			return read, batch.Error()
		}
	}
	return read, nil
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
