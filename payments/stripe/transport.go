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

	stripego "github.com/stripe/stripe-go/v76"
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
	errTooLong = errors.New("the answer is too long")
	errUpgrade = errors.New("the answer is none: it switches protocols")
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

// do makes the call of the exchange, within the time-out: one request leaves, or none. All that is to be known of the call stands in the
// exchange afterwards. An exchange that was made is not made again.
func (g *Gateway) do(ctx context.Context, x *exchange) {
	if x.begun {
		return
	}
	x.begun = true
	req, err := g.request(x)
	if err != nil {
		x.bug = err
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { arm(i.Conn, x.gate) }}
	resp, err := g.connections.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	x.maybeSent, x.heldBack = x.gate.shut()
	if err != nil {
		x.err = err
		return
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the bare connection, which no time limit ends
		_ = resp.Body.Close()
		x.err = errUpgrade
		return
	}
	x.status, x.header = resp.StatusCode, resp.Header
	x.body, x.err = readAnswer(resp.Body, resp.ContentLength)
}

// request is the exchange's request, with the headers that we mean to send and no others. Without GetBody net/http has nothing to send a second
// time. What would be sent without its key, or is none of the two methods that we know, is an error.
func (g *Gateway) request(x *exchange) (*http.Request, error) {
	switch {
	case x.method != http.MethodGet && x.method != http.MethodPost:
		return nil, errors.New("only GET and POST are sent")
	case x.method == http.MethodPost && (!isStripeKey(x.key) || x.query != ""):
		return nil, errors.New("the Idempotency-Key is not the payment's 64 hex digits, or a POST has a query")
	case x.method == http.MethodPost && !x.gate.once:
		return nil, errors.New("nothing keeps the POST from leaving twice")
	case x.method == http.MethodGet && (x.key != "" || x.form != ""):
		return nil, errors.New("a GET carries an Idempotency-Key or a body")
	case g.head.Get("Stripe-Account") != g.connected || strings.TrimPrefix(g.head.Get("Authorization"), "Bearer ") != g.key:
		return nil, errors.New("the headers are not those of the key and the account that were asked for")
	case !strings.HasPrefix(x.path, "/v1/") || strings.ContainsAny(x.path, "?#%"):
		return nil, errors.New("the path is none of Stripe's")
	}
	to := *g.base
	to.Path, to.RawQuery = x.path, x.query
	req := &http.Request{
		Method: x.method, URL: &to, Host: to.Host, Header: make(http.Header, len(g.head)+2), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for name, values := range g.head {
		req.Header[name] = values
	}
	if x.method == http.MethodPost {
		req.Header["Idempotency-Key"], req.Header["Content-Type"] = []string{x.key}, formType
		if x.form == "" { // a reader without bytes would be taken for one of unknown length
			req.Body = http.NoBody
			return req, nil
		}
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(x.form)), int64(len(x.form))
	}
	return req, nil
}

var formType = []string{"application/x-www-form-urlencoded"}

// head is what all requests with the key, and for the account if it is not the key's own, have. The API version is the one that stripe-go v76 is
// made for, and bodies with it (docs.stripe.com/api/versioning).
func head(key, account string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + key}, "Stripe-Version": {stripego.APIVersion}, "User-Agent": {"Oncepay"}}
	if account != "" {
		h["Stripe-Account"] = []string{account}
	}
	return h
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
