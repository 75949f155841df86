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
	eventsPath  = "/v1/events"
)

var routes = func() map[string]*route {
	m := map[string]*route{}
	for _, r := range []*route{
		{name: "GET /v1/account", read: readAccount},
		{name: "GET /v1/balance", read: readBalance},
		{name: "GET /v1/events", read: readEvents},
		{name: "GET /v1/payment_intents", read: readList},
		{name: "GET /v1/payment_intents/{id}", read: readIntent},
		{name: "POST /v1/payment_intents", parse: parseCreate},
		{name: "POST /v1/payment_intents/{id}/confirm", parse: parseConfirm},
		{name: "POST /v1/payment_intents/{id}/cancel", parse: parseCancel},
		{name: "POST /v1/payment_intents/{id}/capture", parse: parseCapture},
		{name: "POST /v1/payment_methods/{id}/attach", parse: parseAttach},
		{name: "POST /v1/payment_methods/{id}/detach", parse: parseDetach},
	} {
		m[r.name] = r
	}
	return m
}()

func knownRoute(name string) bool { return routes[name] != nil }

// findRoute returns the route of a request and the id in its path, or nil.
func findRoute(method, path string) (*route, string) {
	parent := intentsPath
	rest, ok := strings.CutPrefix(path, intentsPath+"/")
	if !ok {
		parent = methodsPath
		rest, ok = strings.CutPrefix(path, methodsPath+"/")
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
