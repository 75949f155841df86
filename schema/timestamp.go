package schema

import (
	"strconv"
	"time"
)

// Timestamp is a time in a document: RFC 3339, in UTC, with at most
// microseconds, which is all that PostgreSQL keeps.
type Timestamp struct{ time.Time }

// NewTimestamp cuts t to microseconds, in UTC.
func NewTimestamp(t time.Time) Timestamp {
	return Timestamp{t.UTC().Truncate(time.Microsecond)}
}

// NullTimestamp is nil, hence null, for the zero time.
func NullTimestamp(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	ts := NewTimestamp(t)
	return &ts
}

// MarshalJSON writes the time; a year outside 1 to 9999 is an error.
func (t Timestamp) MarshalJSON() ([]byte, error) { return t.appendTo(make([]byte, 0, 32)) }

// appendTo appends what MarshalJSON writes; out is returned as it was beside an
// error.
func (t Timestamp) appendTo(out []byte) ([]byte, error) {
	u := NewTimestamp(t.Time).Time
	if u.Year() < 1 || u.Year() > 9999 {
		return out, errTime
	}
	out = u.AppendFormat(append(out, '"'), time.RFC3339Nano) // by itself the layout has a way of its own, which takes a third of the time
	return append(out, '"'), nil
}

// UnmarshalJSON reads what [ParseTime] reads.
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	text, err := strconv.Unquote(string(data))
	if err != nil {
		return errTime
	}
	parsed, err := ParseTime(text)
	if err != nil {
		return err
	}
	*t = NewTimestamp(parsed)
	return nil
}
