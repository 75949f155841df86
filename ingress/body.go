package ingress

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// Bounds of one body, in bytes.
const (
	PaymentBodyMax = 64 << 10
	BatchBodyMax   = 900 << 10
)

// bodies saves the buffers of usual size: what is decoded of a body is copied out of it.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// body reads the whole body, at most so many bytes, and refuses it if a card number is in it. The buffer is the caller's until it calls done.
func (c *call) body(most int64) (data []byte, done func(), p *problem) {
	if p := jsonOnly(c.r.Header); p != nil {
		return nil, nil, p
	}
	if c.r.ContentLength > most {
		return nil, nil, tooLarge(most)
	}
	buf := bodies.Get().(*bytes.Buffer)
	buf.Reset()
	done = func() {
		if buf.Cap() <= 2*PaymentBodyMax {
			bodies.Put(buf)
		}
	}
	if n := min(c.r.ContentLength, PaymentBodyMax); n > 0 { // what is only announced takes no more room than this
		buf.Grow(int(n) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, most)); err != nil {
		done()
		return nil, nil, unreadable(err, most)
	}
	if payments.CardInBytes(buf.Bytes()) {
		done()
		return nil, nil, refuse(CodeCardNumber, cardDetail)
	}
	return buf.Bytes(), done, nil
}

func tooLarge(most int64) *problem {
	p := refuse(CodePayloadTooLarge, "the body may have at most "+strconv.FormatInt(most, 10)+" bytes")
	p.close = true
	return p
}

// unreadable is the problem of a body that did not come whole: too long, too slow, or broken off. Too slow is no fault of the request, which may come
// again as it is: RFC 9110 has 408 for that, but no 4xx of this API besides 429 may be repeated.
func unreadable(err error, most int64) *problem {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return tooLarge(most)
	}
	p := invalid("body", "it ended before it was whole: send all of it")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p = unavailable("the body came too slowly, and nothing was stored; repeat the same request under the same key", time.Second, nil)
	}
	p.close = true
	return p
}

// jsonOnly wants one Content-Type that says application/json, and nothing that would have to be unpacked.
func jsonOnly(h http.Header) *problem {
	for _, line := range h["Content-Encoding"] {
		if !strings.EqualFold(line, "identity") {
			return invalid("Content-Encoding", "it must be left out, or be identity: send the body as it is")
		}
	}
	lines := h["Content-Type"]
	if len(lines) == 1 && lines[0] == mediaJSON {
		return nil
	}
	if len(lines) == 1 {
		media, parameters, err := mime.ParseMediaType(lines[0])
		charset := parameters["charset"]
		if err == nil && media == mediaJSON && (charset == "" || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return invalid("Content-Type", "it must be "+mediaJSON+", in UTF-8")
}

// undecodable is the problem of a body that schema refused; it names members, never values.
func undecodable(err error) *problem {
	var d *schema.DecodeError
	if !errors.As(err, &d) {
		return failed(err)
	}
	field := d.Field
	if field == "" {
		field = "body"
	}
	return invalid(field, d.Problem+" (at byte "+strconv.FormatInt(d.Offset, 10)+")")
}

// agrees checks what a body says of things that the header and the API key decide.
func (c *call) agrees(key, tenant schema.Optional[string], field string) *problem {
	switch {
	case key.Set && key.Value != c.key:
		return refuse(CodeIdempotencyInvalid, "the body's idempotency_key and the Idempotency-Key header differ: send the header alone")
	case tenant.Set && tenant.Value != c.tenant():
		return invalid(field, "it is not the tenant of this API key: leave it out")
	}
	return nil
}
