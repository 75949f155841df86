package postgres

// A parcel is one message of a row of outbox_intents, which may have several: those of one tenant that were accepted in one flush. An outbox item's
// number tells the row, how many messages it has, and which of them the item is.
type parcel struct {
	row         int64
	parts, part int // part counts from 0
}

// partBits is how many bits of a number the count and the place of a part have each; a flush has fewer items. 43 bits are left for the row.
const (
	partBits = 10
	partsMax = 1<<partBits - 1
)

func (p parcel) number() int64 { return p.row<<(2*partBits) | int64(p.parts)<<partBits | int64(p.part) }

func parcelOf(number int64) parcel {
	return parcel{row: number >> (2 * partBits), parts: int(number >> partBits & partsMax), part: int(number & partsMax)}
}

// alone is the parcel of a row that has no other.
func alone(row int64) parcel { return parcel{row: row, parts: 1} }

// delivered sorts the rows of items that are stored by whether all of a row's are among them; of the others it tells which are.
func delivered(numbers []int64) (whole, rows []int64, parts []int16) {
	stored := map[int64]map[int]bool{}
	for _, n := range numbers {
		p := parcelOf(n)
		if stored[p.row] == nil {
			stored[p.row] = map[int]bool{}
		}
		stored[p.row][p.part] = true
	}
	for _, n := range numbers {
		p := parcelOf(n)
		switch here := stored[p.row]; {
		case here == nil: // the row is dealt with
		case len(here) == p.parts:
			whole = append(whole, p.row)
			delete(stored, p.row)
		default:
			for part := range here {
				rows, parts = append(rows, p.row), append(parts, int16(part))
			}
			delete(stored, p.row)
		}
	}
	return whole, rows, parts
}
