package ingress

import (
	"net/http"
	"time"
)

// Server is the HTTP server that the API is meant to stand behind: whoever sends or reads slowly holds a connection and nothing of others, and not for
// long. The write timeout counts from the request's head, and so covers a slow body, a slow commit and the longest wait. The connection of a request
// in chunks ends with its answer.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      closingAfterChunks(h),
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  15 * time.Second,
		WriteTimeout:                 waitMax + 45*time.Second,
		IdleTimeout:                  75 * time.Second,
		MaxHeaderBytes:               16 << 10,
		DisableGeneralOptionsHandler: true,
	}
}

// closingAfterChunks ends the connection of every request in chunks. There may have been a Content-Length beside them, which net/http passes over and
// hides; a proxy that went by it takes other bytes for the next request, and RFC 9112, section 6.1, wants the connection closed for that.
func closingAfterChunks(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header()["Connection"] = []string{"close"}
		}
		h.ServeHTTP(w, r)
	})
}
