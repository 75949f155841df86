package batch

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

type intent = schema.Intent

// readAhead is how much of a file is read at once.
const readAhead = 64 << 10

// byteOrderMark begins files that some programs write; it means nothing in UTF-8.
const byteOrderMark = "\uFEFF"

// lines reads JSON Lines.
type lines struct {
	in           *bufio.Reader
	found        *faults
	long         []byte // of lines that do not fit the reader's buffer
	number, line int64
}

func newLines(in io.Reader, found *faults) *lines {
	return &lines{in: bufio.NewReaderSize(in, readAhead), found: found}
}

// next reads the next line that is not blank.
func (l *lines) next(r *row) (bool, error) {
	for {
		text, err := l.read()
		if err != nil {
			return false, err
		}
		l.line++
		if l.line == 1 {
			if utf16Mark(text) {
				return false, l.found.stop(Fault{Line: 1, Message: utf16Remedy})
			}
			text = bytes.TrimPrefix(text, []byte(byteOrderMark))
		}
		if len(bytes.TrimLeft(text, " \t\r\n")) == 0 {
			continue
		}
		l.number++
		r.number, r.line = l.number, l.line
		return l.decode(r, text)
	}
}

func (l *lines) decode(r *row, text []byte) (bool, error) {
	refuse := func(column, message string) (bool, error) {
		return false, l.found.add(Fault{Row: r.number, Line: r.line, Column: column, Message: message})
	}
	if payments.CardInBytes(text) {
		return refuse(cardMember(text, true), cardRemedy)
	}
	wire, err := schema.DecodeIntent(text)
	var refused *schema.DecodeError
	switch {
	case errors.As(err, &refused) && refused.Field == columnDecimal:
		return refuse(columnDecimal, "is a column of CSV alone: write amount, in minor units (9900 for 99.00 USD)")
	case errors.As(err, &refused):
		return refuse(refused.Field, refused.Problem)
	case err != nil:
		return false, err
	case wire.IdempotencyKey.Set:
		return refuse("idempotency_key", "a payment of a file has no key of its own: remove it; the run's key and the row's place name it")
	case wire.TenantID.Set:
		return refuse("tenant_id", "remove it: the API key says whose payments these are")
	}
	r.wire = wire
	return true, nil
}

// cardMember is the name of the member whose value holds a card number, deeper as metadata.note; "" where that cannot be told, or the name itself is
// not fit to be repeated.
func cardMember(text []byte, deeper bool) string {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if open, err := d.ReadToken(); err != nil || open.Kind() != jsontext.KindBeginObject {
		return ""
	}
	for d.PeekKind() == jsontext.KindString {
		token, err := d.ReadToken()
		if err != nil {
			return ""
		}
		name := token.String() // the token is good until the next is read
		value, err := d.ReadValue()
		switch {
		case err != nil:
			return ""
		case !payments.CardInBytes(value):
			continue
		case deeper && value.Kind() == jsontext.KindBeginObject:
			if inner := cardMember(value, false); inner != "" && safeName(name+"."+inner) != "" {
				return safeName(name + "." + inner)
			}
		}
		return safeName(name)
	}
	return ""
}

// column is the member itself.
func (l *lines) column(member string) string { return member }

// read returns a line, valid until the next; the last need not end with a line feed.
func (l *lines) read() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], text...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(l.long) > schema.IntentMaxBytes+2 {
				return nil, l.found.stop(Fault{Row: l.number + 1, Line: l.line + 1, Message: "the line is longer than any intent: put one JSON object on each line"})
			}
			text, err = l.in.ReadSlice('\n')
			l.long = append(l.long, text...)
		}
		text = l.long
	}
	if errors.Is(err, io.EOF) && len(text) > 0 {
		return text, nil
	}
	return text, err
}

const utf16Remedy = "the file is written in UTF-16: save it as UTF-8"

func utf16Mark(text []byte) bool {
	return len(text) >= 2 && (text[0] == 0xFF && text[1] == 0xFE || text[0] == 0xFE && text[1] == 0xFF)
}
