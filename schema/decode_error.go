package schema

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeError says why a message was refused. It never holds a value of the
// message, nor a name that could be one.
type DecodeError struct {
	// Field is the member, such as "amount", "metadata.order" or
	// "payments[3].currency"; empty where the message as a whole is meant, or
	// where the name is not safe to repeat.
	Field string
	// Problem says what is wrong and what to send instead.
	Problem string
	// Offset is the byte at or after which the problem was met.
	Offset int64
	// Malformed says that the bytes are no well-formed text of I-JSON (RFC
	// 7493) without U+0000 at all, rather than one that is not this message.
	Malformed bool
}

// Error names the field, the problem with its remedy, and the place.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s (at byte %d)", e.Placeless(), e.Offset)
}

// Placeless is Error without the place, for what stands in no message.
func (e *DecodeError) Placeless() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// below puts the field under path.
func (e *DecodeError) below(path string) *DecodeError {
	if path == "" {
		return e
	}
	if e.Field == "" {
		e.Field = strings.TrimSuffix(path, ".")
	} else {
		e.Field = path + e.Field
	}
	return e
}

// settle looks at the whole message once more, now that it is refused anyway: a
// wrong member may stand in front of broken text.
func (e *DecodeError) settle(data []byte) *DecodeError {
	e.Malformed = e.Malformed || !jsontext.Value(data).IsValid()
	return e
}

func errTooLarge(size, limit int) *DecodeError {
	return &DecodeError{Problem: fmt.Sprintf("the message has %d bytes: send at most %d", size, limit), Offset: int64(limit)}
}

// safeNameMax bounds a name of the sender's that an error repeats.
const safeNameMax = 40

// safeName returns name if it looks like a member's name, and else nothing. Few
// digits are allowed, so that neither card numbers nor most secrets pass.
func safeName(name string) string {
	if name == "" || len(name) > safeNameMax {
		return ""
	}
	digits := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-':
		case '0' <= c && c <= '9':
			digits++
		default:
			return ""
		}
	}
	if digits > 3 {
		return ""
	}
	return name
}
