package stripe

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v76"

	"github.com/oncepay/oncepay/payments"
)

// Whatever the answer, one POST leaves. Each of these makes stripe-go, http.Client or its Transport send again by default.
func TestOneRequestLeaves(t *testing.T) {
	t.Parallel()
	p := testPayment()
	ok := intentJSON(p, "succeeded")
	html := "<html>Bad Gateway</html>"
	cases := map[string]struct {
		answer answerer
		kind   payments.ObservationKind
	}{
		"answer":               {raw(reply(200, ok)), payments.ObservedAnswer},
		"200 should retry":     {raw(reply(200, ok, "Stripe-Should-Retry: true")), payments.ObservedAnswer},
		"500":                  {raw(reply(500, errorJSON("api_error", "", ""))), payments.ObservedUnclear},
		"500 should retry":     {raw(reply(500, errorJSON("api_error", "", ""), "Stripe-Should-Retry: true")), payments.ObservedUnclear},
		"503":                  {raw(reply(503, errorJSON("api_error", "", ""))), payments.ObservedUnclear},
		"409":                  {raw(reply(409, errorJSON("invalid_request_error", "idempotency_key_in_use", ""))), payments.ObservedInUse},
		"429 lock":             {raw(reply(429, errorJSON("invalid_request_error", "lock_timeout", ""))), payments.ObservedLocked},
		"402 should retry":     {raw(reply(402, errorJSON("card_error", "card_declined", ""), "Stripe-Should-Retry: true")), payments.ObservedDecline},
		"html 502":             {raw(reply(502, html)), payments.ObservedUnclear},
		"html 400":             {raw(reply(400, html)), payments.ObservedUnclear},
		"garbage 200":          {raw(reply(200, "\x00\xff{")), payments.ObservedUnclear},
		"empty 200":            {raw(reply(200, "")), payments.ObservedUnclear},
		"truncated":            {raw(reply(200, ok)[:len(reply(200, ok))-20]), payments.ObservedUnclear},
		"truncated 402":        {raw(reply(402, errorJSON("card_error", "card_declined", "")+"   ")[:150]), payments.ObservedUnclear},
		"truncated chunk":      {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" + ok), payments.ObservedUnclear},
		"truncated header":     {raw("HTTP/1.1 200 OK\r\nContent-"), payments.ObservedUnclear},
		"no HTTP":              {raw("4242424242424242 " + testSecret + "\r\n\r\n"), payments.ObservedUnclear},
		"closed":               {raw(""), payments.ObservedUnclear},
		"reset":                {reset, payments.ObservedUnclear},
		"301":                  {raw(reply(301, ok, "Location: /v1/payment_intents")), payments.ObservedUnclear},
		"307":                  {raw(reply(307, ok, "Location: /v1/payment_intents")), payments.ObservedUnclear},
		"308":                  {raw(reply(308, ok, "Location: /v1/payment_intents")), payments.ObservedUnclear},
		"307 bad location":     {raw(reply(307, ok, "Location: http://[::1")), payments.ObservedUnclear},
		"307 without location": {raw(reply(307, ok)), payments.ObservedUnclear},
		"100 and closed":       {raw("HTTP/1.1 100 Continue\r\n\r\n"), payments.ObservedUnclear},
		"103 and answer":       {raw("HTTP/1.1 103 Early Hints\r\n\r\n" + reply(200, ok)), payments.ObservedAnswer},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, c.answer)
			g := gatewayTo(t, options(s.url))
			want(t, submit(t, g, p), c.kind)
			if s.posts.Load() != 1 || s.gets.Load() != 0 {
				t.Fatalf("%d POSTs and %d GETs arrived", s.posts.Load(), s.gets.Load())
			}
		})
	}
}

func reset(_ int, c net.Conn, _ request) bool {
	c.(*net.TCPConn).SetLinger(0)
	return false
}

// dyingKeepAlive answers the first request on a connection and closes the connection on the second, without an answer.
func dyingKeepAlive(body string) answerer {
	return func(n int, c net.Conn, _ request) bool {
		if n == 1 {
			io.WriteString(c, strings.Replace(reply(200, body), "Connection: close", "Connection: keep-alive", 1))
		}
		return n == 1
	}
}

