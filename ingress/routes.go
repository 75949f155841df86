package ingress

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Route is one thing that the API does.
type Route struct {
	Method string
	Path   string // as net/http's ServeMux reads it
	Scope  payments.Scope
}

// route is a Route with the code that serves it, and the shares of its API key that a request takes; nil from handle: it was answered.
type route struct {
	Route
	shares int
	handle func(*API, *call) *problem
}

// routes is the one table of what there is.
var routes = []route{
	{Route{"POST", "/v1/payments", payments.ScopePaymentsWrite}, 1, (*API).createPayment},
	{Route{"GET", "/v1/payments", payments.ScopePaymentsRead}, longShare, (*API).listPayments},
	{Route{"GET", "/v1/payments/{id}", payments.ScopePaymentsRead}, 1, (*API).showPayment},
	{Route{"GET", "/v1/payments/{id}/events", payments.ScopePaymentsRead}, longShare, (*API).listEvents},
	{Route{"POST", "/v1/payments/{id}/capture", payments.ScopePaymentsWrite}, 1, (*API).createCapture},
	{Route{"POST", "/v1/payments/{id}/cancel", payments.ScopePaymentsWrite}, 1, (*API).createCancel},
	{Route{"POST", "/v1/payments/{id}/refunds", payments.ScopeRefundsWrite}, 1, (*API).createRefund},
	{Route{"GET", "/v1/payments/{id}/refunds", payments.ScopePaymentsRead}, longShare, (*API).listRefunds},
	{Route{"GET", "/v1/refunds/{id}", payments.ScopePaymentsRead}, 1, (*API).showFollowUp},
	{Route{"GET", "/v1/operations/{id}", payments.ScopePaymentsRead}, 1, (*API).showFollowUp},
	{Route{"POST", "/v1/batches", payments.ScopeBatchesWrite}, longShare, (*API).createBatch},
	{Route{"GET", "/v1/batches", payments.ScopePaymentsRead}, longShare, (*API).listBatches},
	{Route{"GET", "/v1/batches/{id}", payments.ScopePaymentsRead}, 1, (*API).showBatch},
}

// Routes lists what there is, but for the documentation.
func Routes() []Route {
	list := make([]Route, len(routes))
	for i, r := range routes {
		list[i] = r.Route
	}
	return list
}

// routes builds the mux. Every path also answers the methods that it does not have, so that the mux never speaks for itself.
func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, rt := range routes {
		mux.Handle(rt.Method+" "+rt.Path, a.serve(rt))
		allowed[rt.Path] = append(allowed[rt.Path], rt.Method)
	}
	if a.cfg.Docs != nil {
		docs := unheld(a.cfg.Docs)
		for _, path := range []string{"/openapi.json", "/docs", "/docs/"} {
			mux.Handle("GET "+path, docs)
			allowed[path] = []string{http.MethodGet}
		}
	}
	for path, methods := range allowed {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		mux.Handle(path, a.notAllowed(path, strings.Join(methods, ", ")))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answering(w).refuse(refuse(CodeNotFound, notFoundDetail))
	})
	return mux
}

// unheld serves without a place among the requests in flight. The documentation costs no memory of its own and needs no key of the API, and its
// answers are long: whoever asks for them and does not read would hold the places that payments need until the write timeout.
func unheld(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		aw := answering(w)
		aw.release()
		next.ServeHTTP(aw, r)
	})
}

func (a *API) notAllowed(path, allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		aw := answering(w)
		aw.route = path
		aw.Header()["Allow"] = []string{allow}
		aw.refuse(refuse(CodeMethodNotAllowed, "this address answers to "+allow))
	}
}

// call is a request that has come to its route.
type call struct {
	w      *answer
	r      *http.Request
	key    string // the idempotency key, of a request that changes something
	apiKey payments.APIKey
}

// answerWithin bounds what a request asks of the store once its API key is known. A PostgreSQL that has gone silent, without closing a connection,
// must become a 503 while the client still listens.
const answerWithin = 10 * time.Second

// bounded is the request's context for the store.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), answerWithin)
}

// tenant is whose request it is.
func (c *call) tenant() string { return c.apiKey.TenantID }

// serve asks whatever is asked of every request of a route. It relies on nothing that stands before it.
func (a *API) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: answering(w), r: r}
		defer c.w.release()
		c.w.route = rt.Path
		p := a.identify(c, rt)
		if p == nil {
			p = rt.handle(a, c)
		}
		if p != nil {
			c.w.refuse(p)
		}
	}
}

// identify finds the request's key and its caller, and whether the caller may.
func (a *API) identify(c *call, rt route) (p *problem) {
	if cardOutsideBody(c.r) {
		return refuse(CodeCardNumber, cardDetail)
	}
	if changes(rt.Method) {
		if c.key, p = keyOf(c.r.Header); p != nil {
			return p
		}
	}
	if c.apiKey, p = a.authenticate(c.r.Context(), c.r.Header); p != nil {
		return p
	}
	if wait, ok := a.rates.admit(c.apiKey.ID, a.cfg.Clock.Now()); !ok {
		p = refuse(CodeRateLimited, "this API key makes too many requests; repeat the same request, under the same key if it has one")
		p.retryAfter = wait
		return p
	}
	if !a.crowd.enter(c.apiKey.ID, rt.shares) {
		p = refuse(CodeRateLimited, "this API key has too many requests at once, or answers that it does not read; repeat the same request, under the same key if it has one")
		p.retryAfter = time.Second
		return p
	}
	c.w.crowd, c.w.keyID, c.w.shares = a.crowd, c.apiKey.ID, rt.shares
	if !c.apiKey.Allows(rt.Scope) {
		return refuse(CodeForbidden, "this API key lacks the scope "+string(rt.Scope))
	}
	return nil
}
