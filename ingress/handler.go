package ingress

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Handler serves the API. Whatever a request is, its answer is JSON and has a Request-Id.
func (a *API) Handler() http.Handler {
	inner := a.guard(RequireKey(cleanOnly(a.mux)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := a.cfg.Clock.Now()
		aw := answering(w)
		defer a.finish(aw, r, begun)
		select {
		case a.inFlight <- struct{}{}:
			aw.slots = a.inFlight
		default:
			aw.refuse(unavailable("too many requests at once; repeat the same request", time.Second, nil))
			return
		}
		inner.ServeHTTP(aw, r)
	})
}

// finish ends a request, however it went.
func (a *API) finish(w *answer, r *http.Request, begun time.Time) {
	panicked := recover()
	if panicked != nil && panicked != http.ErrAbortHandler {
		a.cfg.Log.Error("panic in a handler of the HTTP API", slog.String("request_id", w.id), slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			w.refuse(failed(errPanicked))
			panicked = nil
		}
	}
	w.release()
	a.logCause(w, r)
	if told := a.cfg.Observer.Request; told != nil {
		told(a.routeOf(w, r), methodLabel(r.Method), cmp.Or(w.status, http.StatusOK), a.cfg.Clock.Now().Sub(begun))
	}
	if panicked != nil {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// logCause logs what went wrong here: faults always, services that are away once a while, since every request tells of them.
func (a *API) logCause(w *answer, r *http.Request) {
	switch {
	case w.cause == nil, w.cause == errPanicked, r.Context().Err() != nil && w.status == http.StatusServiceUnavailable:
		return
	case w.status == http.StatusServiceUnavailable:
		now, last := a.cfg.Clock.Now().UnixNano(), a.toldAway.Load()
		if time.Duration(now-last).Abs() < awayEvery || !a.toldAway.CompareAndSwap(last, now) {
			return
		}
		a.cfg.Log.Warn("requests of the HTTP API are answered 503", slog.String("request_id", w.id), slog.String("route", a.routeOf(w, r)), slog.Any("error", w.cause))
	default:
		a.cfg.Log.Error("a request of the HTTP API failed", slog.String("request_id", w.id), slog.String("route", a.routeOf(w, r)), slog.Any("error", w.cause))
	}
}

// routeOf is the route for logs and metrics: what a client sends never gets there.
func (a *API) routeOf(w *answer, r *http.Request) string {
	if w.route == "" {
		_, pattern := a.mux.Handler(r)
		if _, w.route, _ = strings.Cut(pattern, " "); w.route == "" {
			w.route = pattern
		}
		if w.route == "" || w.route == "/" {
			w.route = "other"
		}
	}
	return w.route
}

// awayEvery is how often the log says that a service is away.
const awayEvery = 10 * time.Second

// errPanicked has been logged already, with its stack.
var errPanicked = payments.Errorf(payments.CodeInternal, "the handler panicked")

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}

const cardDetail = "it contains what looks like a card number; send a Stripe payment_method instead, and never card data. Nothing of it was kept"

// guard refuses what no route may see: a card number outside the body.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cardOutsideBody(r) {
			answering(w).refuse(refuse(CodeCardNumber, cardDetail))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// cleanOnly refuses a path that the mux would answer with a redirect that repeats it. It stands behind RequireKey: under any address, what changes
// something names itself first.
func cleanOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cleanPath(r.URL.Path) || !cleanPath(r.URL.EscapedPath()) {
			answering(w).refuse(refuse(CodeNotFound, notFoundDetail))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func cleanPath(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return clean == p || clean != "/" && clean+"/" == p
}

func cardOutsideBody(r *http.Request) bool {
	if payments.ContainsCardNumberString(r.URL.Path) || payments.ContainsCardNumberString(r.URL.RawPath) {
		return true
	}
	if query := r.URL.RawQuery; query != "" {
		if payments.ContainsCardNumberString(query) {
			return true
		}
		if plain, err := url.QueryUnescape(query); err == nil && payments.ContainsCardNumberString(plain) {
			return true
		}
	}
	for _, line := range r.Header[schema.HeaderIdempotencyKey] {
		if payments.ContainsCardNumberString(line) {
			return true
		}
	}
	return false
}
