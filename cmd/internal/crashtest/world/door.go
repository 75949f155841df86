package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/ingress"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// turns bounds how many tests of the API run side by side: each of them is a crowd with processes of its own, and their neighbours' leases are short.
var turns = make(chan struct{}, 2)

// TakeTurn waits for a turn, which ends with the test and all that it has started.
func TakeTurn(t *testing.T) {
	t.Helper()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// Parcel is one request to the HTTP API: a payment, or a batch of them.
type Parcel struct {
	Path   string
	Key    string
	Body   []byte
	Orders []Order // the payments that it asks for, under their own keys
}

const (
	paymentsPath = "/v1/payments"
	BatchesPath  = "/v1/batches"
)

// Batch reports whether it asks for a batch.
func (p Parcel) Batch() bool { return p.Path == BatchesPath }

// ID is what its answers must call it.
func (p Parcel) ID() string {
	kind := payments.KindCharge
	if p.Batch() {
		kind = payments.KindBatch
	}
	return payments.NewID(Tenant, p.Key).Format(kind)
}

// Single is the request for one payment of its own.
func (w *World) Single(key string) Parcel {
	w.Helper()
	o := w.Order(key)
	return Parcel{Path: paymentsPath, Key: key, Body: o.Body(w), Orders: []Order{o}}
}

// BatchOf is the request for a batch of n payments.
func (w *World) BatchOf(key string, n int) Parcel {
	w.Helper()
	p := Parcel{Path: BatchesPath, Key: key}
	wire := schema.BatchMessage{Payments: make([]schema.Intent, n)}
	for i := range n {
		child, err := payments.ChildKey(key, i)
		if err != nil {
			w.Fatal(err)
		}
		o := w.Order(child)
		o.Money.Customer = w.Order(key).Money.Customer + "x" + fmt.Sprint(i)
		o.Money.Amount += int64(i)
		p.Orders = append(p.Orders, o)
		wire.Payments[i] = schema.Intent{
			Amount: schema.Some(o.Money.Amount), Currency: schema.Some(o.Money.Currency), Customer: schema.Some(o.Money.Customer),
			PaymentMethod: schema.Some(o.Method), Metadata: o.Metadata,
		}
	}
	var err error
	if p.Body, err = schema.EncodeBatch(wire); err != nil {
		w.Fatal(err)
	}
	return p
}

// Relaid is the same request in another layout: other order of members, other white space, other case of the currency.
func (p Parcel) Relaid(w *World) Parcel {
	w.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(p.Body))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	if err != nil {
		w.Fatal(err)
	}
	if p.Body, err = json.MarshalIndent(value, " ", "\t"); err != nil {
		w.Fatal(err)
	}
	p.Body = bytes.ReplaceAll(p.Body, []byte(`"usd"`), []byte(`"USD"`))
	return p
}

// ExpectParcel enters what a request asks for into the producers' account of the run.
func (w *World) ExpectParcel(p Parcel) {
	for _, o := range p.Orders {
		w.Expect(o)
	}
}

