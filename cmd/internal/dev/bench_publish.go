package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

const (
	publishRounds  = 3
	publishIntents = 10_000
	publishPending = 1000 // of plain asynchronous publishing, as its documentation recommends
	publishLone    = 2000
)

// PublishMeasurement is what the benchmark of publishing found. Rates are messages a second, times those of one message; each is the median of
// the rounds. A ratio above 1 is in the Publisher's favour, and the median of the rounds' own ratios.
type PublishMeasurement struct {
	Name             string  `json:"name"`
	Intents          int     `json:"intents"`
	Concurrency      int     `json:"concurrency"`
	Rounds           int     `json:"rounds"`
	PlainPerS        float64 `json:"plain_async_per_s"`
	PublishAllPerS   float64 `json:"publish_all_per_s"`
	PublishPerS      float64 `json:"publish_concurrent_per_s"`
	PublishAllRatio  float64 `json:"publish_all_ratio"`
	PublishRatio     float64 `json:"publish_concurrent_ratio"`
	LonePlainP50US   float64 `json:"lone_plain_p50_us"`
	LonePublishP50US float64 `json:"lone_publish_p50_us"`
	LoneRatio        float64 `json:"lone_ratio"`
}

// publishBench compares the Publisher with nats.go's own functions, in turns, on one stream that syncs every write. Both sides make each
// message's document from the same intent, and both name the stream that they expect to take it, so that the same is sent.
type publishBench struct {
	o         benchOptions
	plain     jetstream.JetStream
	publisher *producer.Publisher
	subject   string
	expect    jetstream.PublishOpt
	messages  []producer.Message
}

func publishing(ctx context.Context, o benchOptions) (_ *PublishMeasurement, err error) {
	server, err := devstack.StartNATS(devstack.NATSOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, server.Close()) }()
	b := &publishBench{o: o}
	plain, err := nats.Connect(server.URL())
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	if b.plain, err = jetstream.New(plain, jetstream.WithPublishAsyncMaxPending(publishPending)); err != nil {
		return nil, err
	}
	subjects := schema.Subjects{}
	if b.subject, err = subjects.Intent(demoTenant); err != nil {
		return nil, err
	}
	b.expect = jetstream.WithExpectStream(subjects.StreamIntents())
	settings := schema.DefaultSettings()
	settings.StreamMaxBytes = streamRoom(o)
	if err := provision.Ensure(ctx, b.plain, subjects.Streams(settings), nil); err != nil {
		return nil, err
	}
	nc, err := nats.Connect(server.URL(), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if b.publisher, err = producer.New(nc, subjects, producer.Options{}); err != nil {
		return nil, err
	}
	defer b.publisher.Close()
	for i := range o.intents {
		b.messages = append(b.messages, producer.Message{Intent: benchIntent(i)})
	}
	return b.measure(ctx)
}

func (b *publishBench) measure(ctx context.Context) (*PublishMeasurement, error) {
	m := &PublishMeasurement{Name: "publish", Intents: b.o.intents, Concurrency: b.o.concurrency, Rounds: publishRounds}
	ways := [...]func(context.Context) error{b.async, b.all, b.concurrent}
	var rates [len(ways)][]float64
	var ratios [len(ways)][]float64
	for round := range publishRounds {
		var took [len(ways)]float64
		for k := range ways {
			k = (k + round) % len(ways) // each is the first once
			started := time.Now()
			if err := ways[k](ctx); err != nil {
				return nil, err
			}
			took[k] = time.Since(started).Seconds()
		}
		for k := range ways {
			rates[k] = append(rates[k], float64(b.o.intents)/took[k])
			ratios[k] = append(ratios[k], took[0]/took[k])
		}
	}
	m.PlainPerS, m.PublishAllPerS, m.PublishPerS = round(percentile(rates[0], 0.5)), round(percentile(rates[1], 0.5)), round(percentile(rates[2], 0.5))
	m.PublishAllRatio, m.PublishRatio = round(percentile(ratios[1], 0.5)), round(percentile(ratios[2], 0.5))
	return m, b.lone(ctx, m)
}

// plainIntent is the document as a program without the Publisher would write it.
type plainIntent struct {
	IdempotencyKey string            `json:"idempotency_key"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	PaymentMethod  string            `json:"payment_method"`
	Customer       string            `json:"customer,omitempty"`
	OffSession     bool              `json:"off_session"`
	Metadata       map[string]string `json:"metadata,omitempty"`
}

func plainDocument(m producer.Message) ([]byte, error) {
	i := m.Intent
	return json.Marshal(plainIntent{i.IdempotencyKey, i.Amount, i.Currency, i.PaymentMethod, i.Customer, i.OffSession, i.Metadata})
}

// async is plain asynchronous publishing: every message is acknowledged, and up to 1,000 wait for that at a time.
func (b *publishBench) async(ctx context.Context) error {
	futures := make([]jetstream.PubAckFuture, len(b.messages))
	for i, m := range b.messages {
		document, err := plainDocument(m)
		if err != nil {
			return err
		}
		if futures[i], err = b.plain.PublishAsync(b.subject, document, b.expect, jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *publishBench) all(ctx context.Context) error {
	var failed error
	for _, r := range b.publisher.PublishAll(ctx, b.messages) {
		failed = errors.Join(failed, r.Err)
	}
	return failed
}

// concurrent publishes the messages one by one from many goroutines.
func (b *publishBench) concurrent(ctx context.Context) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var callers sync.WaitGroup
	for range b.o.concurrency {
		callers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(b.messages)) && failed.Load() == nil; i = next.Add(1) - 1 {
				if _, err := b.publisher.Publish(ctx, b.messages[i]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// lone publishes one message at a time, in turns, each way first every other time.
func (b *publishBench) lone(ctx context.Context, m *PublishMeasurement) error {
	var took [2][]float64
	for i := range publishLone {
		message := b.messages[i%len(b.messages)]
		for k := range 2 {
			k = (k + i) % 2
			started := time.Now()
			var err error
			if k == 0 {
				var document []byte
				if document, err = plainDocument(message); err == nil {
					_, err = b.plain.Publish(ctx, b.subject, document, b.expect)
				}
			} else {
				_, err = b.publisher.Publish(ctx, message)
			}
			if err != nil {
				return err
			}
			took[k] = append(took[k], float64(time.Since(started).Nanoseconds())/1000)
		}
	}
	m.LonePlainP50US, m.LonePublishP50US = round(percentile(took[0], 0.5)), round(percentile(took[1], 0.5))
	m.LoneRatio = float64(int(m.LonePlainP50US/m.LonePublishP50US*1000+0.5)) / 1000
	return nil
}

// benchPublish runs the benchmark and prints what it found.
func benchPublish(ctx context.Context, o benchOptions) error {
	m, err := publishing(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		return console.JSON(os.Stdout, m)
	}
	fmt.Printf("%d intents, median of %d rounds in turns; every write is synced\n  plain async, %d pending    %8.0f/s\n"+
		"  PublishAll                  %8.0f/s  %.1f times as fast\n  Publish, %4d goroutines    %8.0f/s  %.1f times as fast\n"+
		"one message after another, p50 of %d\n  plain                       %8.0f us\n  Publish                     %8.0f us  %.2f times as fast\n",
		m.Intents, m.Rounds, publishPending, m.PlainPerS, m.PublishAllPerS, m.PublishAllRatio, m.Concurrency, m.PublishPerS, m.PublishRatio,
		publishLone, m.LonePlainP50US, m.LonePublishP50US, m.LoneRatio)
	return nil
}
