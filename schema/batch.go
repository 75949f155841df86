package schema

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// BatchMax is the number of intents that one batch may hold. There is at least
// one.
const BatchMax = 100

// BatchKeyMaxBytes is the length of the longest key of a batch: its children's
// keys add to it.
const BatchKeyMaxBytes = 240

// BatchMessage is one batch as it stands on the wire. Its intents have no keys:
// the i-th is known as {idempotency_key}::{i}, i from 0.
type BatchMessage struct {
	IdempotencyKey Optional[string]
	Parent         Optional[string] // names the run that the batch is a part of
	Payments       []Intent         // 1 to [BatchMax]
}

const (
	memberParent   = "parent"
	memberPayments = "payments"
)

// DecodeBatch reads one batch, as strictly as [DecodeIntent] reads an intent.
// It also refuses more than [BatchMax] intents, an empty list, and an intent
// that brings a key of its own. A missing list is left to the caller, as all
// that is required. The error is a [*DecodeError].
func DecodeBatch(data []byte) (BatchMessage, error) {
	if len(data) > BatchMaxBytes {
		return BatchMessage{}, errTooLarge(len(data), BatchMaxBytes)
	}
	r := newReader(data)
	defer r.release()
	var b BatchMessage
	err := r.batch(&b)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return BatchMessage{}, err.settle(data)
	}
	return b, nil
}

func (r *reader) batch(b *BatchMessage) *DecodeError {
	if err := r.begin(""); err != nil {
		return err
	}
	for {
		name, more, err := r.name("")
		if err != nil || !more {
			return err
		}
		switch string(name) {
		case memberIdempotencyKey:
			err = r.text(memberIdempotencyKey, &b.IdempotencyKey)
		case memberParent:
			err = r.text(memberParent, &b.Parent)
		case memberPayments:
			err = r.payments(&b.Payments)
		default:
			err = r.unknown(name, []string{memberIdempotencyKey, memberParent, memberPayments})
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) payments(to *[]Intent) *DecodeError {
	const want = "an array of 1 to 100 intents"
	if kind := r.dec.PeekKind(); kind != jsontext.KindBeginArray {
		return r.wrongType(memberPayments, kind, want)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(memberPayments, err)
	}
	for i := 0; r.dec.PeekKind() != jsontext.KindEndArray; i++ {
		if i == BatchMax {
			return r.refuse(memberPayments, "it has more than 100 intents: send several batches, each under its own key")
		}
		path := fmt.Sprintf("%s[%d].", memberPayments, i)
		var in Intent
		if err := r.intent(path, &in); err != nil {
			return err
		}
		if in.IdempotencyKey.Set {
			return r.refuse(path+memberIdempotencyKey, "an intent of a batch has no key of its own: remove it, the batch's key names it")
		}
		*to = append(*to, in)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(memberPayments, err)
	}
	if len(*to) == 0 {
		return r.refuse(memberPayments, "it is empty: it must be "+want)
	}
	return nil
}

// EncodeBatch writes the canonical form of a batch, as [EncodeIntent] does of an
// intent. It refuses what [DecodeBatch] would.
func EncodeBatch(b BatchMessage) ([]byte, error) {
	w := writer{out: make([]byte, 0, 256*(len(b.Payments)+1))}
	w.out = append(w.out, '{')
	w.text(memberIdempotencyKey, b.IdempotencyKey)
	w.text(memberParent, b.Parent)
	if len(b.Payments) == 0 || len(b.Payments) > BatchMax {
		w.fail(memberPayments, fmt.Sprintf("it has %d intents: send 1 to %d", len(b.Payments), BatchMax))
	}
	w.name(memberPayments)
	w.out = append(w.out, '[')
	for i, in := range b.Payments {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		before := w.err
		w.intent(in)
		if in.IdempotencyKey.Set {
			w.fail(memberIdempotencyKey, "an intent of a batch has no key of its own: remove it, the batch's key names it")
		}
		if before == nil && w.err != nil {
			w.err = w.err.below(fmt.Sprintf("%s[%d].", memberPayments, i))
		}
	}
	w.out = append(w.out, ']', '}')
	if w.err == nil && len(w.out) > BatchMaxBytes {
		w.err = errTooLarge(len(w.out), BatchMaxBytes)
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}
