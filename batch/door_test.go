package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// fakeAPI is the two routes that a run needs, as the HTTP door answers them, with faults. What it accepted is there for ever.
type fakeAPI struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	batches  map[string]*acceptedBatch
	order    []string
	posts    int // that arrived
	inFlight int
	most     int // in flight at once
	byKey    map[string]int
	rounds   int // pages that were read
	reads    int // payments that were read

	// fault, when set, may answer a request itself, before it is looked at. n counts POSTs from 1.
	fault func(w http.ResponseWriter, r *http.Request, n int) (answered bool) // set it while nothing is on its way
	// lose, when set, says that the answer to the n-th POST is lost after it was accepted.
	lose func(n int) bool
	// status is what the i-th payment of a batch is shown with; succeeded by default.
	status func(key string, i, round int) payments.Status
	// arrived, when set, is told of each accepted key, outside the lock.
	arrived func(key string)
}

type acceptedBatch struct {
	body    []byte
	message schema.BatchMessage
}

const testKey = "opk_test"

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{t: t, batches: map[string]*acceptedBatch{}, byKey: map[string]int{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func problem(w http.ResponseWriter, status int, code string, more map[string]any) {
	body := map[string]any{"status": status, "code": code, "title": "a title", "detail": "a detail"}
	for k, v := range more {
		body[k] = v
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		problem(w, 401, "unauthorized", nil)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/v1/batches" {
		f.list(w, r)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/v1/payments" {
		f.payment(w, r.URL.Query().Get("idempotency_key"))
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/batches" {
		problem(w, 404, "not_found", nil)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	f.mu.Lock()
	f.posts++
	n := f.posts
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inFlight--
		f.mu.Unlock()
	}()
	if f.fault != nil && f.fault(w, r, n) {
		return
	}
	f.accept(w, r, body, n)
}

func (f *fakeAPI) accept(w http.ResponseWriter, r *http.Request, body []byte, n int) {
	key, present, err := schema.ParseKeyHeader(r.Header.Values(schema.HeaderIdempotencyKey))
	if err != nil || !present {
		problem(w, 400, "idempotency_key_invalid", nil)
		return
	}
	message, err := schema.DecodeBatch(body)
	if err != nil {
		problem(w, 400, "invalid_request", map[string]any{"errors": []FieldError{{"body", "cannot be decoded"}}})
		return
	}
	request := requestOf(key, message)
	if wrong := request.Validate(); wrong != nil {
		problem(w, 400, "invalid_request", map[string]any{"errors": []FieldError{{wrong.Fields[0].Field, wrong.Fields[0].Message}}})
		return
	}
	f.mu.Lock()
	f.byKey[key]++
	there := f.batches[key]
	if there == nil {
		f.batches[key] = &acceptedBatch{body: body, message: message}
		f.order = append(f.order, key)
	}
	arrived := f.arrived
	f.mu.Unlock()
	if there != nil {
		if differs := request.Differs(there.message.Parent.Value, requestOf(key, there.message).Children()); len(differs) > 0 {
			problem(w, 422, "idempotency_key_reused", map[string]any{"differs": differs})
			return
		}
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if arrived != nil {
		arrived(key)
	}
	if f.lose != nil && f.lose(n) {
		panic(http.ErrAbortHandler)
	}
	var children []payments.Payment
	for i, c := range request.Children() {
		status := payments.StatusReceived
		if there != nil {
			status = f.statusOf(key, i)
		}
		children = append(children, payments.Payment{Intent: c, ID: c.ID(), Status: status})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(document.BatchAccepted(payments.Batch{TenantID: "t", IdempotencyKey: key}, children))
}

func requestOf(key string, m schema.BatchMessage) payments.BatchRequest {
	r := payments.BatchRequest{TenantID: "t", IdempotencyKey: key, Parent: m.Parent.Value}
	for _, in := range m.Payments {
		r.Payments = append(r.Payments, document.ReadIntent(in, "t", ""))
	}
	return r
}

func (f *fakeAPI) statusOf(key string, i int) payments.Status {
	if f.status == nil {
		return payments.StatusSucceeded
	}
	return f.status(key, i, f.rounds)
}

// payment shows one payment, failed ones with what a bank says.
func (f *fakeAPI) payment(w http.ResponseWriter, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	name, number, _ := strings.Cut(key, payments.ChildSeparator)
	i, err := strconv.Atoi(number)
	list := schema.List[schema.Payment]{Data: []schema.Payment{}}
	if b := f.batches[name]; b != nil && err == nil && i < len(b.message.Payments) {
		child := requestOf(name, b.message).Children()[i]
		p := payments.Payment{Intent: child, ID: child.ID(), Status: f.statusOf(name, i)}
		if p.Status == payments.StatusFailed {
			p.Reason, p.Failure = "card_declined", &payments.Failure{Code: "card_declined", DeclineCode: "insufficient_funds", Message: "no"}
		}
		list.Data = append(list.Data, document.Payment(p))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	if err != nil {
		problem(w, 400, "invalid_request", nil)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds++
	page := schema.List[schema.Batch]{Data: []schema.Batch{}}
	var of []string
	for _, key := range f.order {
		if f.batches[key].message.Parent.Value == r.URL.Query().Get("parent") {
			of = append(of, key)
		}
	}
	for ; at < len(of) && len(page.Data) < limit; at++ {
		page.Data = append(page.Data, f.show(of[at]))
	}
	if at < len(of) {
		next := strconv.Itoa(at)
		page.NextCursor = &next
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page)
}

func (f *fakeAPI) show(key string) schema.Batch {
	message := f.batches[key].message
	state := payments.BatchState{Batch: payments.Batch{TenantID: "t", IdempotencyKey: key, Parent: message.Parent.Value, Count: len(message.Payments)}}
	for i, in := range message.Payments {
		state.Totals = append(state.Totals, payments.StatusTotal{Status: f.statusOf(key, i), Currency: in.Currency.Value, Count: 1, Amount: in.Amount.Value})
	}
	return document.Batch(state)
}

// holds checks that the API holds exactly the plan's chunks, each with the bytes that the plan hashed.
func (f *fakeAPI) holds(plan *Plan) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.batches) != plan.Batches() {
		f.t.Errorf("%d batches, want %d", len(f.batches), plan.Batches())
	}
	for i := range plan.Batches() {
		b := f.batches[Key(plan.Run, i)]
		if b == nil || !plan.chunks.is(i, sha256.Sum256(b.body)) {
			f.t.Errorf("batch %d is missing, or other bytes", i)
		}
	}
}

// holdsOnly checks that whatever the API holds is a chunk of the plan.
func (f *fakeAPI) holdsOnly(plan *Plan) {
	f.t.Helper()
	f.settle()
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, b := range f.batches {
		if i, ok := plan.number(key); !ok || !plan.chunks.is(i, sha256.Sum256(b.body)) {
			f.t.Errorf("%s is none of the plan's", key)
		}
	}
}

// tell calls arrived for each accepted key from now on.
func (f *fakeAPI) tell(arrived func(key string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived = arrived
}

// counts are the accepted batches, and the POSTs that arrived.
func (f *fakeAPI) counts() (batches, posts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches), f.posts
}

// forget is as if a batch had never arrived.
func (f *fakeAPI) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.batches, key)
	f.order = slices.DeleteFunc(f.order, func(k string) bool { return k == key })
}

// has is an accepted batch, or nil.
func (f *fakeAPI) has(key string) *acceptedBatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.batches[key]
}

// door is a client of the API.
func (f *fakeAPI) door(timeout time.Duration) *Client {
	f.t.Helper()
	c, err := NewClient(ClientOptions{URL: f.url, APIKey: testKey, Timeout: timeout, Connections: 16})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

// clock is a clock that waiting moves on, so that nothing has to wait.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *clock) patience(giveUp time.Duration) Patience {
	return Patience{
		Now:    func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now },
		Random: func(n int64) int64 { return n - 1 },
		Wait: func(ctx context.Context, d time.Duration) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.now = c.now.Add(d)
			c.waits = append(c.waits, d)
			return ctx.Err()
		},
		GiveUp: giveUp,
	}
}

func (c *clock) waited(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.waits, d)
}

// csvOf is a file of n good rows.
func csvOf(n int) []byte {
	var b bytes.Buffer
	b.WriteString("amount,currency,customer,payment_method\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,usd,cus_%d,pm_card_visa\n", 100+i, i)
	}
	return b.Bytes()
}

func sourceOf(data []byte) Source {
	return func() (io.Reader, error) { return bytes.NewReader(data), nil }
}

func planOf(t *testing.T, run string, data []byte) *Plan {
	t.Helper()
	plan, err := Check(t.Context(), sourceOf(data), FileOptions{Run: run, Format: CSV})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
