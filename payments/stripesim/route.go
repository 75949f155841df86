package stripesim

import (
	"net/http"
	"strings"
)

// route is an endpoint of the API: parse for those that write, read for those
// that only look.
type route struct {
	name  string // method and pattern
	parse func(id string, pairs []pair) (operation, *apiError)
	read  func(s *Server, a *attempt) (any, *apiError)
}

const (
	intentsPath = "/v1/payment_intents"
	methodsPath = "/v1/payment_methods"
	refundsPath = "/v1/refunds"
	chargesPath = "/v1/charges"
	eventsPath  = "/v1/events"
)

var routes = func() map[string]*route {
	m := map[string]*route{}
	for _, r := range []*route{
		{name: "GET /v1/account", read: readAccount},
		{name: "GET /v1/balance", read: readBalance},
		{name: "GET /v1/charges/{id}", read: readCharge},
		{name: "GET /v1/events", read: readEvents},
		{name: "GET /v1/payment_intents", read: readList},
		{name: "GET /v1/payment_intents/{id}", read: readIntent},
		{name: "GET /v1/refunds", read: readRefunds},
		{name: "GET /v1/refunds/{id}", read: readRefund},
		{name: "POST /v1/payment_intents", parse: parseCreate},
		{name: "POST /v1/payment_intents/{id}/confirm", parse: parseConfirm},
		{name: "POST /v1/payment_intents/{id}/cancel", parse: parseCancel},
		{name: "POST /v1/payment_intents/{id}/capture", parse: parseCapture},
		{name: "POST /v1/payment_methods/{id}/attach", parse: parseAttach},
		{name: "POST /v1/payment_methods/{id}/detach", parse: parseDetach},
		{name: "POST /v1/refunds", parse: parseRefund},
		{name: "POST /v1/refunds/{id}", parse: parseRelabel},
	} {
		m[r.name] = r
	}
	return m
}()

// parents are the paths under which objects have their own.
var parents = []string{intentsPath, refundsPath, chargesPath, methodsPath}

func knownRoute(name string) bool { return routes[name] != nil }

// findRoute returns the route of a request and the id in its path, or nil.
func findRoute(method, path string) (*route, string) {
	var parent, rest string
	ok := false
	for _, parent = range parents {
		if rest, ok = strings.CutPrefix(path, parent+"/"); ok {
			break
		}
	}
	if !ok {
		return routes[method+" "+path], ""
	}
	id, verb, nested := strings.Cut(rest, "/")
	if id == "" || id == "search" {
		return nil, ""
	}
	pattern := method + " " + parent + "/{id}"
	if nested {
		pattern += "/" + verb
	}
	return routes[pattern], id
}

func unrecognised(method, path string) *apiError {
	return &apiError{Status: http.StatusNotFound, Type: typeInvalid,
		Message: "Unrecognized request URL (" + method + ": " + path + "). Please see https://stripe.com/docs or we can help at https://support.stripe.com/."}
}
