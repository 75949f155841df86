package stripe

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oncepay/oncepay/payments"
)

// Limits of what is kept of an answer's texts, in bytes.
const (
	messageMax = 500
	detailMax  = 200
	wordMax    = 64
	cleanMax   = 16 << 10 // nothing longer is searched
)

var (
	keyPattern    = regexp.MustCompile(`(?i)\b(sk|rk|pk|ek|whsec|opv)_[A-Za-z0-9_*.]+`)
	secretPattern = regexp.MustCompile(`(?i)[A-Za-z0-9_]*_secret_[A-Za-z0-9_]+`)
	// digitsPattern is any 12 digits or more, whatever stands between them: wider than the numbers of cards.
	digitsPattern = regexp.MustCompile(`\p{Nd}([^\p{L}\p{Nd}]{0,3}\p{Nd}){11,}`)
)

// clean returns s without what may not be kept: API keys, client secrets, long numbers, control characters; cut to limit bytes.
func clean(s string, limit int) string {
	if len(s) > cleanMax {
		return "[too long]"
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, s)
	s = keyPattern.ReplaceAllString(s, "[key]")
	s = secretPattern.ReplaceAllString(s, "[secret]")
	s = digitsPattern.ReplaceAllString(s, "[number]")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return strings.TrimSpace(s)
}

// failure returns the error as it may be stored and shown.
func (g *Gateway) failure(e apiError) *payments.Failure {
	e.Message = strings.ReplaceAll(e.Message, g.key, "[key]")
	return cleanFailure(e)
}

func cleanFailure(e apiError) *payments.Failure {
	return &payments.Failure{Code: word(e.Code), DeclineCode: word(e.DeclineCode), Message: clean(e.Message, messageMax)}
}

// word returns s if it is one of Stripe's words (a status, a type, a code), else "".
func word(s string) string {
	if len(s) > wordMax {
		return ""
	}
	letters := true
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9', c == '_':
			letters = false
		default:
			return ""
		}
	}
	// Keys and secrets have an underscore, and numbers of cards digits.
	if !letters && (digitsPattern.MatchString(s) || keyPattern.MatchString(s) || secretPattern.MatchString(s)) {
		return ""
	}
	return s
}

// requestID returns the value if it has the form of Stripe's request ids.
func requestID(s string) string {
	if !validID(s, "req_") || len(s) > wordMax || digitsPattern.MatchString(s) {
		return ""
	}
	return s
}
