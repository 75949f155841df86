package payments

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// CardInBytes is ContainsCardNumber for a message that nobody has decoded yet: a number that a reader of the message would see counts too, be its
// digits written as JSON's \uhhhh or in UTF-16 or UTF-32.
func CardInBytes(data []byte) bool {
	switch {
	case ContainsCardNumber(data):
		return true
	case bytes.Contains(data, []byte(`\u`)) && ContainsCardNumber(unescaped(data)):
		return true
	default:
		return bytes.IndexByte(data, 0) >= 0 && ContainsCardNumber(withoutNULs(data))
	}
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
