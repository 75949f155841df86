package clients

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// patience is what the proxy's 503 asks for.
const patience = 2 * time.Second

// proxy stands between a client and the API. Of the POSTs under one key the first reaches the API, and its answer is lost; the second is
// answered 503 with Retry-After and does not; from the third on they pass.
type proxy struct {
	url  string
	next string

	mu     sync.Mutex
	posts  map[string][]time.Time // by key
	bodies map[string][]string
}

func startProxy(t *testing.T, next string) *proxy {
	t.Helper()
	p := &proxy{next: next, posts: map[string][]time.Time{}, bodies: map[string][]string{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// ServeHTTP passes a request on, or does one of the above.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	nth := 0
	if r.Method == http.MethodPost {
		nth = p.note(r.Header.Get("Idempotency-Key"), string(body))
	}
	if nth == 2 {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, p.next+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	on.Header = r.Header.Clone()
	answer, err := http.DefaultTransport.RoundTrip(on)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || nth == 1 {
		panic(http.ErrAbortHandler) // the connection breaks after the API has done its work
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(text) // the client has gone
}

func (p *proxy) note(key, body string) (nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posts[key] = append(p.posts[key], time.Now())
	p.bodies[key] = append(p.bodies[key], body)
	return len(p.posts[key])
}

// seen returns when the POSTs under a key came, and with what.
func (p *proxy) seen(key string) ([]time.Time, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.posts[key], p.bodies[key]
}
