package payments

// hexIDMin is the length from which a run of hex digits is taken for an id or a hash.
const hexIDMin = 24

// notCard reports whether digits that look like a card number are known from what stands around them to be something else.
func notCard[T text](t T, groups []span, amounts bool) bool {
	whole := span{groups[0].start, groups[len(groups)-1].end}
	if len(groups) == 1 && (isPhone(t, whole) || isFraction(t, whole) || amounts && isAmount(t, whole)) {
		return true
	}
	for _, g := range groups {
		if inHexID(t, g) {
			return true
		}
	}
	return inUUID(t, whole) || inIBAN(t, whole)
}

// isPhone: 12 or 13 digits right after a + are an international phone number (E.164); German and British ones begin as Visa's do.
func isPhone[T text](t T, g span) bool {
	return g.end-g.start <= 13 && g.start > 0 && t[g.start-1] == '+'
}

// isFraction: the decimals of a number that was printed to its last bit.
func isFraction[T text](t T, g span) bool {
	return g.start > 1 && t[g.start-1] == '.' && isDigit(t[g.start-2])
}

// isAmount: a JSON number of 12 digits, the most that an amount may have.
func isAmount[T text](t T, g span) bool {
	if g.end-g.start != cardDigitsMin {
		return false
	}
	i := skipSpaceBack(t, g.start)
	if i == 0 || t[i-1] != ':' {
		return false
	}
	i = skipSpaceBack(t, i-1)
	return i > 0 && t[i-1] == '"'
}

// skipSpaceBack returns the smallest index from which only JSON's white space stands before i.
func skipSpaceBack[T text](t T, i int) int {
	for i > 0 && (t[i-1] == ' ' || t[i-1] == '\t' || t[i-1] == '\n' || t[i-1] == '\r') {
		i--
	}
	return i
}

// inHexID reports whether the group stands in a long run of hex digits. The run has letters, since the group is maximal and shorter.
func inHexID[T text](t T, g span) bool {
	start, end := g.start, g.end
	for start > 0 && isHex(t[start-1]) {
		start--
	}
	for end < len(t) && isHex(t[end]) {
		end++
	}
	return end-start >= hexIDMin
}

const uuidLength = 36

// inUUID reports whether the range lies in a UUID: 8-4-4-4-12 hex digits (RFC 9562).
func inUUID[T text](t T, g span) bool {
	for start := max(0, g.end-uuidLength); start <= g.start && start+uuidLength <= len(t); start++ {
		if uuidAt(t, start) {
			return true
		}
	}
	return false
}

func uuidAt[T text](t T, start int) bool {
	if start > 0 && isHex(t[start-1]) || start+uuidLength < len(t) && isHex(t[start+uuidLength]) {
		return false
	}
	for i := range uuidLength {
		c := t[start+i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return isDigit(c) || (c|0x20)-'a' < 6 }
