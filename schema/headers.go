package schema

import (
	"errors"
	"fmt"
	"strings"
)

// The headers that a message or a request may carry.
const (
	// HeaderIdempotencyKey names the request; see [ParseKeyHeader].
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderTraceparent carries the W3C trace context.
	HeaderTraceparent = "traceparent"
	// HeaderMsgID is JetStream's own de-duplication id. It is accepted and not
	// needed: it knows neither the tenant nor the body.
	HeaderMsgID = "Nats-Msg-Id"
)

// ErrKeyHeader is wrapped by every error about an Idempotency-Key header.
var ErrKeyHeader = errors.New("invalid " + HeaderIdempotencyKey + " header")

// HeaderLines returns the values of every line of header whose name is name,
// whatever its case. HTTP makes names canonical before anyone sees them; NATS
// does not, and two spellings must not hide a second line.
func HeaderLines(header map[string][]string, name string) []string {
	if len(header) == 0 {
		return nil
	}
	var lines []string
	for n, values := range header {
		if strings.EqualFold(n, name) {
			lines = append(lines, values...)
		}
	}
	return lines
}

// ParseKeyHeader reads the key out of the lines of an Idempotency-Key header, of
// HTTP or NATS alike. No line at all is no key and no error. The one line may
// hold the key as it is, or a structured-field string (RFC 9651, section 3.3.3:
// within double quotes, a backslash before a quote or a backslash); abc and
// "abc" name the same key. The error wraps [ErrKeyHeader] and does not repeat
// the value.
func ParseKeyHeader(lines []string) (key string, present bool, err error) {
	switch len(lines) {
	case 0:
		return "", false, nil
	case 1:
	default:
		return "", false, fmt.Errorf("%w: it was sent %d times: send it once", ErrKeyHeader, len(lines))
	}
	key = lines[0]
	if strings.HasPrefix(key, `"`) {
		if key, err = unquoteKey(key); err != nil {
			return "", false, err
		}
	}
	switch {
	case key == "":
		return "", false, fmt.Errorf("%w: it is empty: send a key of your own, or no header", ErrKeyHeader)
	case len(key) > KeyMaxBytes:
		return "", false, fmt.Errorf("%w: the key is longer than %d characters: shorten or hash it", ErrKeyHeader, KeyMaxBytes)
	case !ValidKey(key):
		return "", false, fmt.Errorf("%w: the key must be printable ASCII without spaces", ErrKeyHeader)
	}
	return key, true, nil
}

// unquoteKey reads a structured-field string that fills the whole line.
// Parameters after it are refused: none has a meaning here.
func unquoteKey(line string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; c {
		case '"':
			if i != len(line)-1 {
				return "", fmt.Errorf("%w: there is text after the closing quote: remove it", ErrKeyHeader)
			}
			return key.String(), nil
		case '\\':
			i++
			if i == len(line) || (line[i] != '"' && line[i] != '\\') {
				return "", fmt.Errorf("%w: within quotes a backslash must stand before a quote or a backslash", ErrKeyHeader)
			}
			key.WriteByte(line[i])
		default:
			key.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%w: the closing quote is missing", ErrKeyHeader)
}