func TestDyingKeepAliveConnectionIsNotSentAgain(t *testing.T) {
	t.Parallel()
	p := testPayment(func(p *payments.Payment) { p.StripePaymentIntent = "pi_3Test" })
	s := newRawServer(t, dyingKeepAlive(intentJSON(p, "processing")))
	g := gatewayTo(t, options(s.url))
	want(t, g.Retrieve(t.Context(), p), payments.ObservedObject)
	want(t, submit(t, g, p), payments.ObservedUnclear)
	if got := s.posts.Load(); got != 1 {
		t.Fatalf("%d POSTs arrived", got)
	}
}

// The same server with net/http's own behaviour shows two, so that the test above can fail.
func TestNetHTTPWouldSendAgain(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, dyingKeepAlive("{}"))
	inner := &http.Transport{}
	defer inner.CloseIdleConnections()
	client := &http.Client{Transport: inner}
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader("a=1"))
		r.Header.Set("Idempotency-Key", "k")
		if resp, err := client.Do(r); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if got := s.posts.Load(); got != 3 {
		t.Fatalf("net/http sent %d requests for 2 calls; has it changed?", got)
	}
}

func TestNotSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	listener.Close()
	o := submit(t, gatewayTo(t, options(url)), testPayment())
	want(t, o, payments.ObservedNotSent)
	if !strings.Contains(o.Detail, "refused") {
		t.Errorf("detail %q", o.Detail)
	}
	s := newRawServer(t, raw(""))
	o = gatewayTo(t, options(s.url)).Submit(canceled(), submission(testPayment()))
	want(t, o, payments.ObservedNotSent)
	if s.bytes.Load() != 0 {
		t.Error("bytes left in a context that had ended")
	}
}

// A call that waits for a connection has not sent anything when it ends.
func TestNotSentWhileWaitingForAConnection(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	s := newRawServer(t, func(_ int, c net.Conn, _ request) bool {
		<-free
		io.WriteString(c, reply(500, "{}"))
		return false
	})
	opts := options(s.url)
	opts.MaxConns = 1
	g := gatewayTo(t, opts)
	var wg sync.WaitGroup
	wg.Go(func() { g.Submit(context.Background(), submission(testPayment())) })
	<-s.arrived
	other := testPayment(func(p *payments.Payment) { p.IdempotencyKey = "order-2" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	want(t, g.Submit(ctx, submission(other)), payments.ObservedNotSent)
	close(free)
	wg.Wait()
	if got := s.posts.Load(); got != 1 {
		t.Fatalf("%d POSTs arrived", got)
	}
}

func TestUnclearOnceSent(t *testing.T) {
	t.Parallel()
	hang := func(t *testing.T) (*rawServer, chan struct{}) {
		free := make(chan struct{})
		s := newRawServer(t, func(int, net.Conn, request) bool { <-free; return false })
		t.Cleanup(func() { close(free) })
		return s, free
	}
	t.Run("the call times out", func(t *testing.T) {
		t.Parallel()
		s, _ := hang(t)
		opts := options(s.url)
		opts.Timeout = time.Second // in which a request leaves on the slowest machine
		o := submit(t, gatewayTo(t, opts), testPayment())
		want(t, o, payments.ObservedUnclear)
		if !strings.Contains(o.Detail, "timed out") {
			t.Errorf("detail %q", o.Detail)
		}
	})
	t.Run("the answer switches protocols", func(t *testing.T) {
		t.Parallel()
		free := make(chan struct{})
		s := newRawServer(t, func(_ int, c net.Conn, _ request) bool {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			<-free
			return false
		})
		t.Cleanup(func() { close(free) }) // not before the call has ended
		o := submit(t, gatewayTo(t, options(s.url)), testPayment())
		want(t, o, payments.ObservedUnclear)
		if !strings.Contains(o.Detail, "switches protocols") {
			t.Errorf("detail %q", o.Detail)
		}
	})
	t.Run("the caller leaves", func(t *testing.T) {
		t.Parallel()
		s, _ := hang(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.arrived; cancel() }()
		want(t, gatewayTo(t, options(s.url)).Submit(ctx, submission(testPayment())), payments.ObservedUnclear)
	})
	t.Run("the answer never ends", func(t *testing.T) {
		t.Parallel()
		free := make(chan struct{})
		s := newRawServer(t, func(_ int, c net.Conn, _ request) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
			<-free
			return false
		})
		t.Cleanup(func() { close(free) })
		opts := options(s.url)
		opts.Timeout = time.Second // in which a request leaves on the slowest machine
		want(t, submit(t, gatewayTo(t, opts), testPayment()), payments.ObservedUnclear)
	})
}

func TestHeldBackBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	sub := submission(testPayment())
	asked := 0
	sub.MayLeave = func() error { asked++; return fmt.Errorf("%w: %s", errNotNow, testSecret) }
	o := g.Submit(t.Context(), sub)
	want(t, o, payments.ObservedHeldBack)
	noSecrets(t, o)
	if asked != 1 || !strings.Contains(o.Detail, "not now") {
		t.Errorf("asked %d times, detail %q", asked, o.Detail)
	}
	s.listener.Close()
	if s.bytes.Load() != 0 || s.posts.Load() != 0 {
		t.Errorf("%d bytes left", s.bytes.Load())
	}
}

