package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// turns bounds how many tests of the API run side by side: each of them is a crowd with processes of its own, and their neighbours' leases are short.
var turns = make(chan struct{}, 2)

// takeTurn waits for a turn, which ends with the test and all that it has started.
func takeTurn(t *testing.T) {
	t.Helper()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// parcel is one request to the HTTP API: a payment, or a batch of them.
type parcel struct {
	path   string
	key    string
	body   []byte
	orders []order // the payments that it asks for, under their own keys
}

const (
	paymentsPath = "/v1/payments"
	batchesPath  = "/v1/batches"
)

func (p parcel) batch() bool { return p.path == batchesPath }

// id is what its answers must call it.
func (p parcel) id() string {
	kind := payments.KindCharge
	if p.batch() {
		kind = payments.KindBatch
	}
	return payments.NewID(tenant, p.key).Format(kind)
}

// single is the request for one payment of its own.
func (w *world) single(key string) parcel {
	w.Helper()
	o := w.order(key)
	return parcel{path: paymentsPath, key: key, body: o.body(w), orders: []order{o}}
}

// batchOf is the request for a batch of n payments.
func (w *world) batchOf(key string, n int) parcel {
	w.Helper()
	p := parcel{path: batchesPath, key: key}
	wire := schema.BatchMessage{Payments: make([]schema.Intent, n)}
	for i := range n {
		child, err := payments.ChildKey(key, i)
		if err != nil {
			w.Fatal(err)
		}
		o := w.order(child)
		o.Money.Customer = w.order(key).Money.Customer + "x" + fmt.Sprint(i)
		o.Money.Amount += int64(i)
		p.orders = append(p.orders, o)
		wire.Payments[i] = schema.Intent{
			Amount: schema.Some(o.Money.Amount), Currency: schema.Some(o.Money.Currency), Customer: schema.Some(o.Money.Customer),
			PaymentMethod: schema.Some(o.method), Metadata: o.metadata,
		}
	}
	var err error
	if p.body, err = schema.EncodeBatch(wire); err != nil {
		w.Fatal(err)
	}
	return p
}

// relaid is the same request in another layout: other order of members, other white space, other case of the currency.
func (p parcel) relaid(w *world) parcel {
	w.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(p.body))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	if err != nil {
		w.Fatal(err)
	}
	if p.body, err = json.MarshalIndent(value, " ", "\t"); err != nil {
		w.Fatal(err)
	}
	p.body = bytes.ReplaceAll(p.body, []byte(`"usd"`), []byte(`"USD"`))
	return p
}

// expectParcel enters what a request asks for into the producers' account of the run.
func (w *world) expectParcel(p parcel) {
	for _, o := range p.orders {
		w.expect(o)
	}
}

// answer is what the API says to a request.
type answer struct {
	status     int
	replayed   bool
	retryAfter string
	document   struct {
		ID       string   `json:"id"`
		Code     string   `json:"code"`
		Amount   int64    `json:"amount"`
		Differs  []string `json:"differs"`
		Payments []struct {
			ID             string `json:"id"`
			IdempotencyKey string `json:"idempotency_key"`
		} `json:"payments"`
	}
}

func (a answer) accepted() bool { return a.status == http.StatusAccepted || a.status == http.StatusOK }

// caller is a client of the API with a key of the usual tenant.
type caller struct {
	*world
	secret string
	client *http.Client
}

// newCaller makes a client; its connections end with the test.
func (w *world) newCaller() *caller {
	w.Helper()
	_, secret, err := w.store.CreateAPIKey(context.Background(), tenant, payments.Scopes(), time.Time{})
	if err != nil {
		w.Fatal(err)
	}
	return w.callerWith(secret)
}

// callerWith is another client, with connections of its own.
func (w *world) callerWith(secret string) *caller {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	w.Cleanup(transport.CloseIdleConnections)
	return &caller{w, secret, &http.Client{Transport: transport, Timeout: 45 * time.Second}}
}

