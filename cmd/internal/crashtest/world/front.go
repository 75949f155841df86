package world

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// Front stands before the simulator and can spoil what Stripe tells of its records.
type Front struct {
	Records atomic.Int32
	Reads   atomic.Int32 // while RecordsEmpty
}

// What readings of records are answered.
const (
	RecordsTrue  = iota
	RecordsAway  // 503
	RecordsEmpty // a complete listing and complete events, with nothing in them
)

// NewFront puts a front before the world's simulator.
func (w *World) NewFront() *Front {
	w.Helper()
	target, err := url.Parse(w.SimURL)
	if err != nil {
		w.Fatal(err)
	}
	f := &Front{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && (r.URL.Path == "/v1/payment_intents" || r.URL.Path == "/v1/events") {
			switch f.Records.Load() {
			case RecordsAway:
				http.Error(rw, "away", http.StatusServiceUnavailable)
				return
			case RecordsEmpty:
				f.Reads.Add(1)
				rw.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(rw, `{"object":"list","data":[],"has_more":false,"url":%q}`, r.URL.Path)
				return
			}
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.SimURL = server.URL
	w.Cleanup(server.Close)
	return f
}

// AbsenceNoted reports whether a complete listing without the payment has been written down.
func (w *World) AbsenceNoted(o Order) bool {
	w.Helper()
	p, err := w.Store.Find(w.Context(), o.TenantID, o.ID())
	if err != nil {
		w.Fatal(err)
	}
	return !p.AbsentAt.IsZero()
}
