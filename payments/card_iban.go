package payments

// The bounds of an IBAN (ISO 13616): two letters, two check digits, and up to 30 characters of the account; 15 (Norway) is the shortest in use.
const (
	ibanMin  = 15
	ibanMax  = 34
	ibanHead = 4
)

// inIBAN reports whether the range lies in an IBAN whose check digits are right, written at once or in groups. Printed in groups of four, the
// account numbers of some banks look like cards.
func inIBAN[T text](t T, g span) bool {
	const reach = ibanMax + 3*ibanMax/4 // with separators of up to three bytes
	for start := g.start - 2; start >= 0 && start >= g.start-reach; start-- {
		head := start+ibanHead <= len(t) && isUpper(t[start]) && isUpper(t[start+1]) && isDigit(t[start+2]) && isDigit(t[start+3])
		if head && (start == 0 || !isAlnum(t[start-1])) && ibanCovers(t, start, g.end) {
			return true
		}
	}
	return false
}

// ibanCovers reports whether an IBAN that begins at start ends at a word's end at or after end: the account, the country and the check digits,
// read as one number with A as 10, leave 1 when divided by 97 (ISO 7064).
func ibanCovers[T text](t T, start, end int) bool {
	rem, length := 0, ibanHead
	for i := start + ibanHead; i < len(t) && length < ibanMax; {
		sep := separatorAt(t, i)
		if i += sep; i >= len(t) || !isUpper(t[i]) && !isDigit(t[i]) {
			return false
		}
		rem, length = ibanDigit(rem, t[i]), length+1
		if i++; i < end || i < len(t) && isAlnum(t[i]) {
			continue
		}
		whole := rem
		for k := range ibanHead {
			whole = ibanDigit(whole, t[start+k])
		}
		if length >= ibanMin && whole == 1 {
			return true
		}
	}
	return false
}

// ibanDigit appends a character to a number of which only the remainder by 97 is kept.
func ibanDigit(rem int, c byte) int {
	if isDigit(c) {
		return (10*rem + int(c-'0')) % 97
	}
	return (100*rem + int(c-'A') + 10) % 97
}

func isUpper(c byte) bool { return c-'A' < 26 }

func isAlnum(c byte) bool { return isDigit(c) || (c|0x20)-'a' < 26 }