// send makes the request once at the address. An error means that it is not known what has become of it.
func (c *caller) send(ctx context.Context, addr string, p parcel, prefer string) (a answer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+p.path, bytes.NewReader(p.body))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // the transport shall repeat nothing by itself: repeats are what the tests are about
	r.Header.Set("Authorization", "Bearer "+c.secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(schema.HeaderIdempotencyKey, p.key)
	if prefer != "" {
		r.Header.Set("Prefer", prefer)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	a.status, a.replayed = response.StatusCode, response.Header.Get("Idempotent-Replayed") == "true"
	a.retryAfter = response.Header.Get("Retry-After")
	if err := json.Unmarshal(body, &a.document); err != nil {
		c.Errorf("%s: %d with a body that is no document: %q", p.key, a.status, body)
	}
	return a, nil
}

// check holds an answer against its request: it is accepted under the ids that its keys name, or it is 503 with a time to come again.
func (c *caller) check(p parcel, a answer) {
	switch {
	case a.status == http.StatusServiceUnavailable:
		if a.document.Code != "unavailable" || a.retryAfter == "" {
			c.Errorf("%s: 503 with code %q, Retry-After %q", p.key, a.document.Code, a.retryAfter)
		}
	case !a.accepted():
		c.Errorf("%s: %d %s", p.key, a.status, a.document.Code)
	case a.document.ID != p.id():
		c.Errorf("%s is answered as %q, and is %s", p.key, a.document.ID, p.id())
	case !p.batch() && a.document.Amount != p.orders[0].Money.Amount:
		c.Errorf("%s: the answer says %d", p.key, a.document.Amount)
	case p.batch() && len(a.document.Payments) != len(p.orders):
		c.Errorf("%s: %d payments in the answer, want %d", p.key, len(a.document.Payments), len(p.orders))
	case p.batch():
		for i, child := range a.document.Payments {
			if o := p.orders[i]; child.ID != o.id().String() || child.IdempotencyKey != o.Key {
				c.Errorf("%s: payment %d is %q under %q", p.key, i, child.ID, child.IdempotencyKey)
			}
		}
	}
}

// tries counts what one request came to.
type tries struct {
	unknown, refused int // connections that broke, and answers 503
	answer
}

// insist repeats the request under its key, each time where at says, until it is accepted. It fails the test when that never comes.
func (c *caller) insist(p parcel, prefer string, at func() string) (t tries) {
	c.expectParcel(p)
	ctx, cancel := context.WithTimeout(context.Background(), restLimit)
	defer cancel()
	for {
		var err error
		t.answer, err = c.send(ctx, at(), p, prefer)
		switch {
		case ctx.Err() != nil:
			c.Errorf("%s was not accepted in time: %v %d", p.key, err, t.status)
			return t
		case err != nil:
			t.unknown++
		default:
			c.check(p, t.answer)
			if t.status != http.StatusServiceUnavailable {
				if t.accepted() {
					for _, o := range p.orders {
						c.acknowledged(o.id())
					}
				}
				return t
			}
			t.refused++
		}
		await(ctx, 20*time.Millisecond+rand.N(60*time.Millisecond))
	}
}

// await is the pause of a client between two tries.
func await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// house is an address behind which processes come and go.
type house struct {
	mu   sync.Mutex
	addr string
}

func (h *house) set(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr = addr
}

func (h *house) at() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr
}

// anyPort and unlimited are the settings of a process with the API.
const (
	anyPort   = "ONCEPAY_HTTP_ADDR=127.0.0.1:0"
	unlimited = "ONCEPAY_API_RATE=0"
)

// spawnDoor starts a process with the API, and with the roles if they are given.
func (w *world) spawnDoor(roles ...string) *process {
	w.Helper()
	settings := []string{anyPort, unlimited}
	if len(roles) > 0 {
		settings = append(settings, "ONCEPAY_ROLES="+strings.Join(roles, ","))
	}
	return w.spawn(script{}, settings...)
}

// address waits until the process works, and is where its API is.
func (p *process) address() string {
	p.world.Helper()
	p.awaitLine(saysReady)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if addr, ok := strings.CutPrefix(line, saysReady+" "); ok && addr != "" {
			return addr
		}
	}
	p.world.Fatal("the process serves no HTTP")
	return ""
}