// The question comes when a connection is there, not before: a wait for one can outlast the answer.
func TestMayLeaveIsAskedWithTheConnection(t *testing.T) {
	t.Parallel()
	p := testPayment()
	s := newRawServer(t, raw(reply(200, intentJSON(p, "succeeded"))))
	g := gatewayTo(t, options(s.url))
	var dialled atomic.Bool
	dial := g.connections.DialContext
	g.connections.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		dialled.Store(true)
		return c, err
	}
	sub := submission(p)
	sub.MayLeave = func() error {
		if !dialled.Load() || s.bytes.Load() != 0 {
			return errors.New("asked too early or too late")
		}
		return nil
	}
	want(t, g.Submit(t.Context(), sub), payments.ObservedAnswer)
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	p := testPayment()
	var posts atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		io.WriteString(w, intentJSON(p, "succeeded"))
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	opts := options(s.URL)
	opts.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	g := gatewayTo(t, opts)
	want(t, submit(t, g, p), payments.ObservedAnswer)
	sub := submission(p)
	sub.MayLeave = func() error { return errNotNow }
	want(t, g.Submit(t.Context(), sub), payments.ObservedHeldBack) // on the kept connection
	if posts.Load() != 1 {
		t.Errorf("%d POSTs arrived", posts.Load())
	}
	stranger := gatewayTo(t, options(s.URL))
	o := submit(t, stranger, p)
	want(t, o, payments.ObservedNotSent)
	if !strings.Contains(o.Detail, "certificate") {
		t.Errorf("detail %q", o.Detail)
	}
}

func TestWireRequest(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", "K", strings.Repeat("a", 255), "batch::99", "~!*'();:@&=+$,/?%#[]"} {
		p := testPayment(func(p *payments.Payment) { p.IdempotencyKey = key })
		s := newRawServer(t, raw(reply(200, intentJSON(p, "succeeded"))))
		g := gatewayTo(t, options(s.url))
		var first request
		for attempt := range 2 {
			want(t, submit(t, g, p), payments.ObservedAnswer)
			r := <-s.arrived
			stripeKey := payments.StripeKey(testNamespace, p.Kind, p.TenantID, key)
			if got := r.Header.Values("Idempotency-Key"); len(got) != 1 || got[0] != stripeKey || len(stripeKey) != 64 {
				t.Fatalf("key %q: the header is %q", key, got)
			}
			if r.URL.Path != "/v1/payment_intents" || r.URL.RawQuery != "" || r.Header.Get("Authorization") != "Bearer "+testSecret {
				t.Fatalf("the request is %s %s", r.Method, r.URL)
			}
			if r.Header.Get("Stripe-Version") != "2023-10-16" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
				t.Fatalf("headers %v", r.Header)
			}
			for _, name := range []string{"X-Stripe-Client-User-Agent", "X-Stripe-Client-Telemetry", "Stripe-Account"} {
				if r.Header.Get(name) != "" {
					t.Fatalf("the header %s left", name)
				}
			}
			if attempt == 0 {
				first = r
			} else if first.body != r.body || first.ContentLength != r.ContentLength || !equalHeaders(first.Header, r.Header) {
				t.Fatal("two attempts differ")
			}
		}
	}
}

