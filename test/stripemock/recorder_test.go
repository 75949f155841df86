package stripemock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

const (
	testKey   = "sk_test_oncepay"
	namespace = "oncepay"
	accountID = "acct_1Mock"
)

// call is one request as it reached stripe-mock, and the status of its answer.
type call struct {
	method, path, query, body string
	header                    http.Header
	status                    int
	answer                    string
}

// accepted reports whether stripe-mock took the request.
func (c call) accepted() bool { return c.status >= 200 && c.status <= 299 }

// names lists the request's parameters, the client's metadata under one name.
func (c call) names(t testing.TB) []string {
	t.Helper()
	values, err := url.ParseQuery(c.body + c.query)
	if err != nil {
		t.Fatal(err)
	}
	return parameterNames(values)
}

func parameterNames(values url.Values) []string {
	seen := map[string]bool{}
	for name := range values {
		if strings.HasPrefix(name, "metadata[") && !strings.HasPrefix(name, "metadata["+payments.MetadataReservedNamePrefix) {
			name = "metadata[…]"
		}
		seen[name] = true
	}
	var list []string
	for name := range seen {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// recorder stands before stripe-mock: it hands every request on as it came, and keeps it with its answer.
type recorder struct {
	url string
	// tamper, when set, changes a request on its way; edit, when set, an answer.
	tamper func(r *http.Request, body string) string
	edit   func(c call, answer string) string

	mu    sync.Mutex
	calls []call
}

type bodyKey struct{}

// newRecorder returns a recorder of this test's. Unless it tampers, every request must have been accepted when the test ends.
func newRecorder(t testing.TB) *recorder {
	t.Helper()
	r := &recorder{}
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", mock.http, ""
			p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops what it cannot parse: stripe-mock is to judge
		},
		ModifyResponse: r.keep,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, q *http.Request, err error) {
			r.add(call{method: q.Method, path: q.URL.Path, answer: err.Error()})
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, err := io.ReadAll(q.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		body := string(b)
		if r.tamper != nil {
			body = r.tamper(q, body)
		}
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		q.Header.Set("Content-Length", fmt.Sprint(len(body)))
		proxy.ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), bodyKey{}, body)))
	}))
	r.url = server.URL
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
		if r.tamper == nil {
			for _, complaint := range r.complaints() {
				t.Error(complaint)
			}
		}
	})
	return r
}

// keep records an answer on its way back.
func (r *recorder) keep(resp *http.Response) error {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	q := resp.Request
	body, _ := q.Context().Value(bodyKey{}).(string)
	c := call{
		method: q.Method, path: q.URL.Path, query: q.URL.RawQuery, body: body, header: q.Header.Clone(), status: resp.StatusCode, answer: string(b),
	}
	answer := string(b)
	if c.path == "/v1/account" && c.accepted() {
		answer = ownAccount(answer)
	}
	if r.edit != nil {
		answer = r.edit(c, answer)
	}
	r.add(c)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader([]byte(answer))), int64(len(answer))
	resp.Header.Set("Content-Length", fmt.Sprint(len(answer)))
	return nil
}

// ownAccount gives the account one id: stripe-mock makes up another with every answer. What is no object stays as it is.
func ownAccount(answer string) string {
	var account map[string]any
	if json.Unmarshal([]byte(answer), &account) != nil {
		return answer
	}
	account["id"] = accountID
	b, _ := json.Marshal(account) // it was read from JSON
	return string(b)
}

func (r *recorder) add(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// all returns the calls so far.
func (r *recorder) all() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// complaints says of every request that stripe-mock did not take, or that its specification does not allow, what it was and why.
func (r *recorder) complaints() []string {
	var list []string
	for _, c := range r.all() {
		request := fmt.Sprintf("%s %s?%s %s", c.method, c.path, c.query, c.body)
		if breaches := specified.breaches(c); !c.accepted() {
			list = append(list, fmt.Sprintf("%s was refused with %d: %s", request, c.status, c.message()))
		} else if len(breaches) > 0 {
			list = append(list, fmt.Sprintf("%s has what the specification does not allow: %s", request, strings.Join(breaches, ", ")))
		}
	}
	return list
}

// message is what the answer says of a refusal; what is not of Stripe's form is shown as it is.
func (c call) message() string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(c.answer), &e) != nil || e.Error.Message == "" {
		return c.answer
	}
	return e.Error.Message
}

// gateway returns a Gateway that reaches stripe-mock through the recorder.
func (r *recorder) gateway(t testing.TB, change ...func(*stripe.Options)) *stripe.Gateway {
	t.Helper()
	o := stripe.Options{Key: testKey, URL: r.url, Namespace: namespace, Timeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	g, err := stripe.New(t.Context(), o)
	if err != nil {
		t.Fatalf("New: %v (%s)", err, strings.Join(r.complaints(), "; "))
	}
	t.Cleanup(g.Close)
	return g
}
