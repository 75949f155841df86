package ingress

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// unreadWriter is a client that reads nothing of its answer until the gate is open.
type unreadWriter struct {
	*httptest.ResponseRecorder
	held chan<- struct{}
	gate <-chan struct{}
}

func (w *unreadWriter) Write(b []byte) (int, error) {
	w.held <- struct{}{}
	<-w.gate
	return w.ResponseRecorder.Write(b)
}

// An answer that is not read, whatever it says, holds neither a place of everybody's nor one of the batches; it holds the share of its own API key, which
// bounds how many of them there are.
func TestUnreadAnswersHoldNoPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.api.crowd.most = 2*longShare + 2
	held, gate := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	unread := func(r *http.Request) {
		group.Go(func() { d.api.Handler().ServeHTTP(&unreadWriter{httptest.NewRecorder(), held, gate}, r) })
		<-held
	}
	unread(newRequest("GET", "/v1/payments", ""))
	unread(newRequest("POST", "/v1/batches", goodBatch, with("Idempotency-Key", "run")))
	unread(newRequest("POST", "/v1/payments", goodBody, with("Idempotency-Key", "order-1")))
	unread(newRequest("GET", "/v1/payments/"+payments.NewID("acme", "order-9").String(), "")) // a problem
	unread(newRequest("GET", "/v1/payments", "", as("opk_nobody")))
	if places, batches := len(d.api.inFlight), len(d.api.batches); places != 0 || batches != 0 {
		t.Errorf("they hold %d places, and %d of the batches", places, batches)
	}
	if shares := d.api.crowd.byKey["key_"+acmeSecret]; shares != 2*longShare+2 {
		t.Errorf("their API key has %d shares", shares)
	}
	d.post("/v1/payments", "order-2", goodBody).is(t, "one more of this API key", 429, "rate_limited")
	if got := d.post("/v1/payments", "order-2", goodBody, as(globexSecret)); got.status != 202 {
		t.Errorf("another caller: %d %s", got.status, got.body)
	}
	close(gate)
	group.Wait()
	if got := d.post("/v1/payments", "order-2", goodBody); got.status != 202 || len(d.api.crowd.byKey) != 0 {
		t.Errorf("once they are read: %d, %v", got.status, d.api.crowd.byKey)
	}
}

// One API key alone fills neither the door nor the room of the batches, and what may take much memory counts for more.
func TestSharesOfOneKey(t *testing.T) {
	t.Parallel()
	if ofOneKeyMax*4 > inFlightMax || ofOneKeyMax/longShare*2 > batchesMax {
		t.Errorf("%d shares, %d for a batch, of %d places and %d batches", ofOneKeyMax, longShare, inFlightMax, batchesMax)
	}
	var long []string
	for _, r := range routes {
		if r.shares == longShare {
			long = append(long, r.Method+" "+r.Path)
		} else if r.shares != 1 {
			t.Errorf("%s %s takes %d shares", r.Method, r.Path, r.shares)
		}
	}
	if want := []string{"GET /v1/payments", "GET /v1/payments/{id}/events", "GET /v1/payments/{id}/refunds", "POST /v1/batches", "GET /v1/batches"}; !slices.Equal(long, want) {
		t.Errorf("%v", long)
	}
}
