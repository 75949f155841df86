package payments

// ContainsCardNumber reports whether the text holds what can only be taken for a payment card number: an issuer's prefix, a length which that
// issuer uses, and a right check digit (Luhn, ISO/IEC 7812-1 annex B), all three together. The digits stand unseparated, or in the groups in
// which cards are printed, with one space or dash between groups, in any mixture, or with one dot between all of three groups or more. A dot between
// two groups only, or beside spaces and dashes, is a decimal point: "4242 4242 4242.4242" is three numbers.
//
// Digit groups are taken whole, so a 20-digit number holds no card; letters beside a group do not hide it. Digits that are part of a UUID, of a
// long hex id or of a valid IBAN, a phone number with its +, or a decimal fraction are no card (card_context.go). JSON escapes are not resolved: a message is
// checked as raw bytes and its decoded strings again.
func ContainsCardNumber(text []byte) bool { return containsCard(text) }

// ContainsCardNumberString is ContainsCardNumber for a string.
func ContainsCardNumberString(text string) bool { return containsCard(text) }

// CardField names the first field of the intent, in the names of the wire, whose text contains a card number, or returns "". A metadata entry is
// named "metadata", whether its name or its value is meant.
func (i Intent) CardField() string {
	fields := [...]struct{ name, text string }{
		{"idempotency_key", i.IdempotencyKey},
		{"kind", string(i.Kind)},
		{"payment_id", i.PaymentID},
		{"currency", i.Currency},
		{"payment_method", i.PaymentMethod},
		{"customer", i.Customer},
		{"description", i.Description},
		{"statement_descriptor_suffix", i.StatementDescriptorSuffix},
		{"receipt_email", i.ReceiptEmail},
		{"capture_method", string(i.CaptureMethod)},
		{"return_url", i.ReturnURL},
		{fieldReason, i.Reason},
		{"tenant_id", i.TenantID},
	}
	for _, f := range fields {
		if cardInText(f.text) {
			return f.name
		}
	}
	for name, value := range i.Metadata {
		if cardInText(name) || cardInText(value) {
			return fieldMetadata
		}
	}
	return ""
}

// The lengths of card numbers (ISO/IEC 7812-1: at most 19), and the shortest group that a printed card begins with.
const (
	cardDigitsMin  = 12
	cardDigitsMax  = 19
	cardGroupFirst = 4
	cardGroupsMax  = 5
)

// text is what can be searched without copying it.
type text interface{ ~string | ~[]byte }

// span is the half-open range of one digit group.
type span struct{ start, end int }

// containsCard looks only at every fourth byte until it meets a digit: every card begins with a group of at least four digits, and every such
// group has a digit there.
func containsCard[T text](t T) bool { return containsCardIn(t, true) }

// cardInText is containsCard for the text of one field, in which no amount stands as a JSON number does: what looks like one there would be a card
// number to whoever reads the text in another spelling, with its white space escaped.
func cardInText(t string) bool { return containsCardIn(t, false) }

// containsCardIn is containsCard; amounts says whether JSON numbers may be amounts.
func containsCardIn[T text](t T, amounts bool) bool {
	for i := cardGroupFirst - 1; i < len(t); i += cardGroupFirst {
		if !isDigit(t[i]) {
			continue
		}
		g := groupAround(t, i)
		if g.end-g.start >= cardGroupFirst && cardStartsAt(t, g, amounts) {
			return true
		}
		i = g.end // the loop goes on to the fourth byte after the group
	}
	return false
}

// groupAround returns the maximal run of digits that i is in.
func groupAround[T text](t T, i int) span {
	g := span{i, i + 1}
	for g.start > 0 && isDigit(t[g.start-1]) {
		g.start--
	}
	for g.end < len(t) && isDigit(t[g.end]) {
		g.end++
	}
	return g
}

