package schema

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// reader goes over one message once. What is below a member is never entered
// unless the member has the type that it should have, so depth needs no limit.
type reader struct {
	dec     jsontext.Decoder
	buf     bytes.Buffer
	data    []byte
	scratch []byte
}

// readers saves the decoder's stacks, which are most of the cost of a new one.
var readers = sync.Pool{New: func() any { return new(reader) }}

// scratchMax bounds what a pooled reader keeps of its largest text.
const scratchMax = 16 << 10

func newReader(data []byte) *reader {
	r := readers.Get().(*reader)
	r.data, r.buf = data, *bytes.NewBuffer(data)
	// The decoder reads a bytes.Buffer in place.
	r.dec.Reset(&r.buf)
	return r
}

// release forgets the message, which may be large and is not ours.
func (r *reader) release() {
	r.data, r.buf = nil, bytes.Buffer{}
	r.dec.Reset(&r.buf)
	if cap(r.scratch) > scratchMax {
		r.scratch = nil
	}
	readers.Put(r)
}

func (r *reader) refuse(field, problem string) *DecodeError {
	return &DecodeError{Field: field, Problem: problem, Offset: r.dec.InputOffset()}
}

// syntax explains what the decoder refused. Its own text may repeat the message.
func (r *reader) syntax(field string, err error) *DecodeError {
	e := r.refuse(field, "it is not well-formed JSON: check quotes, commas, escapes and surrogate pairs")
	e.Malformed = true
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		e.Offset = syntactic.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Problem = "a member is repeated: send each once"
		if syntactic != nil {
			if name := safeName(syntactic.JSONPointer.LastToken()); name != "" {
				e.Field = name
			}
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Problem = "the message ends too early: send one whole JSON object"
	case !utf8.Valid(r.data):
		e.Problem = "it is not valid UTF-8: encode the message as UTF-8"
	}
	return e
}

// begin enters an object.
func (r *reader) begin(path string) *DecodeError {
	field := strings.TrimSuffix(path, ".")
	if kind := r.dec.PeekKind(); kind != jsontext.KindBeginObject {
		return r.wrongType(field, kind, "a JSON object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(field, err)
	}
	return nil
}

// name reads the next member's name, or leaves the object. The name is valid
// until the next read.
func (r *reader) name(path string) (name []byte, more bool, refused *DecodeError) {
	if r.dec.PeekKind() == jsontext.KindEndObject {
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, false, r.syntax("", err).below(path)
		}
		return nil, false, nil
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, false, r.syntax("", err).below(path)
	}
	if name, refused = r.unquote("", raw); refused != nil {
		return nil, false, refused.below(path)
	}
	return name, true, nil
}

// unquote returns what stands between the quotes, with escapes resolved.
func (r *reader) unquote(field string, raw jsontext.Value) ([]byte, *DecodeError) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil // a bare U+0000 is no JSON: the decoder has refused it
	}
	var err error
	if r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw); err != nil {
		return nil, r.syntax(field, err)
	}
	if bytes.IndexByte(r.scratch, 0) >= 0 {
		e := r.refuse(field, "U+0000 is not allowed: remove it")
		e.Malformed = true
		return nil, e
	}
	return r.scratch, nil
}

// end refuses whatever follows the object.
func (r *reader) end() *DecodeError {
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		e := r.refuse("", "something follows the object: send one object a message")
		e.Malformed = true
		return e
	}
	return nil
}

// wrongType explains a value that is not a want, or no value at all. Peeking saw its first byte only, so it is read: what begins like null may be
// no JSON.
func (r *reader) wrongType(field string, kind jsontext.Kind, want string) *DecodeError {
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		if _, err := r.dec.ReadToken(); err != nil {
			return r.syntax(field, err)
		}
	}
	if kind == jsontext.KindNull {
		return r.refuse(field, "null is not allowed: send "+want+", or leave the member out")
	}
	return r.refuse(field, "it must be "+want)
}

// value reads the next value if it is of kind, and leaves its text untouched.
func (r *reader) value(field string, kind jsontext.Kind, want string) (jsontext.Value, *DecodeError) {
	if got := r.dec.PeekKind(); got != kind {
		return nil, r.wrongType(field, got, want)
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.syntax(field, err)
	}
	return raw, nil
}

func (r *reader) text(field string, to *Optional[string]) *DecodeError {
	raw, refused := r.value(field, jsontext.KindString, "a string")
	if refused != nil {
		return refused
	}
	text, refused := r.unquote(field, raw)
	if refused != nil {
		return refused
	}
	*to = Some(string(text))
	return nil
}

// integer accepts digits with at most a minus before them: a fraction or an
// exponent is a sender who counts in other units.
func (r *reader) integer(field string, to *Optional[int64]) *DecodeError {
	const want = "an integer literal in minor units, such as 9900, without quotes, fraction or exponent"
	raw, refused := r.value(field, jsontext.KindNumber, want)
	if refused != nil {
		return refused
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return r.refuse(field, "it must be "+want)
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return r.refuse(field, "it is beyond 64 bits: send the amount in minor units")
	}
	if n == 0 && raw[0] == '-' {
		return r.refuse(field, "it must not be -0: send a positive integer, or leave the member out where that is allowed")
	}
	*to = Some(n)
	return nil
}

func (r *reader) boolean(field string, to *Optional[bool]) *DecodeError {
	kind := r.dec.PeekKind()
	if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		return r.wrongType(field, kind, "true or false, without quotes")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(field, err)
	}
	*to = Some(kind == jsontext.KindTrue)
	return nil
}

// zeroTime refuses the one time that a receiver could take for none at all: some
// senders write it for a time that they never set.
const zeroTime = "it is the first instant of the year 1: send the time that is meant, or leave the member out"

// timestamp accepts what [ParseTime] accepts, but for the zero time.
func (r *reader) timestamp(field string, to *Optional[time.Time]) *DecodeError {
	var text Optional[string]
	if refused := r.text(field, &text); refused != nil {
		return refused
	}
	t, err := ParseTime(text.Value)
	if err != nil {
		return r.refuse(field, "it must be an RFC 3339 time with its offset, such as 2030-01-31T12:00:00Z")
	}
	if t.IsZero() {
		return r.refuse(field, zeroTime)
	}
	*to = Some(t)
	return nil
}

// texts reads an object of strings.
func (r *reader) texts(field string, to *map[string]string) *DecodeError {
	path := field + "."
	if refused := r.begin(path); refused != nil {
		return refused
	}
	*to = make(map[string]string)
	for {
		name, more, refused := r.name(path)
		if refused != nil || !more {
			return refused
		}
		key := string(name)
		var text Optional[string]
		// The value is read without the path: building it costs, and is needed
		// only where something is wrong.
		if refused := r.text("", &text); refused != nil {
			refused.Field = safeName(key)
			return refused.below(path)
		}
		(*to)[key] = text.Value
	}
}

// unknown refuses a member, and says which was meant where that is plain.
func (r *reader) unknown(name []byte, known []string) *DecodeError {
	text := string(name)
	for _, k := range known {
		if strings.EqualFold(k, text) {
			return r.refuse(safeName(text), "it is unknown, since names are case-sensitive: send "+k)
		}
	}
	return r.refuse(safeName(text), "the member is unknown: remove it, or check its spelling")
}
