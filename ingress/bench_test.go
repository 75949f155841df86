package ingress

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// instantStore admits everything and keeps nothing.
type instantStore struct{ *fakeStore }

func (instantStore) Admit(_ context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	return payments.Admission{Verdict: payments.VerdictStored, Payment: payments.Payment{Intent: r.Intent, ID: r.Intent.ID(), Status: payments.StatusReceived}}, nil
}

// discard is a response that nobody reads.
type discard struct{ h http.Header }

func (d discard) Header() http.Header       { return d.h }
func (discard) WriteHeader(int)             {}
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) clear()                    { clear(d.h) }

// BenchmarkCreatePayment is the door's own work on a payment: everything but net/http's connection and the store.
func BenchmarkCreatePayment(b *testing.B) {
	clock := systemClock{}
	store := newFakeStore(clock)
	store.addKey(acmeSecret, "acme", payments.Scopes()...)
	api, err := New(Config{
		Store: instantStore{store}, FollowUps: store, Batches: store, Reader: store, FollowUpReader: store, Keys: store, Clock: clock, Log: slog.New(slog.DiscardHandler), Rate: 1e9,
		Unpublished: func(context.Context) (int64, error) { return 0, nil }, UnpublishedMax: 10,
	})
	if err != nil {
		b.Fatal(err)
	}
	h := api.Handler()
	b.ReportAllocs()
	w := discard{http.Header{}}
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest("POST", "/v1/payments", strings.NewReader(goodBody))
		r.Header = http.Header{"Authorization": {"Bearer " + acmeSecret}, "Content-Type": {"application/json"}, "Idempotency-Key": {"order-" + strconv.Itoa(i)}}
		w.clear()
		h.ServeHTTP(w, r)
	}
}
