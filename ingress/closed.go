package ingress

import "net/http"

// Closed answers for an API that is not there yet: whoever comes is told to come back.
func Closed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answering(w).refuse(unavailable("the service is starting; repeat the same request, under the same key if it has one: that is safe", away, nil))
	})
}
