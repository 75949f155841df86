package ingress

import (
	"net/http"
	"time"
)

// Server is the HTTP server that the API is meant to stand behind: whoever sends or reads slowly holds a connection and nothing else, and not for
// long. The write timeout counts from the request's head, and so covers a slow body, a slow commit and the longest wait.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  15 * time.Second,
		WriteTimeout:                 waitMax + 45*time.Second,
		IdleTimeout:                  75 * time.Second,
		MaxHeaderBytes:               16 << 10,
		DisableGeneralOptionsHandler: true,
	}
}
