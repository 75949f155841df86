package postgres

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerArrays gives a connection the codecs below. Statements take whole flushes as arrays, one for each column, and pgx plans and appends
// each element by itself.
func registerArrays(_ context.Context, c *pgx.Conn) error {
	m := c.TypeMap()
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.ByteaArrayOID} {
		t, ok := m.TypeForOID(oid)
		if !ok {
			continue
		}
		if inner, ok := t.Codec.(*pgtype.ArrayCodec); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: flatCodec{inner}})
		}
	}
	return nil
}

// flatCodec writes []string as texts and [][]byte as bytea in one go, and leaves all else to pgx.
type flatCodec struct{ *pgtype.ArrayCodec }

// PlanEncode implements pgtype.Codec.
func (c flatCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []string:
			if c.ElementType.OID == pgtype.TextOID {
				return flatPlan[string]{pgtype.TextOID}
			}
		case [][]byte:
			if c.ElementType.OID == pgtype.ByteaOID {
				return flatPlan[[]byte]{pgtype.ByteaOID}
			}
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// flatPlan writes an array of one dimension in PostgreSQL's binary form (src/backend/utils/adt/arrayfuncs.c, array_send): dimensions, whether
// there are nulls, the element's type, length and lower bound, and then each element after its length. A nil slice is null, and so is a nil
// element.
type flatPlan[E string | []byte] struct{ element uint32 }

// Encode implements pgtype.EncodePlan.
func (p flatPlan[E]) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]E)
	if list == nil {
		return nil, nil
	}
	size, nulls := 20+4*len(list), uint32(0)
	for _, e := range list {
		size += len(e)
		if isNull(e) {
			nulls = 1
		}
	}
	buf = slices.Grow(buf, size)
	if len(list) == 0 {
		return appendWords(buf, 0, 0, p.element), nil
	}
	buf = appendWords(buf, 1, nulls, p.element, uint32(len(list)), 1)
	for _, e := range list {
		if isNull(e) {
			buf = appendWords(buf, ^uint32(0))
			continue
		}
		buf = append(appendWords(buf, uint32(len(e))), e...)
	}
	return buf, nil
}

func isNull[E string | []byte](e E) bool {
	b, ok := any(e).([]byte)
	return ok && b == nil
}

func appendWords(buf []byte, words ...uint32) []byte {
	for _, w := range words {
		buf = binary.BigEndian.AppendUint32(buf, w)
	}
	return buf
}
