package ingress

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// answer is the response that is being made, and what is known of its request.
type answer struct {
	http.ResponseWriter
	id     string
	route  string        // "" until a route has it
	status int           // 0 until it is sent
	slots  chan struct{} // where it holds a place among the requests in flight; nil: nowhere
	crowd  *crowd        // where it is counted under keyID, with so many shares; nil: nowhere
	keyID  string
	shares int
	cause  error // of the problem that was answered, for the log
}

// answering returns w as an answer, made now if the route stands alone.
func answering(w http.ResponseWriter) *answer {
	if aw, ok := w.(*answer); ok {
		return aw
	}
	aw := &answer{ResponseWriter: w, id: randomID()}
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	h["Request-Id"] = []string{aw.id}
	return aw
}

// Lines that every answer has, or many have; nobody writes into them.
var (
	noStore   = []string{"no-store"}
	noSniff   = []string{"nosniff"}
	mediaLine = map[string][]string{mediaJSON: {mediaJSON}, mediaProblem: {mediaProblem}}
)

// Unwrap is for http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *answer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (w *answer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// release gives back whatever the request holds, once.
func (w *answer) release() {
	if w.crowd != nil {
		w.crowd.leave(w.keyID, w.shares)
		w.crowd = nil
	}
	w.releasePlace()
}

// releasePlace gives the place among everybody's requests in flight back, once.
func (w *answer) releasePlace() {
	if w.slots != nil {
		<-w.slots
		w.slots = nil
	}
}

// send writes a whole answer. Only its API key's share is held while it is written: a client that does not read keeps it from coming to an end until
// the write timeout, and that is nobody else's concern.
func (w *answer) send(status int, media string, body []byte) {
	w.releasePlace()
	h := w.Header()
	h["Content-Type"] = mediaLine[media]
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// document sends a document.
func (w *answer) document(status int, doc any) *problem {
	body, err := schema.Marshal(doc)
	return w.written(status, body, err)
}

// written sends a document that was written, if it could be.
func (w *answer) written(status int, body []byte, err error) *problem {
	if err != nil {
		return failed(payments.Errorf(payments.CodeInternal, "the answer cannot be written: %w", err))
	}
	w.send(status, mediaJSON, body)
	return nil
}

// refuse sends a problem.
func (w *answer) refuse(p *problem) {
	h := w.Header()
	if p.code == CodeUnauthorized {
		h["Www-Authenticate"] = []string{"Bearer"}
	}
	if p.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(wholeSeconds(p.retryAfter), 10)}
	}
	if p.close {
		h["Connection"] = []string{"close"}
	}
	w.cause = p.cause
	w.send(kindOf(p.code).Status, mediaProblem, p.body())
}

// wholeSeconds rounds up, to at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// randomID is the id of a request: 96 random bits in hex. The system's source never fails.
func randomID() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	var digits [2 * len(b)]byte
	hex.Encode(digits[:], b[:])
	return string(digits[:])
}