// Answer is what the API says to a request.
type Answer struct {
	Status     int
	Replayed   bool
	retryAfter string
	Document   struct {
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

// Accepted reports whether what was asked for is stored.
func (a Answer) Accepted() bool { return a.Status == http.StatusAccepted || a.Status == http.StatusOK }

// Caller is a client of the API with a key of the usual tenant.
type Caller struct {
	*World
	Secret string
	Client *http.Client
}

// NewCaller makes a client; its connections end with the test.
func (w *World) NewCaller() *Caller {
	w.Helper()
	_, secret, err := w.Store.CreateAPIKey(context.Background(), Tenant, payments.Scopes(), time.Time{})
	if err != nil {
		w.Fatal(err)
	}
	return w.CallerWith(secret)
}

// CallerWith is another client, with connections of its own.
func (w *World) CallerWith(secret string) *Caller {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	w.Cleanup(transport.CloseIdleConnections)
	return &Caller{w, secret, &http.Client{Transport: transport, Timeout: 45 * time.Second}}
}

// Send makes the request once at the address. An error means that it is not known what has become of it.
func (c *Caller) Send(ctx context.Context, addr string, p Parcel, prefer string) (a Answer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+p.Path, bytes.NewReader(p.Body))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // the transport shall repeat nothing by itself: repeats are what the tests are about
	r.Header.Set("Authorization", "Bearer "+c.Secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(schema.HeaderIdempotencyKey, p.Key)
	if prefer != "" {
		r.Header.Set("Prefer", prefer)
	}
	response, err := c.Client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	a.Status, a.Replayed = response.StatusCode, response.Header.Get("Idempotent-Replayed") == "true"
	a.retryAfter = response.Header.Get("Retry-After")
	if err := json.Unmarshal(body, &a.Document); err != nil {
		c.Errorf("%s: %d with a body that is no document: %q", p.Key, a.Status, body)
	}
	return a, nil
}

// Check holds an answer against its request: it is accepted under the ids that its keys name, or it is 503 with a time to come again.
func (c *Caller) Check(p Parcel, a Answer) {
	switch {
	case a.Status == http.StatusServiceUnavailable:
		if a.Document.Code != "unavailable" || a.retryAfter == "" {
			c.Errorf("%s: 503 with code %q, Retry-After %q", p.Key, a.Document.Code, a.retryAfter)
		}
	case !a.Accepted():
		c.Errorf("%s: %d %s", p.Key, a.Status, a.Document.Code)
	case a.Document.ID != p.ID():
		c.Errorf("%s is answered as %q, and is %s", p.Key, a.Document.ID, p.ID())
	case !p.Batch() && a.Document.Amount != p.Orders[0].Money.Amount:
		c.Errorf("%s: the answer says %d", p.Key, a.Document.Amount)
	case p.Batch() && len(a.Document.Payments) != len(p.Orders):
		c.Errorf("%s: %d payments in the answer, want %d", p.Key, len(a.Document.Payments), len(p.Orders))
	case p.Batch():
		for i, child := range a.Document.Payments {
			if o := p.Orders[i]; child.ID != o.ID().String() || child.IdempotencyKey != o.Key {
				c.Errorf("%s: payment %d is %q under %q", p.Key, i, child.ID, child.IdempotencyKey)
			}
		}
	}
}

// Tries counts what one request came to.
type Tries struct {
	Unknown, Refused int // connections that broke, and answers 503
	Answer
}

// Insist repeats the request under its key, each time where at says, until it is accepted. It fails the test when that never comes.
func (c *Caller) Insist(p Parcel, prefer string, at func() string) (t Tries) {
	c.ExpectParcel(p)
	ctx, cancel := context.WithTimeout(context.Background(), RestLimit)
	defer cancel()
	for {
		var err error
		t.Answer, err = c.Send(ctx, at(), p, prefer)
		switch {
		case ctx.Err() != nil:
			c.Errorf("%s was not accepted in time: %v %d", p.Key, err, t.Status)
			return t
		case err != nil:
			t.Unknown++
		default:
			c.Check(p, t.Answer)
			if t.Status != http.StatusServiceUnavailable {
				if t.Accepted() {
					for _, o := range p.Orders {
						c.Acknowledged(o.ID())
					}
				}
				return t
			}
			t.Refused++
		}
		Await(ctx, 20*time.Millisecond+rand.N(60*time.Millisecond))
	}
}

// Await is the pause of a client between two tries.
func Await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// House is an address behind which processes come and go.
type House struct {
	mu   sync.Mutex
	addr string
}

// Set says where the next requests go.
func (h *House) Set(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr = addr
}

// At is where requests go now.
func (h *House) At() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr
}

// anyPort and unlimited are the settings of a process with the API.
const (
	anyPort   = "ONCEPAY_HTTP_ADDR=127.0.0.1:0"
	unlimited = "ONCEPAY_API_RATE=0"
)

// SpawnDoor starts a process with the API, and with the roles if they are given.
func (w *World) SpawnDoor(roles ...string) *Process {
	w.Helper()
	settings := []string{anyPort, unlimited}
	if len(roles) > 0 {
		settings = append(settings, "ONCEPAY_ROLES="+strings.Join(roles, ","))
	}
	return w.Spawn(Script{}, settings...)
}

// Address waits until the process works, and is where its API is.
func (p *Process) Address() string {
	p.World.Helper()
	p.AwaitLine(saysReady)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if addr, ok := strings.CutPrefix(line, saysReady+" "); ok && addr != "" {
			return addr
		}
	}
	p.World.Fatal("the process serves no HTTP")
	return ""
}

// OpenDoor serves the API in this process, as a serving process does, on the database at dsn. It ends with the returned function.
func (w *World) OpenDoor(dsn string, flush time.Duration) (addr string, end func()) {
	w.Helper()
	log := w.Logs.Logger("door")
	store, err := postgres.Open(context.Background(), dsn, postgres.Options{PoolSize: 4, Namespace: Namespace, Logger: log, Hold: w.Times.Hold, FlushTimeout: flush})
	if err != nil {
		w.Fatal(err)
	}
	api, err := ingress.New(ingress.Config{
		Store: store, FollowUps: store, Batches: store, Reader: store, FollowUpReader: store, Keys: store, Unpublished: store.Unpublished, UnpublishedMax: 100_000, Clock: app.SystemClock{}, Log: log,
	})
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = ingress.Server(api.Handler())
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = api.Run(ctx) })
	return server.Listener.Addr().String(), func() {
		cancel()
		server.Close()
		waiting.Wait()
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = store.Close(closing) // one that is cut off cannot flush
	}
}

// Message is the request as it goes through NATS, and where.
func (w *World) Message(p Parcel) (subject string, data []byte) {
	w.Helper()
	if !p.Batch() {
		return w.IntentSubject(Tenant), p.Body
	}
	subject, err := w.Subjects.Batch(Tenant)
	if err != nil {
		w.Fatal(err)
	}
	wire, err := schema.DecodeBatch(p.Body)
	if err == nil {
		wire.IdempotencyKey = schema.Some(p.Key)
		data, err = schema.EncodeBatch(wire)
	}
	if err != nil {
		w.Fatal(err)
	}
	return subject, data
}
