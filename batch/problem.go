package batch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Codes of answers that this package decides on; codeForeign is its own, for an answer that is none of the API's.
const (
	codeReused  = "idempotency_key_reused"
	codeForeign = "foreign_answer"
)

// ProblemError is an answer of the API that refuses, in its own words (RFC 9457).
type ProblemError struct {
	Status  int          `json:"-"`
	Code    string       `json:"code"`
	Title   string       `json:"title"`
	Detail  string       `json:"detail"`
	Errors  []FieldError `json:"errors"`
	Differs []string     `json:"differs"`

	// RetryAfter is how long the server asks to wait; 0: it does not say.
	RetryAfter time.Duration `json:"-"`
}

// FieldError is what the API says of one member, such as payments[3].amount.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error names the status, the code and what to do.
func (e *ProblemError) Error() string {
	var text string
	switch {
	case e.Code == codeForeign:
		return fmt.Sprintf("the answer (HTTP %d) is not of this API: check ONCEPAY_API_URL, and what stands between", e.Status)
	case e.Status == http.StatusUnauthorized:
		text = "the API does not know ONCEPAY_API_KEY, or knows it no longer: `oncepay keys list` shows which are good there, `oncepay keys create` makes one"
	case e.Status == http.StatusForbidden:
		text = "ONCEPAY_API_KEY does not allow this: it needs the scopes batches:write and payments:read; `oncepay keys create --scopes batches:write,payments:read` makes a key that has them"
	case e.Status >= 300 && e.Status < 400:
		text = "the API answers with a redirect, which is not followed: set ONCEPAY_API_URL to where it leads"
	case e.Detail != "":
		text = e.Detail
	case e.Title != "":
		text = e.Title
	default:
		text = http.StatusText(e.Status)
	}
	name := fmt.Sprintf("HTTP %d", e.Status)
	if e.Code != "" {
		name += " " + e.Code
	}
	return text + " (" + name + ")"
}

// retryable reports whether the same request may be accepted later.
func (e *ProblemError) retryable() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return false
	case http.StatusBadRequest: // of the body as a whole: it did not come there whole
		return len(e.Errors) == 1 && e.Errors[0].Field == "body"
	}
	return e.Status >= 500
}

func readProblem(answer *http.Response) error {
	e := &ProblemError{Status: answer.StatusCode}
	data, err := io.ReadAll(io.LimitReader(answer.Body, errorMax))
	if err == nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/") {
		if json.Unmarshal(data, e) != nil {
			e = &ProblemError{} // what was read of it may be half of something
		}
	}
	e.Status, e.RetryAfter = answer.StatusCode, retryAfter(answer.Header)
	return e
}

// retryAfterMax bounds how long a server can make us wait.
const retryAfterMax = 5 * time.Minute

// retryAfter reads Retry-After, in seconds or as a date beside the answer's own Date (RFC 9110, section 10.2.3).
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		if now, err := http.ParseTime(header.Get("Date")); err == nil {
			wait = at.Sub(now)
		}
	}
	return min(max(wait, 0), retryAfterMax)
}

// permanent reports whether an error will not mend itself: an answer that refuses, or a server that cannot be trusted.
func permanent(err error) bool {
	var problem *ProblemError
	if errors.As(err, &problem) {
		return !problem.retryable()
	}
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	return errors.As(err, &unknown) || errors.As(err, &wrongName) || errors.As(err, &invalid) || errors.As(err, &unverified) || errors.As(err, &notTLS)
}