func equalHeaders(a, b http.Header) bool {
	var x, y bytes.Buffer
	a.Write(&x)
	b.Write(&y)
	return x.String() == y.String()
}

// A request that is none of ours never leaves, and none leaves twice.
func TestOnlyOurRequestsLeave(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(reply(200, "{}")))
	g := gatewayTo(t, options(s.url))
	base := func() *exchange {
		key := payments.StripeKey(testNamespace, "charge", "acme", "order-1")
		return &exchange{method: http.MethodPost, path: createPath, form: "amount=1", key: key, gate: &passage{once: true}}
	}
	for name, spoil := range map[string]func(x *exchange){
		"no key":          func(x *exchange) { x.key = "" },
		"blank key":       func(x *exchange) { x.key = " " },
		"form of key":     func(x *exchange) { x.key = strings.ToUpper(x.key) },
		"open gate":       func(x *exchange) { x.gate.once = false },
		"query":           func(x *exchange) { x.query = "a=b" },
		"query in path":   func(x *exchange) { x.path += "?a=b" },
		"path":            func(x *exchange) { x.path = "/v2/core" },
		"no path":         func(x *exchange) { x.path = "" },
		"method":          func(x *exchange) { x.method = http.MethodDelete },
		"no method":       func(x *exchange) { x.method = "" },
		"PUT":             func(x *exchange) { x.method = http.MethodPut },
		"GET with a key":  func(x *exchange) { x.method, x.form = http.MethodGet, "" },
		"GET with a body": func(x *exchange) { x.method, x.key = http.MethodGet, "" },
	} {
		x := base()
		spoil(x)
		if g.do(t.Context(), x); x.bug == nil || x.maybeSent || x.status != 0 {
			t.Errorf("%s: %v, status %d", name, x.bug, x.status)
		}
	}
	if s.bytes.Load() != 0 {
		t.Errorf("%d bytes left", s.bytes.Load())
	}
	// The same exchange does not go twice.
	x := base()
	for range 2 {
		g.do(t.Context(), x)
	}
	reading := get(createPath, "")
	for range 2 {
		g.do(t.Context(), reading)
	}
	if reading.status != 200 || reading.err != nil || x.status != 200 || x.err != nil {
		t.Errorf("a second request changed what the first was answered: %+v, %+v", reading.err, x.err)
	}
	if s.posts.Load() != 1 || s.gets.Load() != 1 {
		t.Errorf("two exchanges made %d POSTs and %d GETs", s.posts.Load(), s.gets.Load())
	}
}

func TestPassage(t *testing.T) {
	t.Parallel()
	write := func(p *passage, c *gatedConn) error {
		arm(c, p)
		_, err := c.Write([]byte("x"))
		return err
	}
	conn := func() *gatedConn {
		a, b := net.Pipe()
		go io.Copy(io.Discard, b)
		t.Cleanup(func() { a.Close(); b.Close() })
		return &gatedConn{Conn: a}
	}
	late := &passage{once: true}
	if sent, _ := late.shut(); sent {
		t.Error("nothing was sent")
	}
	if err := write(late, conn()); !errors.Is(err, errShut) {
		t.Errorf("a write after the end of the call: %v", err)
	}
	once, a, b := &passage{once: true}, conn(), conn()
	if err := errors.Join(write(once, a), write(once, a)); err != nil {
		t.Errorf("the same connection goes on: %v", err)
	}
	if err := write(once, b); !errors.Is(err, errSecondSend) {
		t.Errorf("a second connection: %v", err)
	}
	if sent, _ := once.shut(); !sent {
		t.Error("it was sent")
	}
	if err := write(once, a); err != nil {
		t.Errorf("the rest of a request that has begun to leave: %v", err)
	}
	again := &passage{}
	if err := errors.Join(write(again, a), write(again, b)); err != nil {
		t.Errorf("a reading may be repeated: %v", err)
	}
	stranger, _ := net.Pipe()
	arm(stranger, &passage{})
	if _, err := stranger.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a connection that cannot be gated stays open: %v", err)
	}
}

