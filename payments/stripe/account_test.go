package stripe

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	accountJSON = `{"id":"acct_1Tests","object":"account"}`
	balanceJSON = `{"object":"balance","livemode":false}`
	forbidden   = `{"error":{"type":"invalid_request_error","message":"The provided key 'rk_test_***' does not have the required permissions"}}`
)

// byPath answers by path, and 404 for others.
func byPath(answers map[string]string) answerer {
	return func(_ int, c net.Conn, r request) bool {
		answer, ok := answers[r.URL.Path]
		if !ok {
			answer = reply(404, errorJSON("invalid_request_error", "", ""))
		}
		io.WriteString(c, answer)
		return false
	}
}

func TestNewReadsAccountAndMode(t *testing.T) {
	t.Parallel()
	live := `{"object":"balance","livemode":true}`
	cases := map[string]struct {
		account, balance string
		change           func(*Options)
		want             payments.Account
		fails            string // part of the error
		code             payments.Code
	}{
		"plain":      {reply(200, accountJSON), reply(200, balanceJSON), nil, testAccount, "", ""},
		"configured": {reply(200, accountJSON), reply(200, balanceJSON), func(o *Options) { o.AccountID = "acct_1Tests" }, testAccount, "", ""},
		"other account": {
			reply(200, accountJSON), reply(200, balanceJSON), func(o *Options) { o.AccountID = "acct_2" }, payments.Account{}, "ONCEPAY_STRIPE_ACCOUNT",
			payments.CodeInvalid,
		},
		"may not read account": {reply(403, forbidden), reply(200, balanceJSON), nil, payments.Account{}, "ONCEPAY_STRIPE_ACCOUNT", payments.CodeInvalid},
		"may not read account, configured": {
			reply(403, forbidden), reply(200, balanceJSON), func(o *Options) { o.AccountID = "acct_3" }, payments.Account{ID: "acct_3"}, "", "",
		},
		"may not read balance": {reply(200, accountJSON), reply(403, forbidden), nil, testAccount, "", ""},
		"may not read balance, key without mode": {
			reply(200, accountJSON), reply(403, forbidden), func(o *Options) { o.Key = "simulator-key" }, payments.Account{}, "balance", payments.CodeInvalid,
		},
		"mode of another key": {reply(200, accountJSON), reply(200, live), nil, payments.Account{}, "mode", payments.CodeInvalid},
		"live, by Stripe's word": {
			reply(200, accountJSON), reply(200, live), func(o *Options) { o.Key = "simulator-key" }, payments.Account{ID: "acct_1Tests", Livemode: true}, "", "",
		},
		"connected": {
			reply(200, accountJSON), reply(200, balanceJSON), func(o *Options) { o.ConnectedAccount = "acct_1Tests" }, testAccount, "", "",
		},
		"connected, other": {
			reply(200, accountJSON), reply(200, balanceJSON), func(o *Options) { o.ConnectedAccount = "acct_9" }, payments.Account{}, "connected",
			payments.CodeInvalid,
		},
		"refused key":   {reply(401, forbidden), "", nil, payments.Account{}, "ONCEPAY_STRIPE_KEY", payments.CodeInvalid},
		"proxy's 401":   {reply(401, "<html>"), "", nil, payments.Account{}, "401", payments.CodeUnavailable},
		"proxy's 403":   {reply(403, "<html>"), "", nil, payments.Account{}, "403", payments.CodeUnavailable},
		"500":           {reply(500, "{}"), "", nil, payments.Account{}, "answered 500; Stripe is failing: wait", payments.CodeUnavailable},
		"redirect":      {reply(302, "", "Location: /v1/balance"), "", nil, payments.Account{}, "302", payments.CodeUnavailable},
		"garbage":       {reply(200, `{"id":"acct_1"}`), "", nil, payments.Account{}, "not an account", payments.CodeUnavailable},
		"no livemode":   {reply(200, accountJSON), reply(200, `{"object":"balance"}`), nil, payments.Account{}, "not a balance", payments.CodeUnavailable},
		"closed":        {"", "", nil, payments.Account{}, "connection", payments.CodeUnavailable},
		"balance fails": {reply(200, accountJSON), reply(503, "{}"), nil, payments.Account{}, "answered 503; Stripe is failing: wait", payments.CodeUnavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, byPath(map[string]string{"/v1/account": c.account, "/v1/balance": c.balance}))
			o := options(s.url)
			if c.change != nil {
				c.change(&o)
			}
			g, err := New(t.Context(), o)
			if g != nil {
				defer g.Close()
			}
			checkError(t, err, c.fails, c.code)
			if err == nil && (g.account != c.want) {
				t.Errorf("account %+v, want %+v", g.account, c.want)
			}
			if s.posts.Load() != 0 {
				t.Error("a POST left at start")
			}
			close(s.arrived)
			for r := range s.arrived {
				if r.Header.Get("Stripe-Account") != o.ConnectedAccount || r.Header.Get("Idempotency-Key") != "" {
					t.Errorf("headers %v", r.Header)
				}
			}
		})
	}
}

