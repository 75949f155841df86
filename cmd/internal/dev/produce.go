package dev

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// inFlightPublishes is how many messages one producer has under way.
const inFlightPublishes = 64

// produce is one producer: a connection of its own, and every message until JetStream has it. It is as plain as anybody's: what is not
// certainly stored is published again.
func (d *demo) produce(ctx context.Context, list []publication) error {
	nc, js, err := app.ConnectNATS(ctx, d.settings, "oncepay-demo-producer", app.NewLog(d.logs, "warn"))
	if err != nil {
		return err
	}
	defer nc.Close()
	for len(list) > 0 {
		group := list[:min(inFlightPublishes, len(list))]
		list = list[len(group):]
		futures := make([]jetstream.PubAckFuture, len(group))
		for i, p := range group {
			if futures[i], err = js.PublishMsgAsync(message(p), jetstream.WithStallWait(10*time.Second)); err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
		}
		for i, p := range group {
			if err := d.confirm(ctx, js, p, futures[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func message(p publication) *nats.Msg {
	m := nats.NewMsg(p.subject)
	m.Data = p.data
	if p.msgID != "" {
		m.Header.Set(jetstream.MsgIDHeader, p.msgID)
	}
	return m
}

// confirm waits for the PubAck. One that says duplicate accepts nothing: within its window JetStream drops a repeated Nats-Msg-Id whatever its
// body, so the message is published again without one.
func (d *demo) confirm(ctx context.Context, js jetstream.JetStream, p publication, future jetstream.PubAckFuture) error {
	var failed error
	select {
	case ack := <-future.Ok():
		if !ack.Duplicate {
			d.acknowledged(p)
			return nil
		}
	case failed = <-future.Err():
	case <-ctx.Done():
		return ctx.Err()
	}
	p.msgID = ""
	for attempt := range 20 {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.PublishMsg(try, message(p))
		cancel()
		if err == nil {
			d.acknowledged(p)
			return nil
		}
		failed = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(attempt+1) * 50 * time.Millisecond):
		}
	}
	return fmt.Errorf("publishing: %w", failed)
}

func (d *demo) acknowledged(p publication) {
	d.sent.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, again := d.firstAck[p.intent]; again {
		d.repeats.Add(1)
		return
	}
	d.firstAck[p.intent] = time.Now()
}
