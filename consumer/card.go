package consumer

import (
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// cardIn names the part of a message that holds a card number, or returns "".
func cardIn(m message) string {
	switch {
	case payments.CardInBytes(m.data):
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
