package schema

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// PeekKey looks for the idempotency key in a message that [DecodeIntent]
// refused, so that its dead letter can be found by it. It goes as far as the
// message can be read, and finds nothing where the key is not a valid one or
// stands there more than once.
//
// What it finds is for people to search by: nothing may be charged under it. It
// may be a card number in the wrong place, so it needs the same check as every
// other text.
func PeekKey(data []byte) (key string, ok bool) {
	if len(data) > BatchMaxBytes {
		return "", false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != jsontext.KindBeginObject {
		return "", false
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", false
	}
	for seen := false; ; {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != jsontext.KindString {
			return key, ok
		}
		if name.String() != memberIdempotencyKey {
			if dec.SkipValue() != nil {
				return key, ok
			}
			continue
		}
		if seen || dec.PeekKind() != jsontext.KindString {
			return "", false
		}
		seen = true
		value, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		if key, ok = value.String(), ValidKey(value.String()); !ok {
			return "", false
		}
	}
}
