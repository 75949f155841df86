package schema

import (
	"errors"
	"strings"
	"time"
)

// ParseTime reads an RFC 3339 time and returns it in UTC. It keeps to the letter
// of the RFC where [time.Parse] is lenient (a comma before the fraction, an hour
// of one digit, an offset of a day), and wants a year from 1 to 9999 in UTC, so
// that the time can be written again. The error does not repeat text.
func ParseTime(text string) (time.Time, error) {
	if !timeShape(text) {
		return time.Time{}, errTime
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil { // its text would repeat ours
		return time.Time{}, errTime
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, errTime
	}
	return t, nil
}

var errTime = errors.New("not an RFC 3339 time such as 2030-01-31T12:00:00Z")

// timeShape compares text with the grammar of RFC 3339, section 5.6, "T" and "Z"
// in capitals; the digits' ranges are time.Parse's to check, but for an offset's.
func timeShape(text string) bool {
	const seconds = "0000-00-00T00:00:00"
	if len(text) <= len(seconds) || !sameShape(text[:len(seconds)], seconds) {
		return false
	}
	zone := text[len(seconds):]
	if zone[0] == '.' {
		digits := len(zone) - 1 - len(strings.TrimLeft(zone[1:], "0123456789"))
		if digits == 0 {
			return false
		}
		zone = zone[1+digits:]
	}
	if zone == "Z" {
		return true
	}
	return (sameShape(zone, "+00:00") || sameShape(zone, "-00:00")) && zone[1:3] <= "23" && zone[4:6] <= "59"
}

// sameShape reports whether text is pattern with any digit for each 0.
func sameShape(text, pattern string) bool {
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(text) {
		if pattern[i] == '0' {
			if text[i] < '0' || text[i] > '9' {
				return false
			}
		} else if text[i] != pattern[i] {
			return false
		}
	}
	return true
}
