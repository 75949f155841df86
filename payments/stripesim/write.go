package stripesim

import (
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
)

const apiVersion = "2023-10-16"

// write answers, or does what the fault does instead.
func (s *Server) write(w http.ResponseWriter, r *http.Request, a *attempt, rep reply) {
	f := a.fault
	if !rep.late {
		f = fault{}
	}
	switch {
	case rep.abort:
		panic(http.ErrAbortHandler)
	case rep.reset, f.kind == FaultCommitThenReset:
		reset(w)
		return
	case f.kind == FaultCommitThenHang:
		if !s.hang(r, a.freed) {
			panic(http.ErrAbortHandler)
		}
	case f.kind == FaultSlow:
		if !sleep(r.Context(), s.closing, f.delay) {
			panic(http.ErrAbortHandler)
		}
	case f.kind == FaultHTML502:
		send(w, http.StatusBadGateway, "text/html", []byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"))
		return
	}
	s.headers(w.Header(), a, rep, f)
	switch f.kind {
	case FaultGarbage200:
		send(w, http.StatusOK, "application/json", []byte(`{"id":"pi_`+"\x00\xff"+`<<garbage`))
	case FaultTruncateBody:
		truncate(w, rep.status(), rep.render())
	default:
		send(w, rep.status(), "application/json", rep.render())
	}
}

// headers sets what Stripe sends beside the body.
func (s *Server) headers(h http.Header, a *attempt, rep reply, f fault) {
	h["Request-Id"] = []string{a.entry.RequestID}
	h["Stripe-Version"] = []string{apiVersion}
	if key := a.entry.IdempotencyKey; key != "" {
		h["Idempotency-Key"] = []string{key}
	}
	if rep.original != 0 {
		h["Original-Request"] = []string{s.ids.request(rep.original)}
	}
	if a.entry.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
	}
	if rep.err != nil && rep.err.limited != "" {
		h["Stripe-Rate-Limited-Reason"] = []string{rep.err.limited}
	}
	switch status := rep.status(); {
	case f.kind == FaultShouldRetryTrue:
		h["Stripe-Should-Retry"] = []string{"true"}
	case f.kind == FaultShouldRetryFalse, status == http.StatusOK, status == http.StatusPaymentRequired:
		h["Stripe-Should-Retry"] = []string{"false"} // as in captured answers of Stripe's
	}
}

func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is not the simulator's concern
}

// truncate promises the whole body, sends half and ends the connection.
func truncate(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// hang holds the call until it is freed (true), or until the client goes away
// or the simulator closes.
func (s *Server) hang(r *http.Request, freed <-chan struct{}) bool {
	s.hung.add(1)
	defer s.hung.add(-1)
	select {
	case <-freed:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// reset closes the connection with RST: a linger time of zero discards what is
// unsent and skips the orderly end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2, or no connection at all: end the stream
		panic(http.ErrAbortHandler)
	}
	raw := conn
	if t, ok := conn.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = raw.Close()
}
