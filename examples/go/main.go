// Command go makes a payment, refunds a part of it, and makes a batch over the HTTP API. Usage: go run ./examples/go KEY
//
// It needs ONCEPAY_API_URL and ONCEPAY_API_KEY. Exit status: 0 all succeeded, 1 something did not, 2 wrongly called.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"time"
)

type intent struct {
	Amount        int64  `json:"amount"` // minor units: 9900 is 99.00 USD
	Currency      string `json:"currency"`
	PaymentMethod string `json:"payment_method"`
}

// payment is a payment or a refund.
type payment struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

type refund struct {
	Amount int64  `json:"amount"`
	Reason string `json:"reason,omitempty"`
}

type batch struct {
	ID       string `json:"id"`
	Count    int    `json:"count"`
	Complete bool   `json:"complete"`
	ByStatus map[string]struct {
		Count int `json:"count"`
	} `json:"by_status"`
}

// errNoAnswer: the outcome is unknown, not failed. Try again later under the same key.
var errNoAnswer = errors.New("no answer")

type client struct {
	http     http.Client
	url, key string
}

const attempts = 8

// pay pays once, however often it is called with the key, and returns the payment once it is settled or waits for somebody else.
func (c *client) pay(ctx context.Context, key string, in intent) (p payment, err error) {
	if err := c.request(ctx, "POST", "/v1/payments", key, in, &p); err != nil {
		return p, err
	}
	return c.follow(ctx, p, "/v1/payments/")
}

// refund gives a part of a payment back once, however often it is called with the key: its own, since a payment may have several refunds.
func (c *client) refund(ctx context.Context, key, paymentID string, in refund) (r payment, err error) {
	if err := c.request(ctx, "POST", "/v1/payments/"+paymentID+"/refunds", key, in, &r); err != nil {
		return r, err
	}
	return c.follow(ctx, r, "/v1/refunds/")
}

// follow reads a payment or a refund until it is settled or waits for somebody else.
func (c *client) follow(ctx context.Context, p payment, path string) (payment, error) {
	err := poll(ctx, func() (bool, error) {
		switch p.Status {
		case "received", "processing", "waiting", "unknown":
			return false, c.request(ctx, "GET", path+p.ID, "", nil, &p)
		}
		return true, nil
	})
	return p, err
}

// payBatch submits 1 to 100 payments under one key, and returns the batch once every one of them has its outcome.
func (c *client) payBatch(ctx context.Context, key string, ins []intent) (b batch, err error) {
	if err := c.request(ctx, "POST", "/v1/batches", key, map[string]any{"payments": ins}, &b); err != nil {
		return b, err
	}
	id := b.ID
	err = poll(ctx, func() (bool, error) {
		b = batch{}
		err := c.request(ctx, "GET", "/v1/batches/"+id, "", nil, &b)
		return b.Complete, err
	})
	return b, err
}

// request sends one request, repeated under the same key until it is answered, and decodes the answer.
func (c *client) request(ctx context.Context, method, path, key string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	var last error
	var retryAfter time.Duration
	for attempt := range attempts {
		if attempt > 0 {
			pause := time.Duration((0.5 + rand.Float64()/2) * float64(min(15*time.Second, time.Second<<(attempt-1))))
			if err := wait(ctx, max(retryAfter, pause)); err != nil {
				return fmt.Errorf("%w: %w (last: %w)", errNoAnswer, err, last)
			}
		}
		var again bool
		if again, retryAfter, last = c.attempt(ctx, method, path, key, body, out); !again {
			return last
		}
	}
	return fmt.Errorf("%w after %d attempts (last: %w)", errNoAnswer, attempts, last)
}

// attempt sends the request once. again: it is open whether it arrived, or the server wants it later; the key makes a repeat safe.
func (c *client) attempt(ctx context.Context, method, path, key string, body []byte, out any) (again bool, retryAfter time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Prefer", "wait=10")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return true, 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch status := answer.StatusCode; {
	case err != nil:
		return true, 0, err
	case status == http.StatusTooManyRequests || status >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return true, time.Duration(seconds) * time.Second, errors.New(answer.Status)
	case status >= 400:
		return false, 0, fmt.Errorf("refused: %s", text) // a repeat would not change that
	}
	return false, 0, json.Unmarshal(text, out)
}

// poll asks each second until done, for a minute at most.
func poll(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := wait(ctx, time.Second); err != nil {
			return fmt.Errorf("it is stored, and not settled yet: read it later: %w", err)
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func run(ctx context.Context, c *client, key string) error {
	paid, err := c.pay(ctx, key, intent{9900, "usd", "pm_card_visa"})
	if err != nil {
		return err
	}
	if err := c.request(ctx, "GET", "/v1/payments/"+paid.ID, "", nil, &paid); err != nil {
		return err
	}
	fmt.Printf("payment %s: %s\n", paid.ID, paid.Status)
	if paid.Status != "succeeded" {
		return errors.New("the payment did not succeed")
	}
	back, err := c.refund(ctx, key+"-refund", paid.ID, refund{2500, "requested_by_customer"})
	if err != nil {
		return err
	}
	fmt.Printf("refund %s: %s\n", back.ID, back.Status)
	if back.Status != "succeeded" {
		return errors.New("the refund did not succeed")
	}
	all, err := c.payBatch(ctx, key+"-batch", []intent{{1000, "usd", "pm_card_visa"}, {2000, "eur", "pm_card_visa"}, {3000, "usd", "pm_card_visa"}})
	if err != nil {
		return err
	}
	fmt.Printf("batch %s: complete\n", all.ID)
	if all.ByStatus["succeeded"].Count != all.Count {
		return errors.New("not every payment of the batch succeeded")
	}
	return nil
}

func main() {
	c := &client{http: http.Client{Timeout: 30 * time.Second}, url: os.Getenv("ONCEPAY_API_URL"), key: os.Getenv("ONCEPAY_API_KEY")}
	if len(os.Args) != 2 || c.url == "" || c.key == "" {
		fmt.Fprintln(os.Stderr, "usage: ONCEPAY_API_URL=http://... ONCEPAY_API_KEY=opk_... go run ./examples/go KEY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
