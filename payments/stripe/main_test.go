package stripe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/payments"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSecret    = "sk_test_SecretOfTheTests0123456789"
	testNamespace = "oncepay"
)

var testAccount = payments.Account{ID: "acct_1Tests"}

var errNotNow = errors.New("not now")

// rawServer speaks HTTP by hand, so that it can break it anywhere, and counts what really arrives.
type rawServer struct {
	url      string
	listener net.Listener
	posts    atomic.Int32
	gets     atomic.Int32 // but for those of events
	events   atomic.Int32
	bytes    atomic.Int64
	arrived  chan request // every request but those of events, in order
	wait     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

// request is one request as it arrived.
type request struct {
	*http.Request
	body string
}

// answerer answers the nth request (from 1) on the connection; it returns false to close it.
type answerer func(n int, c net.Conn, r request) bool

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func newRawServer(t testing.TB, answer answerer) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + listener.Addr().String(), listener: listener, arrived: make(chan request, 10_000)}
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.wait.Add(1)
			go s.serve(c, answer)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.wait.Wait()
	})
	return s
}

func (s *rawServer) serve(c net.Conn, answer answerer) {
	defer s.wait.Done()
	defer c.Close()
	in := bufio.NewReader(countingReader{c, &s.bytes})
	for n := 1; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		got := request{r, string(body)}
		switch {
		case r.URL.Path == eventsPath:
			s.events.Add(1)
		case r.Method == http.MethodPost:
			s.posts.Add(1)
		default:
			s.gets.Add(1)
		}
		if r.URL.Path != eventsPath {
			s.arrived <- got
		}
		if !answer(n, c, got) {
			return
		}
	}
}

// raw answers every request with the bytes and closes the connection.
func raw(response string) answerer {
	return func(_ int, c net.Conn, _ request) bool {
		io.WriteString(c, response)
		return false
	}
}

// reply returns a whole HTTP response, after which the connection closes. Headers are "Name: value" lines.
func reply(status int, body string, headers ...string) string {
	h := strings.Join(headers, "\r\n")
	if h != "" {
		h += "\r\n"
	}
	return fmt.Sprintf("HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", status, h, len(body), body)
}

func options(url string) Options {
	return Options{Key: testSecret, URL: url, Namespace: testNamespace, Timeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
}

// gatewayTo returns a gateway whose account is known already.
func gatewayTo(t testing.TB, o Options) *Gateway {
	t.Helper()
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(o)
	g.account = testAccount
	t.Cleanup(g.Close)
	return g
}

func testPayment(change ...func(*payments.Payment)) payments.Payment {
	p := payments.Payment{
		Intent: payments.Intent{
			TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 9900, Currency: "usd", Customer: "cus_1",
			PaymentMethod: "pm_card_visa", CaptureMethod: payments.CaptureAutomatic, OffSession: true,
		},
		RequestVersion: RequestVersion, Status: payments.StatusReceived, StripeAccount: testAccount.ID,
	}
	for _, f := range change {
		f(&p)
	}
	p.ID = p.Intent.ID()
	return p
}

func submission(p payments.Payment) payments.Submission {
	return payments.Submission{
		Payment: p, StripeKey: payments.StripeKey(testNamespace, p.Kind, p.TenantID, p.IdempotencyKey), MayLeave: func() error { return nil },
	}
}

// intentJSON is Stripe's object of the payment.
func intentJSON(p payments.Payment, status string) string {
	return fmt.Sprintf(`{"id":"pi_3Test","object":"payment_intent","amount":%d,"amount_received":%d,"currency":%q,"customer":%q,"status":%q,`+
		`"livemode":false,"created":1700000000,"latest_charge":"ch_3Test","client_secret":"pi_3Test_secret_abc","last_payment_error":null,`+
		`"metadata":{"oncepay_payment":%q,"oncepay_namespace":%q}}`,
		p.Amount, p.Amount, p.Currency, p.Customer, status, p.ID.String(), testNamespace)
}

func errorJSON(errType, code, more string) string {
	return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"Stripe says so."%s}}`, errType, code, more)
}

func submit(t testing.TB, g *Gateway, p payments.Payment) payments.Observation {
	t.Helper()
	o := g.Submit(t.Context(), submission(p))
	noSecrets(t, o)
	return o
}

// noSecrets searches every string of a value.
func noSecrets(t testing.TB, value any) {
	t.Helper()
	eachString(reflect.ValueOf(value), func(s string) {
		if strings.Contains(s, testSecret) || strings.Contains(s, "_secret_") || payments.ContainsCardNumberString(s) {
			t.Errorf("a secret is in %q", s)
		}
		if len(s) > 1000 {
			t.Errorf("a text of %d bytes was kept", len(s))
		}
	})
}

func eachString(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.String:
		f(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachString(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachString(v.Index(i), f)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			eachString(k, f)
			eachString(v.MapIndex(k), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachString(v.Field(i), f)
			}
		}
	}
}

func want(t testing.TB, o payments.Observation, kind payments.ObservationKind) {
	t.Helper()
	if o.Kind != kind {
		t.Fatalf("observed %s (%s), want %s", o.Kind, o.Detail, kind)
	}
	if o.Account != testAccount {
		t.Fatalf("the observation names the account %+v", o.Account)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
