package consumer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oncepay/oncepay/payments"
)

// cardIn names the part of a message that holds a card number, or returns "".
func cardIn(m message) string {
	switch {
	case payments.ContainsCardNumber(m.data):
		return "payload:"
	case bytes.Contains(m.data, []byte(`\u`)) && payments.ContainsCardNumber(unescaped(m.data)):
		return "payload:"
	case bytes.IndexByte(m.data, 0) >= 0 && payments.ContainsCardNumber(withoutNULs(m.data)):
		return "payload:"
	case payments.ContainsCardNumberString(m.subject):
		return "subject:"
	}
	for name, lines := range m.headers {
		if payments.ContainsCardNumberString(name) || payments.ContainsCardNumberString(strings.Join(lines, "\n")) {
			return "headers:"
		}
	}
	return ""
}

// withoutNULs turns the digits of UTF-16 and UTF-32 into plain ones. Such a message is no JSON of ours, but its bytes would be kept.
func withoutNULs(data []byte) []byte { return bytes.ReplaceAll(data, []byte{0}, nil) }

// unescaped resolves JSON's \uhhhh wherever it stands, whether or not the bytes are JSON: a message that cannot be decoded is kept raw, and must
// not keep a number that its reader would see.
func unescaped(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		at := bytes.IndexByte(data, '\\')
		if at < 0 || at+1 == len(data) {
			break
		}
		out = append(out, data[:at]...)
		data = data[at:]
		length := 2 // an escaped backslash begins nothing
		if data[1] == 'u' && len(data) >= 6 {
			if r, err := strconv.ParseUint(string(data[2:6]), 16, 16); err == nil {
				out, data = utf8.AppendRune(out, rune(r)), data[6:]
				continue
			}
		}
		out, data = append(out, data[:length]...), data[length:]
	}
	return append(out, data...)
}
