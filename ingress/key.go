package ingress

import (
	"net/http"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// RequireKey lets a request that changes something pass only if it names itself by one usable Idempotency-Key header. It stands before all routes,
// so that no route can be added without it; the routes ask again on their own.
func RequireKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r.Method) && r.URL.Path != webhookPath {
			if _, p := keyOf(r.Header); p != nil {
				answering(w).refuse(p)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// webhookPath is where Stripe sends its events, which have no such header: whoever sends it none is told the truth, which is 404 where nothing is served there.
const webhookPath = "/webhooks/stripe"

// changes reports whether the method is any but those that RFC 9110, section 9.2.1, calls safe.
func changes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// keyOf reads the key of a request that needs one. net/http has made the header's name canonical.
func keyOf(h http.Header) (string, *problem) {
	key, present, err := schema.ParseKeyHeader(h[schema.HeaderIdempotencyKey])
	switch {
	case err != nil:
		return "", refuse(CodeIdempotencyInvalid, err.Error())
	case !present:
		return "", refuse(CodeIdempotencyRequired, "choose one key for each request that changes something (a payment, capture, cancel, refund or batch), send it as Idempotency-Key, and repeat it on every attempt")
	case payments.ReservedKey(key):
		return "", refuse(CodeIdempotencyReserved, `the key must not contain "`+payments.ChildSeparator+`": that is reserved for the payments of a batch`)
	}
	return key, nil
}