func TestAPIVersionIsTheOneThatBodiesAreMadeFor(t *testing.T) {
	t.Parallel()
	if stripego.APIVersion != "2023-10-16" {
		t.Fatalf("stripe-go speaks API %s; a new version needs a new request_version", stripego.APIVersion)
	}
}

func TestAnswerThatIsTooLong(t *testing.T) {
	t.Parallel()
	p := testPayment()
	s := newRawServer(t, raw(reply(200, intentJSON(p, "succeeded")+strings.Repeat(" ", answerMax))))
	o := submit(t, gatewayTo(t, options(s.url)), p)
	want(t, o, payments.ObservedUnclear)
	if !strings.Contains(o.Detail, "too long") {
		t.Errorf("detail %q", o.Detail)
	}
}

// Wiring that went wrong shows as a bug, and nothing leaves.
func TestBrokenWiring(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	g.connected = "acct_other" // the transport knows of none
	var log bytes.Buffer
	g.log = slog.New(slog.NewTextHandler(&log, nil))
	p := testPayment(func(p *payments.Payment) { p.StripePaymentIntent = "pi_1" })
	want(t, submit(t, g, p), payments.ObservedHeldBack)
	want(t, g.Look(t.Context(), p, nil), payments.ObservedNoRecords)
	want(t, g.Retrieve(t.Context(), p), payments.ObservedNoRecords)
	if _, err := g.readAccount(t.Context(), ""); payments.ErrorCode(err) != payments.CodeInternal {
		t.Errorf("at start: %v", err)
	}
	g.connected = ""
	x := get("/v1/%zz", "")
	if g.do(t.Context(), x); x.bug == nil {
		t.Error("a request that could not be made is no bug")
	}
	if strings.Count(log.String(), "bug:") != 3 || strings.Contains(log.String(), testSecret) || s.bytes.Load() != 0 {
		t.Errorf("%d bytes left; logged\n%s", s.bytes.Load(), log.String())
	}
}

func TestIsStripeKey(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("0f", 32)
	for key, want := range map[string]bool{
		good: true, "": false, good[1:]: false, good + "0": false, strings.ToUpper(good): false, " " + good[1:]: false, good[1:] + "\n": false,
		strings.Repeat(" ", 64): false, good[:62] + "é": false,
	} {
		if isStripeKey(key) != want {
			t.Errorf("%q", key)
		}
	}
}

func TestFaultsInWords(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: err} }
	for want, errs := range map[string][]error{
		"no reason was given":                                 {nil},
		"the call was ended":                                  {context.Canceled},
		"the answer is too long":                              {errTooLong},
		"the server's certificate is not trusted":             {&tls.CertificateVerificationError{Err: errors.New("x")}},
		"the host name was not found":                         {dial(&net.DNSError{IsNotFound: true})},
		"the connection was refused":                          {dial(syscall.ECONNREFUSED)},
		"the call timed out":                                  {context.DeadlineExceeded, dial(os.ErrDeadlineExceeded)},
		"no connection was obtained":                          {dial(syscall.EHOSTUNREACH)},
		"the connection was reset":                            {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, syscall.EPIPE},
		"the connection ended before the answer was complete": {io.EOF, io.ErrUnexpectedEOF},
		"the answer could not be read":                        {errors.New(testSecret)},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("wrapped: %w", err)
			}
			if got := faultOf(err); got != want {
				t.Errorf("%v is %q, want %q", err, got, want)
			}
		}
	}
}
