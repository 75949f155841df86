package batch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// ChunkRows is how many rows become one batch. It is a part of every key, and never changes.
const ChunkRows = schema.BatchMax

// BodyMaxBytes is the size of the largest request for a batch that the HTTP door takes.
const BodyMaxBytes = 900 << 10

// Key is the key of the run's i-th batch, i from 0: K.000000, K.000001, …
func Key(run string, i int) string { return fmt.Sprintf("%s.%06d", run, i) }

// CheckKey says what is wrong with the key of a run, or returns "".
func CheckKey(run string) string {
	message := payments.CheckKey(run)
	const suffix = len(".000000") + 2 // up to 100,000,000 batches
	switch {
	case message != "":
	case payments.ReservedKey(run):
		message = `must not contain "` + payments.ChildSeparator + `": it is reserved for the payments of a batch`
	case len(run) > payments.BatchKeyLengthMax-suffix:
		message = fmt.Sprintf("must have at most %d characters, since the number of each batch is added to it", payments.BatchKeyLengthMax-suffix)
	case payments.ContainsCardNumberString(run):
		message = "contains what looks like a card number: choose another"
	}
	return message
}

// chunk is up to ChunkRows rows as one request.
type chunk struct {
	index int
	first int64  // its first row, from 1
	rows  int    // at least 1
	body  []byte // of the request
	sum   [sha256.Size]byte
}

// key is the chunk's own.
func (c chunk) key(run string) string { return Key(run, c.index) }

// chunks cuts a file into chunks.
type chunks struct {
	run   string
	rows  rows
	found *faults
	sums  *sums
	index int
	size  int // of the last body
	done  bool
}

func newChunks(run string, format Format, in io.Reader) (*chunks, error) {
	found := &faults{}
	r, err := newRows(format, in, found)
	if err != nil {
		return nil, err
	}
	return &chunks{run: run, rows: r, found: found, sums: &sums{of: map[string]*Sum{}}}, nil
}

// next reads the next chunk; its body is appended to buf. A chunk with faults has less rows than the file, and is not to be sent. The error is
// io.EOF after the last chunk; errStop when enough is wrong; else the reader's or the context's.
func (c *chunks) next(ctx context.Context, buf []byte) (chunk, error) {
	if err := ctx.Err(); err != nil {
		return chunk{}, err
	}
	if c.done {
		return chunk{}, io.EOF
	}
	out := chunk{index: c.index, body: append(buf, `{"parent":`...)}
	out.body = append(appendQuoted(out.body, c.run), `,"payments":[`...)
	read := 0
	for ; read < ChunkRows; read++ {
		var r row
		ok, err := c.rows.next(&r)
		if errors.Is(err, io.EOF) {
			c.done = true
			break
		}
		if err != nil {
			return chunk{}, err
		}
		if out.first == 0 {
			out.first = r.number
		}
		if !ok {
			continue
		}
		if err := c.take(&out, &r); err != nil {
			return chunk{}, err
		}
	}
	if read == 0 {
		return chunk{}, io.EOF
	}
	out.body = append(out.body, "]}"...)
	if len(out.body) > BodyMaxBytes {
		message := fmt.Sprintf("the %d rows from here on, which are one batch, have more than %d bytes together: shorten descriptions and metadata", read, BodyMaxBytes)
		if err := c.found.add(Fault{Row: out.first, Message: message}); err != nil {
			return chunk{}, err
		}
	}
	out.sum = sha256.Sum256(out.body)
	c.index++
	return out, nil
}

// take checks a row and puts it into the chunk.
func (c *chunks) take(out *chunk, r *row) error {
	refuse := func(member, message string) error {
		column := c.rows.column(member)
		if slices.Contains(r.wrong, column) {
			return nil
		}
		r.wrong = append(r.wrong, column)
		return c.found.add(Fault{Row: r.number, Line: r.line, Column: column, Message: message})
	}
	// The key's and the tenant's own checks are done elsewhere: any good ones do here.
	in := document.ReadIntent(r.wire, "", "k")
	if field := in.CardField(); field != "" {
		return refuse(field, cardRemedy)
	}
	if refused := in.Validate(); refused != nil {
		for _, f := range refused.Fields {
			if err := refuse(f.Field, f.Message); err != nil {
				return err
			}
		}
	}
	if len(r.wrong) > 0 {
		return nil
	}
	text, err := schema.EncodeIntent(r.wire)
	var wrong *schema.DecodeError
	switch {
	case errors.As(err, &wrong):
		return refuse(wrong.Field, wrong.Problem)
	case err != nil:
		return err
	case payments.CardInBytes(text):
		return refuse("", cardRemedy)
	case !c.sums.add(in.Normalized()):
		return refuse(columnAmount, "the file's sum in this currency is beyond 64 bits: split the file, and check the amounts")
	}
	if out.rows > 0 {
		out.body = append(out.body, ',')
	}
	out.body = append(out.body, text...)
	out.rows++
	return nil
}

// appendQuoted appends a key, which holds nothing but printable ASCII, as JSON.
func appendQuoted(to []byte, key string) []byte {
	to = append(to, '"')
	for i := range len(key) {
		if key[i] == '"' || key[i] == '\\' {
			to = append(to, '\\')
		}
		to = append(to, key[i])
	}
	return append(to, '"')
}

// Sum is how many payments of a file are in one currency, and their amounts together in minor units.
type Sum struct {
	Count  int64
	Amount int64
}

// sums are those of all currencies.
type sums struct {
	of   map[string]*Sum
	rows int64
}

// add reports false when the sum is too large.
func (s *sums) add(in payments.Intent) bool {
	sum := s.of[in.Currency]
	if sum == nil {
		sum = &Sum{}
		s.of[in.Currency] = sum
	}
	if in.Amount > math.MaxInt64-sum.Amount {
		return false
	}
	sum.Count++
	sum.Amount += in.Amount
	s.rows++
	return true
}
