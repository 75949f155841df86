package console

import "unicode"

// wide are the scripts and signs whose characters take two cells of a terminal's line.
var wide = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi, {
	R16: []unicode.Range16{{Lo: 0x3000, Hi: 0x303E, Stride: 1}, {Lo: 0xFF01, Hi: 0xFF60, Stride: 1}, {Lo: 0xFFE0, Hi: 0xFFE6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1F300, Hi: 0x1F64F, Stride: 1}, {Lo: 0x1F680, Hi: 0x1F6FF, Stride: 1}, {Lo: 0x1F900, Hi: 0x1FAFF, Stride: 1}},
}}

// cellsOf is how many cells of a line a character takes: none that is put onto the one before it, and two where the script is written in squares.
func cellsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0xFF61 && r <= 0xFFDC: // half as wide, for this very reason
		return 1
	case unicode.In(r, wide...):
		return 2
	}
	return 1
}

// cells is how many cells of a line a text takes.
func cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

// within is how many characters of a text fit into so many cells, from its beginning.
func within(runes []rune, most int) int {
	for i, r := range runes {
		if most -= cellsOf(r); most < 0 {
			return i
		}
	}
	return len(runes)
}

// withinEnd is within from the end.
func withinEnd(runes []rune, most int) int {
	n := 0
	for i := len(runes) - 1; i >= 0; i-- {
		if most -= cellsOf(runes[i]); most < 0 {
			break
		}
		n++
	}
	return n
}
