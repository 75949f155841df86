package stripe

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	stripego "github.com/stripe/stripe-go/v76"

	"github.com/oncepay/oncepay/payments"
)

// Gateway is one Stripe account, reached with one key. It is safe for concurrent use.
type Gateway struct {
	backend   stripego.Backend
	idle      *http.Transport
	key       string
	connected string
	subject   subject
	namespace string
	timeout   time.Duration
	clock     payments.Clock
	log       *slog.Logger
	account   payments.Account
	pagesMax  int
	board     board
}

var _ payments.Gateway = (*Gateway)(nil)

// New connects to Stripe and reads which account and mode the key belongs to. Its errors are one line without the key:
// payments.CodeInvalid for a setting that is wrong, payments.CodeUnavailable when Stripe could not be reached or had no proper answer, so
// that trying again later is right.
func New(ctx context.Context, o Options) (*Gateway, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	g := newGateway(o)
	g.account, err = g.readAccount(ctx, o.AccountID)
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// newGateway wires the SDK so that nothing in it acts on its own: no retries, no telemetry, no logs, and a backend config of its own, since
// stripe-go writes into the config that it is given.
func newGateway(o Options) *Gateway {
	inner := o.inner
	if inner == nil {
		inner = newHTTPTransport(o)
	}
	client := &http.Client{
		Transport:     &transport{inner: inner, base: o.URL, key: o.Key, account: o.ConnectedAccount},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	backend := stripego.GetBackendWithConfig(stripego.APIBackend, &stripego.BackendConfig{
		URL:               stripego.String(o.URL),
		HTTPClient:        client,
		MaxNetworkRetries: stripego.Int64(0),
		EnableTelemetry:   stripego.Bool(false),
		LeveledLogger:     &stripego.LeveledLogger{Level: stripego.LevelNull},
	})
	return &Gateway{
		backend: backend, idle: inner, key: o.Key, connected: o.ConnectedAccount, subject: o.subject, namespace: o.Namespace, timeout: o.Timeout,
		clock: o.Clock, log: o.Logger, pagesMax: pagesMax,
	}
}

// Account returns the account and mode that Stripe named at start; it is the same for every tenant.
func (g *Gateway) Account(context.Context, string) (payments.Account, error) { return g.account, nil }

// Close closes the connections that are idle. Calls that are running end as they would have.
func (g *Gateway) Close() { g.idle.CloseIdleConnections() }

// get prepares the reading of an object or a list. Reading twice does no harm, so net/http may do so.
func get(path, query string) *exchange {
	return &exchange{method: http.MethodGet, path: path, query: query, gate: &passage{}}
}

// do makes the call of the exchange, within the time-out. The SDK makes the request's head; the body is ours, and put in by the transport.
// All that is to be known of the call stands in the exchange afterwards; what stripe-go makes of the answer is not asked.
func (g *Gateway) do(ctx context.Context, x *exchange) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	params := &stripego.Params{Context: context.WithValue(ctx, exchangeKey{}, x)}
	if x.method == http.MethodPost {
		params.IdempotencyKey = &x.key
	}
	if g.connected != "" {
		params.StripeAccount = &g.connected
	}
	target := x.path
	if x.query != "" {
		target += "?" + x.query
	}
	err := g.backend.CallRaw(x.method, target, g.key, nil, params, &unread{})
	x.gate.shut()
	if !x.begun {
		x.bug = fmt.Errorf("the SDK did not make the request (%T)", err)
	}
}

// unread takes the place of stripe-go's object, and leaves the answer's body alone.
type unread struct{}

func (unread) SetLastResponse(*stripego.APIResponse) {}

// UnmarshalJSON reads nothing.
func (unread) UnmarshalJSON([]byte) error { return nil }

// unpinned is said of a payment for which no account is known: whichever we asked could be the wrong one.
const unpinned = "no Stripe account is pinned to the payment, since its tenant's is not known yet; see oncepay tenants list"

// foreign reports whether the payment belongs to another account or mode than ours.
func (g *Gateway) foreign(p payments.Payment) bool {
	return p.StripeAccount != "" && (p.StripeAccount != g.account.ID || p.Livemode != g.account.Livemode)
}

// bug reports what must never happen, loudly; the payment's id is the only thing of it that is logged.
func (g *Gateway) bug(p payments.Payment, err error) {
	g.log.Error("bug: a request to Stripe was held back", "payment", p.ID.String(), "error", err.Error())
}