// cardStartsAt reports whether the group is a card number, or begins one that is written in groups.
func cardStartsAt[T text](t T, first span, amounts bool) bool {
	var groups [cardGroupsMax]span
	var digits [cardDigitsMax]byte
	layout, length := uint32(0), 0 // one hex digit per group: its size
	next, dots := first, 0
	for n := range cardGroupsMax {
		size := next.end - next.start
		if length+size > cardDigitsMax || size > 0xF && n > 0 {
			return false
		}
		groups[n] = next
		for k := range size {
			digits[length+k] = t[next.start+k] - '0'
		}
		length += size
		layout = layout<<4 | uint32(size)
		if (n == 0 || cardLayout(layout) && separatedAlike(t, groups[:n+1], dots)) && isCard(digits[:length]) && !notCard(t, groups[:n+1], amounts) {
			return true
		}
		sep := separatorAt(t, next.end)
		if sep == 0 && next.end < len(t) && t[next.end] == '.' {
			sep, dots = 1, dots+1
		}
		if sep == 0 || size > 0xF {
			return false
		}
		start := next.end + sep
		if start >= len(t) || !isDigit(t[start]) {
			return false
		}
		next = span{start, start + 1}
		for next.end < len(t) && isDigit(t[next.end]) {
			next.end++
		}
	}
	return false
}

// cardLayout reports whether digits are grouped as on a card: 4-4-4-4 and 4-4-4-4-1 to -3 (most), 4-6-5 (American Express), 4-6-4 (Diners Club),
// 4-4-4-1 to -3 (13 to 15 digits), 4-4-4 and 4-4-5 (Maestro), 6-13 (UnionPay).
func cardLayout(layout uint32) bool {
	switch layout {
	case 0x4444, 0x44441, 0x44442, 0x44443, 0x465, 0x464, 0x4441, 0x4442, 0x4443, 0x444, 0x445, 0x6D:
		return true
	}
	return false
}

// separatedAlike reports whether groups with so many dots between them are separated as a card's are. With dots, what stands in a longer row of dotted
// numbers is none: a version, or the name of an object.
func separatedAlike[T text](t T, groups []span, dots int) bool {
	if dots == 0 {
		return true
	}
	end := groups[len(groups)-1].end
	return dots == len(groups)-1 && dots > 1 && !isFraction(t, groups[0]) &&
		(end+1 >= len(t) || t[end] != '.' || !isDigit(t[end+1]))
}

// separatorAt returns the length of the one space or dash at i, 0 if there is none: space, hyphen-minus, or in UTF-8 no-break space (U+00A0),
// hyphen (U+2010), non-breaking hyphen (U+2011), en dash (U+2013).
func separatorAt[T text](t T, i int) int {
	switch {
	case i >= len(t):
		return 0
	case t[i] == ' ' || t[i] == '-':
		return 1
	case t[i] == 0xC2 && i+1 < len(t) && t[i+1] == 0xA0:
		return 2
	case t[i] == 0xE2 && i+2 < len(t) && t[i+1] == 0x80 && (t[i+2] == 0x90 || t[i+2] == 0x91 || t[i+2] == 0x93):
		return 3
	}
	return 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// isCard reports whether the digits have an issuer's prefix, a length of that issuer, and a right check digit.
func isCard(digits []byte) bool {
	if len(digits) < cardDigitsMin || len(digits) > cardDigitsMax {
		return false
	}
	prefix := 0
	for _, d := range digits[:6] {
		prefix = 10*prefix + int(d)
	}
	for _, r := range issuerRanges {
		if prefix >= r.first && prefix <= r.last {
			return r.lengths&(1<<len(digits)) != 0 && luhn(digits)
		}
	}
	return false
}

// luhn: from the right every second digit is doubled, its own digits added; the sum must be divisible by ten.
func luhn(digits []byte) bool {
	sum, double := 0, false
	for i := len(digits) - 1; i >= 0; i-- {
		d := int(digits[i])
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return sum%10 == 0
}
