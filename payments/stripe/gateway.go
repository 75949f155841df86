package stripe

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Gateway is one Stripe account, reached with one key. It is safe for concurrent use.
type Gateway struct {
	connections *http.Transport // by its RoundTrip alone: http.Client would follow redirects
	base        *url.URL
	head        http.Header // of every request; never written to
	key         string
	connected   string
	subject     subject
	namespace   string
	timeout     time.Duration
	clock       payments.Clock
	log         *slog.Logger
	account     payments.Account
	pagesMax    int
	board       board // of look-ups that list a window's PaymentIntents
	events      board // of look-ups that read a window's events

	mayNotRead, mayNotRefund sync.Once // what is said once
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

func newGateway(o Options) *Gateway {
	connections := o.inner
	if connections == nil {
		connections = newHTTPTransport(o)
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		panic("stripe: a URL that was checked cannot be read: " + err.Error())
	}
	g := &Gateway{
		connections: connections, base: base, head: head(o.Key, o.ConnectedAccount), key: o.Key, connected: o.ConnectedAccount, subject: o.subject,
		namespace: o.Namespace, timeout: o.Timeout, clock: o.Clock, log: o.Logger, pagesMax: pagesMax,
	}
	g.board.read = func(ctx context.Context, p payments.Payment, l listing, seats []*seat) payments.Observation {
		o, _ := g.list(ctx, p, l, seats)
		return o
	}
	g.events.read = g.listEvents
	return g
}

// Account returns the account and mode that Stripe named at start; it is the same for every tenant.
func (g *Gateway) Account(context.Context, string) (payments.Account, error) { return g.account, nil }

// Close closes the connections that are idle. Calls that are running end as they would have.
func (g *Gateway) Close() { g.connections.CloseIdleConnections() }

// get prepares the reading of an object or a list. Reading twice does no harm, so net/http may do so.
func get(path, query string) *exchange {
	return &exchange{method: http.MethodGet, path: path, query: query, gate: &passage{}}
}

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
