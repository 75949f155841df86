package ingress

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
)

// Code is the stable name of what is wrong with a request.
type Code string

// The codes of CONTRACT, and after them the two of what it leaves to HTTP.
const (
	CodeIdempotencyRequired    Code = "idempotency_required"
	CodeIdempotencyInvalid     Code = "idempotency_key_invalid"
	CodeIdempotencyReserved    Code = "idempotency_key_reserved"
	CodeCardNumber             Code = "card_number_detected"
	CodeInvalidRequest         Code = "invalid_request"
	CodeUnauthorized           Code = "unauthorized"
	CodeSpendCapExceeded       Code = "spend_cap_exceeded"
	CodeForbidden              Code = "forbidden"
	CodeNotFound               Code = "not_found"
	CodeInvalidState           Code = "invalid_state"
	CodePayloadTooLarge        Code = "payload_too_large"
	CodeIdempotencyReused      Code = "idempotency_key_reused"
	CodeAmountExceedsAvailable Code = "amount_exceeds_available"
	CodeRateLimited            Code = "rate_limited"
	CodeUnavailable            Code = "unavailable"

	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeInternal         Code = "internal"
)

// Kind is what every problem of one code has in common.
type Kind struct {
	Code   Code
	Status int
	Title  string
}

// kinds is the one table of codes.
var kinds = []Kind{
	{CodeIdempotencyRequired, 400, "The request needs an Idempotency-Key header"},
	{CodeIdempotencyInvalid, 400, "The idempotency key is not usable"},
	{CodeIdempotencyReserved, 400, "The idempotency key is reserved"},
	{CodeCardNumber, 400, "The request contains a card number"},
	{CodeInvalidRequest, 400, "The request is invalid"},
	{CodeUnauthorized, 401, "The API key is missing or not valid"},
	{CodeSpendCapExceeded, 402, "A spend cap would be exceeded"},
	{CodeForbidden, 403, "The API key does not allow this"},
	{CodeNotFound, 404, "There is no such thing"},
	{CodeInvalidState, 409, "The payment's status does not allow this"},
	{CodePayloadTooLarge, 413, "The body is too large"},
	{CodeIdempotencyReused, 422, "The idempotency key names another request"},
	{CodeAmountExceedsAvailable, 422, "The amount exceeds what is left"},
	{CodeRateLimited, 429, "Too many requests"},
	{CodeUnavailable, 503, "Temporarily unavailable"},
	{CodeMethodNotAllowed, 405, "The method is not allowed here"},
	{CodeInternal, 500, "Something went wrong here"},
}

// Kinds lists every code with its status and title.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// kindOf finds a code's row; every code has one, by test.
func kindOf(code Code) Kind {
	for _, k := range kinds {
		if k.Code == code {
			return k
		}
	}
	return Kind{Code: CodeInternal, Status: 500, Title: "Something went wrong here"}
}

// problem is an answer that says no (RFC 9457). It never holds a value that was refused.
type problem struct {
	code       Code
	detail     string
	errors     []payments.FieldError
	differs    []string
	retryAfter time.Duration // whole seconds, at least 1, when sent
	close      bool          // end the connection: what is left of the request is not read
	cause      error         // for the log
}

func refuse(code Code, detail string) *problem { return &problem{code: code, detail: detail} }

// invalid is an invalid_request about one thing.
func invalid(field, message string) *problem {
	return invalidFields([]payments.FieldError{{Field: field, Message: message}})
}

func invalidFields(fields []payments.FieldError) *problem {
	detail := "errors lists what is wrong and what to send instead; nothing was stored and the key stays free"
	if len(fields) == 1 {
		detail = fields[0].Field + ": " + fields[0].Message
	}
	return &problem{code: CodeInvalidRequest, detail: detail, errors: fields}
}

func unavailable(detail string, retryAfter time.Duration, cause error) *problem {
	return &problem{code: CodeUnavailable, detail: detail, retryAfter: retryAfter, cause: cause}
}

const notFoundDetail = "there is nothing under this address for this API key"

// away is when to come back after PostgreSQL did not answer.
const away = 2 * time.Second

// failed is the problem that an error of a port is.
func failed(err error) *problem {
	code := payments.ErrorCode(err)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code = payments.CodeUnavailable // the client has gone, or somebody was too slow
	}
	switch code {
	case payments.CodeUnavailable:
		return unavailable("the service cannot answer now; repeat the same request, under the same key if it has one: that is safe", away, err)
	case payments.CodeNotFound:
		return refuse(CodeNotFound, notFoundDetail)
	case payments.CodeInvalid:
		var e *payments.Error
		if errors.As(err, &e) && e.Field != "" {
			return invalid(e.Field, e.Message)
		}
		return invalid("request", "it cannot be stored or looked for as it is")
	default:
		return &problem{code: CodeInternal, detail: "the fault was logged under this answer's Request-Id; repeating the same request is safe", cause: err}
	}
}

// body writes the problem's members in a fixed order.
func (p *problem) body() []byte {
	k := kindOf(p.code)
	out := make([]byte, 0, 512)
	out = append(out, `{"type":"/docs#`...)
	out = append(out, k.Code...)
	out = append(out, `","title":`...)
	out = quote(out, k.Title)
	out = append(out, `,"status":`...)
	out = strconv.AppendInt(out, int64(k.Status), 10)
	out = append(out, `,"code":`...)
	out = quote(out, string(k.Code))
	out = append(out, `,"detail":`...)
	out = quote(out, p.detail)
	if p.errors != nil {
		out = append(out, `,"errors":[`...)
		for i, e := range p.errors {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"field":`...)
			out = quote(out, e.Field)
			out = append(out, `,"message":`...)
			out = quote(out, e.Message)
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	if p.differs != nil {
		out = append(out, `,"differs":[`...)
		for i, name := range p.differs {
			if i > 0 {
				out = append(out, ',')
			}
			out = quote(out, name)
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// quote appends a text as JSON; its error is only about UTF-8 that it has mended already.
func quote(out []byte, text string) []byte {
	out, _ = jsontext.AppendQuote(out, text)
	return out
}
