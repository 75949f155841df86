package console

import "strings"

// Grouped puts commas between the thousands of the first number of a text: "10000 USD" is "10,000 USD".
func Grouped(text string) string {
	start := strings.IndexFunc(text, digit)
	if start < 0 {
		return text
	}
	end := start
	for end < len(text) && digit(rune(text[end])) {
		end++
	}
	var b strings.Builder
	b.WriteString(text[:start])
	for i := start; i < end; i++ {
		if i > start && (end-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(text[i])
	}
	b.WriteString(text[end:])
	return b.String()
}

func digit(r rune) bool { return r >= '0' && r <= '9' }
