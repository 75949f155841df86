package payments

import (
	"errors"
	"fmt"
)

// Code is the stable, machine-readable name of what went wrong. Ports list which codes each of their methods may return.
type Code string

// The codes of this package and its ports.
const (
	// CodeInvalid: the request can never be accepted as it is; Error.Field names the field.
	CodeInvalid Code = "invalid"
	// CodeNotFound: no such object for this tenant.
	CodeNotFound Code = "not_found"
	// CodeTicketLost: the caller's token is no longer in the ticket; somebody else owns the payment and the write changed nothing.
	CodeTicketLost Code = "ticket_lost"
	// CodeTargetMoved: the charge of a follow-up has changed meanwhile, and nothing was written; looking at it again settles it.
	CodeTargetMoved Code = "target_moved"
	// CodeUnavailable: a service is away or too slow; nothing is known to be wrong with the request. Trying again later is right.
	CodeUnavailable Code = "unavailable"
	// CodeInternal: a bug or a state that must not exist. It is never retried in a loop.
	CodeInternal Code = "internal"
)

// Error is an error with a Code, safe to show to whoever made the request: it never contains a refused value.
type Error struct {
	Code    Code
	Field   string // the member that is wrong, if one is
	Message string
	Err     error // the cause, for logs
}

// Error returns the message with the field and the cause.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the code; a %w operand becomes its cause.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if cause := errors.Unwrap(err); cause != nil {
		return &Error{Code: code, Message: string(code), Err: err}
	}
	return &Error{Code: code, Message: err.Error()}
}

// ErrorCode returns the code of err: "" for nil, CodeInternal for an error that carries none.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Retryable reports whether the same call may succeed later without anybody changing anything.
func Retryable(err error) bool { return ErrorCode(err) == CodeUnavailable }

// TicketLost reports whether err says that the caller no longer owns the payment.
func TicketLost(err error) bool { return ErrorCode(err) == CodeTicketLost }

// FieldError says what is wrong with one member of a request, and what to do about it. It never contains the value.
type FieldError struct {
	Field   string
	Message string
}

// ValidationError lists everything that is wrong with a request.
type ValidationError struct {
	Reason Reason // the dead-letter reason: ReasonInvalid, ReasonKeyInvalid, ReasonKeyMissing, …
	Fields []FieldError
}

// Error names every field with its remedy.
func (e *ValidationError) Error() string {
	s := string(e.Reason)
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		s += sep + f.Field + " " + f.Message
	}
	return s
}
