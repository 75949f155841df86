package stripe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// idleTimeout is short, since a connection that the other side closes while we write leaves an unclear outcome behind.
	idleTimeout = 30 * time.Second
	// answerMax bounds what is read of one answer: a page of 100 PaymentIntents with full metadata is about 4 MiB.
	answerMax = 16 << 20
	// answerRoomMax bounds the room that is made for an answer on its word.
	answerRoomMax = 64 << 10
)

var (
	errNoExchange    = errors.New("a request that no exchange stands for may not leave")
	errSecondRequest = errors.New("a call makes one request; a second one may not leave")
	errTooLong       = errors.New("the answer is too long")
)

// exchange is one call: the request that must leave, byte for byte, and what came back. Only the goroutine of the call touches it.
type exchange struct {
	method string
	path   string
	query  string // of a GET
	form   string // of a POST
	key    string // Idempotency-Key, of a POST
	gate   *passage

	begun     bool
	bug       error // the request was not the one above; nothing left
	maybeSent bool  // a byte may have left
	heldBack  error // what MayLeave said; nothing left
	err       error // no answer, or not all of it
	status    int
	header    http.Header
	body      []byte
}

type exchangeKey struct{}

// transport carries one request per exchange and keeps its answer. It never sends anything twice.
type transport struct {
	inner   http.RoundTripper
	base    string // URL without a trailing slash
	key     string
	account string // Stripe-Account, or ""
}

// RoundTrip sends the request of the exchange in the request's context. A second request of the same exchange (a redirect, a retry of the
// SDK) is refused.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		return nil, errNoExchange
	}
	if x.begun {
		return nil, errSecondRequest
	}
	x.begun = true
	out, err := t.rebuild(req, x)
	if err != nil {
		x.bug = err
		return nil, err
	}
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { arm(i.Conn, x.gate) }}
	resp, err := t.inner.RoundTrip(out.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	x.maybeSent, x.heldBack = x.gate.shut()
	if err != nil {
		x.err = err
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	x.body, x.err = readAnswer(resp.Body, resp.ContentLength)
	if x.err != nil {
		return nil, x.err
	}
	return nothing(resp), nil
}

// nothing is the answer that the SDK sees: it would decode the real one, which the exchange has, once more.
func nothing(resp *http.Response) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: resp.Proto, ProtoMajor: resp.ProtoMajor, ProtoMinor: resp.ProtoMinor,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: resp.Request,
	}
}

// empty reports whether a request has no body.
func empty(body io.Reader) bool {
	if body == nil || body == http.NoBody {
		return true
	}
	var one [1]byte
	n, err := io.ReadFull(body, one[:])
	return n == 0 && err == io.EOF
}

// sentHeaders are the headers of our requests, by their canonical names.
var sentHeaders = []string{"Authorization", "Content-Type", "Stripe-Version", "User-Agent", "Idempotency-Key", "Stripe-Account"}

// rebuild checks that the SDK made the head of the exchange's request, and returns it with the exchange's body and the headers that we mean
// to send and no others: the SDK would add a description of the machine. Without GetBody net/http has nothing to send a second time.
func (t *transport) rebuild(req *http.Request, x *exchange) (*http.Request, error) {
	want := t.base + x.path
	if x.query != "" {
		want += "?" + x.query
	}
	keys := req.Header.Values("Idempotency-Key")
	switch {
	case req.Method != x.method:
		return nil, errors.New("the method is not the one that was asked for")
	case req.URL.String() != want || (req.Host != "" && req.Host != req.URL.Host):
		return nil, errors.New("the URL is not the one that was asked for")
	case !empty(req.Body):
		return nil, errors.New("the SDK made a body; it is ours to make")
	case x.method == http.MethodPost && (len(keys) != 1 || keys[0] != x.key || !isStripeKey(x.key)):
		return nil, errors.New("the Idempotency-Key is not the payment's 64 hex digits")
	case x.method == http.MethodGet && len(keys) != 0:
		return nil, errors.New("a GET carries an Idempotency-Key")
	case x.method != http.MethodGet && x.method != http.MethodPost:
		return nil, errors.New("only GET and POST are sent")
	case req.Header.Get("Authorization") != "Bearer "+t.key:
		return nil, errors.New("the request is not authorized with our key")
	case req.Header.Get("Stripe-Account") != t.account:
		return nil, errors.New("the request names another account")
	}
	out := &http.Request{
		Method: req.Method, URL: req.URL, Host: req.Host, Header: make(http.Header, len(sentHeaders)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for _, name := range sentHeaders {
		if values := req.Header[name]; len(values) > 0 && values[0] != "" {
			out.Header[name] = values[:1]
		}
	}
	if x.method == http.MethodPost {
		out.Body, out.ContentLength = io.NopCloser(strings.NewReader(x.form)), int64(len(x.form))
	}
	return out, nil
}

// readAnswer reads an answer to its end; an answer that is cut off is an error, whatever its status. length is what its header says, -1 for
// nothing, and only makes room.
func readAnswer(body io.ReadCloser, length int64) ([]byte, error) {
	defer body.Close()
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), answerRoomMax)) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(body, answerMax+1))
	if err == nil && b.Len() > answerMax {
		err = errTooLong
	}
	return b.Bytes(), err
}

// newHTTPTransport returns HTTP/1.1 over gated connections. HTTP/2 is off: it multiplexes, so a write could not be told apart, and it
// re-sends after GOAWAY. A proxy is used for https only, where it forwards bytes that it cannot repeat; for http it could re-send a POST.
func newHTTPTransport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: min(dialTimeout, o.Timeout), KeepAlive: 15 * time.Second}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "https" {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &gatedConn{Conn: conn}, nil
		},
		TLSClientConfig:     o.tlsConfig(),
		TLSHandshakeTimeout: min(dialTimeout, o.Timeout),
		IdleConnTimeout:     idleTimeout,
		MaxIdleConns:        o.MaxConns,
		MaxIdleConnsPerHost: o.MaxConns,
		MaxConnsPerHost:     o.MaxConns,
		DisableCompression:  true, // a few KB are inflated for more CPU time than they are worth
		Protocols:           &protocols,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// isStripeKey reports whether the key has the form that payments.StripeKey makes.
func isStripeKey(key string) bool {
	if len(key) != 64 {
		return false
	}
	for i := range len(key) {
		if c := key[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
