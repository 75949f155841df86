package ingress

import (
	"strconv"
	"strings"
	"time"
)

// waitMax is the longest wait that is granted.
const waitMax = 30 * time.Second

// preferredWait is the wait=N of the Prefer lines (RFC 7240, sections 2 and 4.3): N in whole seconds, cut to waitMax. Whatever else is preferred is
// passed over, as is an N that is no number; of several waits the first counts. ok: a usable wait was asked for.
func preferredWait(lines []string) (wait time.Duration, ok bool) {
	for _, line := range lines {
		for preference := range split(line, ',') {
			name, value := "", ""
			for part := range split(preference, ';') { // what follows are the preference's parameters
				name, value, _ = strings.Cut(part, "=")
				break
			}
			if strings.EqualFold(strings.Trim(name, " \t"), "wait") {
				return seconds(unquoted(strings.Trim(value, " \t")))
			}
		}
	}
	return 0, false
}

func seconds(digits string) (time.Duration, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(waitMax/time.Second) { // beyond 64 bits is long too
		return waitMax, true
	}
	return time.Duration(n) * time.Second, true
}

// unquoted takes the quotes off a quoted-string. Digits need no escapes.
func unquoted(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// split yields the parts of line between separators that are not inside a quoted-string.
func split(line string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == separator && !quoted:
				if !yield(line[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(line[start:])
	}
}
