package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const (
	// publishers is how many messages wait for their PubAck at a time.
	publishers = 16
	// ackTimeout is shorter than a cluster takes for a new leader, so that a publish is repeated meanwhile.
	ackTimeout = 2 * time.Second
	// againAfter is the wait before a publish is repeated.
	againAfter = 250 * time.Millisecond
)

// intent is one payment that is asked for.
type intent struct {
	id     string // of the payment, known before anybody else knows it
	amount int64
	body   []byte
}

// newIntents makes intents under keys that no earlier run used, with amounts that differ.
func newIntents(o options, at time.Time) (map[string]intent, error) {
	wanted := make(map[string]intent, o.intents)
	for i := range o.intents {
		key := fmt.Sprintf("smoke-%d-%d", at.UnixNano(), i)
		amount := int64(100 + i)
		body, err := json.Marshal(map[string]any{"idempotency_key": key, "amount": amount, "currency": "usd", "payment_method": "pm_card_visa"})
		if err != nil {
			return nil, err
		}
		id := payments.Intent{TenantID: o.tenant, IdempotencyKey: key}.ID().Format(payments.KindCharge)
		wanted[id] = intent{id, amount, body}
	}
	return wanted, nil
}

// sent counts messages: stored with a PubAck, and repeated because none came.
type sent struct{ stored, again int }

// publish sends every intent as often as it is told, in any order, and each until it has its PubAck.
func publish(ctx context.Context, o options, wanted map[string]intent) (sent, error) {
	subject, err := schema.Subjects{}.Intent(o.tenant)
	if err != nil {
		return sent{}, err
	}
	nc, err := nats.Connect(o.nats, nats.UserInfo(o.tenant, o.password), nats.MaxReconnects(-1), nats.ReconnectWait(againAfter), nats.ReconnectBufSize(-1))
	if err != nil {
		return sent{}, fmt.Errorf("NATS: %w", err)
	}
	defer nc.Close()
	var messages [][]byte
	for range o.repeats {
		for _, i := range wanted {
			messages = append(messages, i.body)
		}
	}
	rand.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })

	work := make(chan []byte)
	var mu sync.Mutex
	var total sent
	var all sync.WaitGroup
	for range publishers {
		all.Go(func() {
			for body := range work {
				again := publishOne(ctx, nc, subject, body)
				mu.Lock()
				total.again += again
				total.stored++
				mu.Unlock()
			}
		})
	}
	for _, body := range messages {
		work <- body
	}
	close(work)
	all.Wait()
	if ctx.Err() != nil {
		return total, fmt.Errorf("not everything was published in time: %w", ctx.Err())
	}
	return total, nil
}

// publishOne sends one message until a stream has it, and returns how often that took another attempt.
func publishOne(ctx context.Context, nc *nats.Conn, subject string, body []byte) (again int) {
	for ; ctx.Err() == nil; again++ {
		if stored(ctx, nc, subject, body) == nil {
			return again
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
	return again
}

// stored publishes once and waits for the PubAck.
func stored(ctx context.Context, nc *nats.Conn, subject string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return err
	}
	var ack struct {
		Stream string          `json:"stream"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return err
	}
	if ack.Error != nil || !strings.HasSuffix(ack.Stream, "_INTENTS") {
		return errors.New("the stream did not take it: " + string(ack.Error))
	}
	return nil
}
