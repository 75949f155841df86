package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// Bounds of a producer: how much it has under way, and how long it waits for one answer.
const (
	chaosInFlight = 32
	chaosPatience = 4 * time.Second
)

// produceAll runs all producers and returns when each has said what it had to say, or when ctx ends: then what is missing is a finding.
func (c *chaosRun) produceAll(ctx context.Context, began time.Time) {
	var all sync.WaitGroup
	for i, list := range c.work.nats {
		all.Go(func() { c.produceNATS(ctx, began, i, list) })
	}
	all.Go(func() { c.followAll(ctx, began) })
	for _, list := range c.work.http {
		all.Go(func() { c.paced(ctx, began, list, c.request) })
	}
	all.Wait()
}

// paced sends each delivery at its time, several at once.
func (c *chaosRun) paced(ctx context.Context, began time.Time, list []*delivery, send func(context.Context, *delivery) bool) {
	var flying sync.WaitGroup
	defer flying.Wait()
	room := make(chan struct{}, chaosInFlight)
	for i, m := range list {
		if !pause(ctx, time.Until(began.Add(m.at))) {
			c.book.find("a producer was not done: %d of its %d deliveries were not sent", len(list)-i, len(list))
			return
		}
		room <- struct{}{}
		flying.Go(func() {
			defer func() { <-room }()
			if !send(ctx, m) {
				c.book.find("%s was not accepted although all was healed", m.key)
				return
			}
			c.delivered.Add(1)
		})
	}
}

// pause waits; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *chaosRun) produceNATS(ctx context.Context, began time.Time, i int, list []*delivery) {
	nc, js, err := app.ConnectNATS(ctx, c.producing, "oncepay-chaos-producer", app.NewLog(c.log("producers"), "error"))
	if err != nil {
		c.book.find("producer %d found no NATS: %v", i, err)
		return
	}
	defer nc.Close()
	c.paced(ctx, began, list, func(ctx context.Context, m *delivery) bool {
		if m.forget {
			_ = nc.PublishMsg(m.message())
			c.book.mute(m)
			return true
		}
		return c.publish(ctx, js, *m)
	})
	_ = nc.FlushTimeout(time.Second)
}

func (m *delivery) message() *nats.Msg {
	return message(publication{subject: m.subject, data: m.body, msgID: m.msgID})
}

// publish sends a message until it has a PubAck. One that says duplicate accepts nothing: it is sent again without its id.
func (c *chaosRun) publish(ctx context.Context, js jetstream.JetStream, m delivery) bool {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, chaosPatience)
		ack, err := js.PublishMsg(try, m.message())
		cancel()
		switch {
		case err == nil && !ack.Duplicate:
			c.book.accept(&m, ack)
			return true
		case err == nil:
			m.msgID = ""
		default:
			c.book.mute(&m)
			pause(ctx, 50*time.Millisecond+rand.N(300*time.Millisecond))
		}
	}
	return false
}

// request posts until it is accepted, or refused as it must be, at one door after the other.
func (c *chaosRun) request(ctx context.Context, m *delivery) bool {
	for door := m.door; ctx.Err() == nil; door++ {
		status, answer, err := c.exchange(ctx, http.MethodPost, c.doors[door%len(c.doors)], m)
		switch {
		case err != nil || status >= 500 || status == http.StatusTooManyRequests:
			if err != nil {
				c.book.mute(m)
			}
			pause(ctx, 50*time.Millisecond+rand.N(300*time.Millisecond))
			continue
		case m.refusal != "" && status >= 400 && answer.Code == m.refusal, m.may != "" && status >= 400 && answer.Code == m.may:
			c.book.refuse()
			return true
		case m.refusal != "" || status >= 300:
			c.book.find("%s was answered %d %s, want %s", m.key, status, answer.Code, orAccepted(m.refusal))
			return true
		}
		c.accepted(m, answer.ID)
		if m.then != nil {
			return c.request(ctx, m.then)
		}
		return true
	}
	return false
}

func orAccepted(refusal string) string {
	if refusal == "" {
		return "2xx"
	}
	return refusal
}

// accepted notes a 2xx, which must name what was asked for.
func (c *chaosRun) accepted(m *delivery, id string) {
	kind := payments.KindCharge
	switch {
	case m.ask != nil:
		kind = m.ask.Kind
	case c.work.batches[m.key] != nil:
		kind = payments.KindBatch
	}
	if want := payments.NewID(demoTenant, m.key).Format(kind); id != want {
		c.book.find("%s was answered with %s, want %s", m.key, id, want)
	}
	c.book.accept(m, nil)
}

// answered is what is read of an answer.
type answered struct {
	ID     string `json:"id"`
	Code   string `json:"code"`
	Status any    `json:"status"` // of a payment in words; of a problem a number
}

// exchange makes one request and reads its answer; an answer that breaks off is none.
func (c *chaosRun) exchange(ctx context.Context, method, addr string, m *delivery) (status int, a answered, err error) {
	ctx, cancel := context.WithTimeout(ctx, chaosPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+m.path, bytes.NewReader(m.body))
	if err != nil {
		return 0, a, err
	}
	request.Header.Set("Authorization", "Bearer "+c.apiKey)
	request.Header.Set("Content-Type", "application/json")
	if m.key != "" {
		request.Header.Set("Idempotency-Key", m.key)
	}
	if m.prefer != "" {
		request.Header.Set("Prefer", m.prefer)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, a, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return 0, a, err
	}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		err = json.Unmarshal(data, &a)
	}
	return response.StatusCode, a, err
}