func checkError(t *testing.T, err error, part string, code payments.Code) {
	t.Helper()
	if part == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), part) || payments.ErrorCode(err) != code {
		t.Fatalf("the error is %v (%s), want %s about %s", err, payments.ErrorCode(err), code, part)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), testSecret) || len(err.Error()) > 300 {
		t.Fatalf("the error is not one clear line: %q", err)
	}
}

func TestNewWithoutStripe(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = New(t.Context(), options("http://"+listener.Addr().String()))
	checkError(t, err, "refused", payments.CodeUnavailable)
	if !payments.Retryable(err) {
		t.Error("the start cannot be tried again")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	const key, url = "ONCEPAY_STRIPE_KEY", "ONCEPAY_STRIPE_URL"
	cases := map[string]struct {
		change func(*Options)
		fails  string
	}{
		"no key":              {func(o *Options) { o.Key = "" }, key},
		"key of spaces":       {func(o *Options) { o.Key = strings.Repeat(" ", 20) }, key},
		"key and newline":     {func(o *Options) { o.Key = testSecret + "\n" }, key},
		"publishable key":     {func(o *Options) { o.Key = "pk_test_0123456789" }, key},
		"live key elsewhere":  {func(o *Options) { o.Key = "sk_live_0123456789" }, url},
		"live restricted key": {func(o *Options) { o.Key = "rk_live_0123456789" }, url},
		"live organisation":   {func(o *Options) { o.Key = "sk_org_live_0123456789" }, url},
		"live over http":      {func(o *Options) { o.Key, o.URL = "sk_live_0123456789", "http://api.stripe.com" }, url},
		"live, look-alike":    {func(o *Options) { o.Key, o.URL = "sk_live_0123456789", "https://api.stripe.com.example" }, url},
		"live, port":          {func(o *Options) { o.Key, o.URL = "sk_live_0123456789", "https://api.stripe.com:8443" }, url},
		"live, user":          {func(o *Options) { o.Key, o.URL = "sk_live_0123456789", "https://api.stripe.com@example.com" }, url},
		"no host":             {func(o *Options) { o.URL = "http://:1" }, url},
		"no port":             {func(o *Options) { o.URL = "http://127.0.0.1:" }, url},
		"no scheme":           {func(o *Options) { o.URL = "127.0.0.1:1" }, url},
		"path":                {func(o *Options) { o.URL += "/v1" }, url},
		"query":               {func(o *Options) { o.URL += "?a=b" }, url},
		"user":                {func(o *Options) { o.URL = "http://a:b@127.0.0.1:1" }, url},
		"account":             {func(o *Options) { o.AccountID = "demo" }, "ONCEPAY_STRIPE_ACCOUNT"},
		"connected account":   {func(o *Options) { o.ConnectedAccount = "acct_1\r\nX: y" }, "connected account"},
		"namespace":           {func(o *Options) { o.Namespace = "" }, "ONCEPAY_NAMESPACE"},
		"timeout":             {func(o *Options) { o.Timeout = -1 }, "ONCEPAY_STRIPE_TIMEOUT"},
		"connections":         {func(o *Options) { o.MaxConns = -1 }, "connections"},
	}
	for name, c := range cases {
		o := options("http://127.0.0.1:1")
		c.change(&o)
		_, err := New(canceled(), o)
		t.Run(name, func(t *testing.T) { checkError(t, err, c.fails, payments.CodeInvalid) })
	}
	o, err := Options{Key: "sk_live_0123456789", Namespace: "n"}.complete()
	if err != nil || o.URL != DefaultURL || o.Timeout != 30*time.Second || o.MaxConns != 512 || o.Clock == nil || o.Logger == nil {
		t.Errorf("defaults %+v, %v", o, err)
	}
	if o, err = (Options{Key: "sk_live_0123456789", Namespace: "n", URL: DefaultURL + "/"}).complete(); err != nil || o.URL != DefaultURL {
		t.Errorf("Stripe's own address is refused: %v", err)
	}
}

// A machine whose clock is wrong would ask Stripe's records for the wrong hours: it does not start.
func TestNewComparesClocks(t *testing.T) {
	t.Parallel()
	for skew, good := range map[time.Duration]bool{0: true, 30 * time.Second: true, 5 * time.Minute: false, -5 * time.Minute: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
			body := `{"id":"acct_1","object":"account"}`
			if r.URL.Path == "/v1/balance" {
				body = `{"object":"balance","livemode":false}`
			}
			_, _ = io.WriteString(w, body)
		}))
		o := options(server.URL)
		o.Clock = nil
		g, err := New(t.Context(), o)
		if err == nil {
			g.Close()
		}
		server.Close()
		if good != (err == nil) || err != nil && (payments.ErrorCode(err) != payments.CodeInvalid || !strings.Contains(err.Error(), "clock")) {
			t.Errorf("%s apart: %v", skew, err)
		}
	}
}
