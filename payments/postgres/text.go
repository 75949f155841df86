package postgres

import (
	"strings"
	"unicode/utf8"
)

// Bounds, in bytes, of text that others wrote.
const (
	reasonMax  = 200
	messageMax = 2000
	nameMax    = 300
)

// sanitised is text that PostgreSQL can keep: valid UTF-8 without U+0000, at most limit bytes.
func sanitised(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// storable reports whether PostgreSQL can keep the text as it is.
func storable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }
