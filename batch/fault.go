package batch

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// faultsMax is how many faults are collected before the rest of the file is left unread.
const faultsMax = 20

// Fault says what is wrong at one place of a file, and what to do about it. It never contains a value.
type Fault struct {
	Row     int64  // from 1, the header and blank lines not counted; 0: no row is meant
	Line    int64  // of the file, from 1; 0: no line is meant
	Column  string // of CSV, or member of JSON; "": the row as a whole
	Message string
}

// String names the place, the fault and the remedy.
func (f Fault) String() string {
	var place []string
	switch {
	case f.Row > 0 && f.Line > 0:
		place = append(place, fmt.Sprintf("row %d (line %d)", f.Row, f.Line))
	case f.Row > 0:
		place = append(place, fmt.Sprintf("row %d", f.Row))
	case f.Line > 0:
		place = append(place, fmt.Sprintf("line %d", f.Line))
	}
	if f.Column != "" {
		place = append(place, "column "+f.Column)
	}
	if len(place) == 0 {
		return f.Message
	}
	return strings.Join(place, ", ") + ": " + f.Message
}

// FaultsError is a file of which nothing was sent, since something is wrong with it.
type FaultsError struct {
	Faults []Fault // in the order of the file
	More   bool    // the file was not read to its end: there may be more
}

// Error names every fault.
func (e *FaultsError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.String()
	}
	if e.More {
		texts = append(texts, "the rest of the file was not looked at")
	}
	return "the file is refused: " + strings.Join(texts, "; ")
}

// errStop says that the rest of the file is not read, for a reason that is among the faults.
var errStop = errors.New("the file is not read any further")

// faults collects what is wrong.
type faults struct {
	list []Fault
	more bool
}

// add notes a fault. It returns errStop when there are enough.
func (f *faults) add(fault Fault) error {
	f.list = append(f.list, fault)
	if len(f.list) >= faultsMax {
		f.more = true
		return errStop
	}
	return nil
}

// stop notes a fault after which the file cannot be understood.
func (f *faults) stop(fault Fault) error {
	f.list = append(f.list, fault)
	f.more = true
	return errStop
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &FaultsError{Faults: f.list, More: f.more}
}

// cardRemedy is what is said of a card number, wherever it stands.
const cardRemedy = "contains what looks like a card number: put a Stripe payment method (pm_…) there, and never card data"

// safeName returns a name that is fit to be repeated, and else nothing: few digits, so that neither card numbers nor secrets pass.
func safeName(name string) string {
	if name == "" || len(name) > 60 {
		return ""
	}
	digits := 0
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-', c == '.', c == ' ':
		case '0' <= c && c <= '9':
			digits++
		default:
			return ""
		}
	}
	if digits > 3 || payments.ContainsCardNumberString(name) {
		return ""
	}
	return name
}

// tooLongReader ends a file whose row has no end, as when a quote is never closed: without it the row would be read into memory to the file's end.
type tooLongReader struct {
	in    io.Reader
	left  int // bytes until begin is called again
	limit int
}

var errTooLong = errors.New("the row is too long")

// begin allows another row.
func (r *tooLongReader) begin() { r.left = r.limit }

// Read is the reader's, as long as the row may be longer.
func (r *tooLongReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLong
	}
	n, err := r.in.Read(p)
	r.left -= n
	return n, err
}
