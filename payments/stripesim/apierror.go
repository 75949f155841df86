package stripesim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Error types of Stripe's API.
const (
	typeInvalid     = "invalid_request_error"
	typeCard        = "card_error"
	typeAPI         = "api_error"
	typeIdempotency = "idempotency_error"
)

// apiError is the object under "error" in Stripe's error bodies.
type apiError struct {
	Status        int         `json:"-"`
	Charge        string      `json:"charge,omitempty"`
	Code          string      `json:"code,omitempty"`
	DeclineCode   string      `json:"decline_code,omitempty"`
	DocURL        string      `json:"doc_url,omitempty"`
	Message       string      `json:"message"`
	Param         string      `json:"param,omitempty"`
	PaymentIntent any         `json:"payment_intent,omitempty"`
	PaymentMethod *methodView `json:"payment_method,omitempty"`
	Type          string      `json:"type"`

	showIntent bool   // the answer carries the PaymentIntent
	limited    string // Stripe-Rate-Limited-Reason
}

func invalid(code, param, message string) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Code: code, Param: param, Message: message, DocURL: docURL(code)}
}

func notFound(param, message string) *apiError {
	e := invalid("resource_missing", param, message)
	e.Status = http.StatusNotFound
	return e
}

func docURL(code string) string {
	if code == "" {
		return ""
	}
	return "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(code, "_", "-")
}

func rateLimited(reason string) *apiError {
	return &apiError{Status: http.StatusTooManyRequests, Type: typeInvalid, Code: "rate_limit", limited: reason, DocURL: docURL("rate_limit"),
		Message: "Request rate limit exceeded. Slow down and try again with exponential backoff."}
}

func lockTimeout() *apiError {
	return &apiError{Status: http.StatusTooManyRequests, Type: typeInvalid, Code: "lock_timeout", DocURL: docURL("lock_timeout"),
		Message: "This object cannot be accessed right now because another API request or Stripe process is currently accessing it. If you see this error intermittently, retry the request."}
}

func keyInUse(key string) *apiError {
	return &apiError{Status: http.StatusConflict, Type: typeInvalid, Code: "idempotency_key_in_use", DocURL: docURL("idempotency_key_in_use"),
		Message: "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): " + key + ". Please try again later."}
}

func keyMismatch(key string) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeIdempotency,
		Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" + key + "' if you meant to execute a different request."}
}

func serverError(status int) *apiError {
	return &apiError{Status: status, Type: typeAPI, Message: "An unknown error occurred (" + strconv.Itoa(status) + ")."}
}

// errorBody renders e; in, if e shows it, is the PaymentIntent inside.
func errorBody(e *apiError, in *intent) []byte {
	shown := *e
	if e.showIntent && in != nil {
		shown.PaymentIntent = in.view()
	}
	b, err := json.Marshal(struct {
		Error *apiError `json:"error"`
	}{&shown})
	if err != nil { // plain strings, numbers and maps of strings cannot fail
		panic(err)
	}
	return b
}
