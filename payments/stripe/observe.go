package stripe

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// retryAfterMax bounds what a Retry-After may ask for.
const retryAfterMax = time.Hour

// rule says what an error answer in Stripe's shape proves about a submit. The first rule that fits is the one.
type rule struct {
	from, to int    // HTTP status
	errType  string // "" : any
	code     string // "" : any
	kind     payments.ObservationKind
}

// rules is ordered from the particular to the general. What no rule names is unclear: only an answer that is known to come before
// execution, or to be the execution's own result, proves anything (docs.stripe.com/error-low-level, docs.stripe.com/api/errors).
var rules = []rule{
	{401, 401, "", "", payments.ObservedUnauthorized},
	{403, 403, "", "", payments.ObservedUnauthorized},
	{402, 402, "card_error", "", payments.ObservedDecline},
	{402, 402, "", "", payments.ObservedUnclear}, // executed, and not a decline
	{409, 409, "", "", payments.ObservedInUse},
	{429, 429, "", "lock_timeout", payments.ObservedLocked},
	{429, 429, "", "", payments.ObservedRateLimited},
	{408, 408, "", "", payments.ObservedUnclear}, // too slow, too early, a dependency failed: none says that nothing was done
	{424, 425, "", "", payments.ObservedUnclear},
	{400, 499, "idempotency_error", "", payments.ObservedKeyConflict},
	{400, 499, "api_error", "", payments.ObservedUnclear}, // trouble on Stripe's side, whatever the status
	{400, 499, "", "", payments.ObservedInvalid},
}

func classify(status int, e apiError) payments.ObservationKind {
	for _, r := range rules {
		if status >= r.from && status <= r.to && (r.errType == "" || r.errType == e.Type) && (r.code == "" || r.code == e.Code) {
			return r.kind
		}
	}
	return payments.ObservedUnclear
}

// observe says what the exchange of a submit proves.
func (g *Gateway) observe(p payments.Payment, x *exchange) payments.Observation {
	o, answered := g.answered(x)
	switch {
	case !answered:
		return o
	case x.status >= 200 && x.status <= 299:
		return observeObject(p, x, o)
	default:
		return g.observeError(x, o, chargeRefused(p))
	}
}

// chargeRefused says of which PaymentIntents an error to a submit can tell: the payment's own, in which nothing moves.
func chargeRefused(p payments.Payment) func(payments.ObservationKind, payments.PaymentIntent) bool {
	return func(_ payments.ObservationKind, pi payments.PaymentIntent) bool {
		return about(p, pi) && !moves(pi.Status)
	}
}

// answered reports whether a POST has an answer, whole and to its key; if not, the observation says all that is known of it.
func (g *Gateway) answered(x *exchange) (payments.Observation, bool) {
	o := g.envelope(x)
	o.Kind = payments.ObservedUnclear
	switch {
	case x.heldBack != nil:
		o.Kind, o.Detail = payments.ObservedHeldBack, clean(x.heldBack.Error(), detailMax)
	case !x.maybeSent:
		o.Kind, o.Detail = payments.ObservedNotSent, "nothing was sent: "+faultBefore(x.err)
	case x.err != nil:
		o.Detail = "the request was sent: " + faultOf(x.err)
	case !echoes(x):
		o.Detail = "the answer names another idempotency key"
	default:
		return o, true
	}
	return o, false
}

// observeObject: a 2xx. Only a PaymentIntent, and not another payment's, is an answer.
func observeObject(p payments.Payment, x *exchange, o payments.Observation) payments.Observation {
	pi, err := decodeIntent(x.body)
	switch {
	case err != nil:
		o.Detail = fmt.Sprintf("Stripe answered %d: %s", x.status, err)
	case !about(p, pi):
		o.Detail = "the answer is about another payment"
	default:
		o.Kind, o.Object, o.Detail = payments.ObservedAnswer, &pi, fmt.Sprintf("Stripe answered %d", x.status)
	}
	return o
}

// observeError: any other status. fits says whether an error of the kind can be about such a PaymentIntent; one that cannot proves nothing.
func (g *Gateway) observeError(x *exchange, o payments.Observation, fits func(payments.ObservationKind, payments.PaymentIntent) bool) payments.Observation {
	e, ok := decodeError(x.body)
	if !ok {
		o.Detail = fmt.Sprintf("Stripe answered %d without an error of its own form", x.status)
		return o
	}
	o.Detail = fmt.Sprintf("Stripe answered %d %s", x.status, strings.TrimSpace(e.Type+" "+e.Code))
	kind := classify(x.status, e)
	if kind == payments.ObservedLocked && x.header.Get("Stripe-Rate-Limited-Reason") != "" {
		kind = payments.ObservedRateLimited // Stripe gives a reason for rates alone; nothing was executed either way
	}
	switch {
	case kind == payments.ObservedUnclear:
		return o
	case !e.names:
	case e.Intent == nil:
		o.Detail += ", about something that is no PaymentIntent"
		return o
	case !fits(kind, *e.Intent):
		o.Detail += ", about another payment, or one that was not refused"
		return o
	case kind == payments.ObservedDecline:
		o.Object = e.Intent
	}
	o.Kind, o.Failure = kind, g.failure(e)
	return o
}

// envelope is what every answer has.
func (g *Gateway) envelope(x *exchange) payments.Observation {
	o := payments.Observation{Account: g.account, HTTPStatus: x.status}
	if x.header != nil {
		o.RequestID = requestID(x.header.Get("Request-Id"))
		o.Replayed = x.header.Get("Idempotent-Replayed") == "true"
		o.RetryAfter = retryAfter(x.header.Get("Retry-After"), g.clock.Now())
		o.ShouldRetry = shouldRetry(x.header.Get("Stripe-Should-Retry"))
	}
	return o
}

// echoes reports whether the answer is one to our key, as far as it says: Stripe repeats the key in the header.
func echoes(x *exchange) bool {
	got := x.header.Get("Idempotency-Key")
	return got == "" || got == x.key
}

// about reports whether the PaymentIntent is the payment's, or its charge's, as far as its metadata say.
func about(p payments.Payment, pi payments.PaymentIntent) bool {
	id, ok := pi.Metadata[MetadataPayment]
	if p.Kind.FollowUp() {
		return !ok || id == p.PaymentID
	}
	return !ok || id == p.ID.String()
}

// moves reports whether money moved, or may yet without another request of ours, in this status. No refusal is about such a PaymentIntent.
func moves(s payments.StripeStatus) bool {
	switch s {
	case payments.StripeRequiresPaymentMethod, payments.StripeRequiresConfirmation, payments.StripeCanceled:
		return false
	}
	return true
}

// shouldRetry reads Stripe's word on trying again; it has no part in what an answer means.
func shouldRetry(value string) payments.RetryAdvice {
	switch strings.TrimSpace(value) {
	case "true":
		return payments.RetrySoon
	case "false":
		return payments.RetryLater
	}
	return payments.RetryNotSaid
}

// retryAfter reads seconds or an HTTP date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	var d time.Duration
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		d = time.Duration(min(max(seconds, 0), int64(retryAfterMax/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), retryAfterMax)
}
