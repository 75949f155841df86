package postgres

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// pageSize is the limit that holds.
func pageSize(limit int) int {
	if limit <= 0 {
		return payments.LimitDefault
	}
	return min(limit, payments.LimitMax)
}

// cursor is the last row of a page: the next one begins after it. Clients see it as opaque text.
type cursor struct {
	at     time.Time
	id     string
	tenant string
}

func (c cursor) encode() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.at.UTC().Format(time.RFC3339Nano) + "\n" + c.tenant + "\n" + c.id))
}

func decodeCursor(text string) (cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(raw), "\n", 3)
	if err != nil || len(parts) != 3 || !storable(parts[1]) {
		return cursor{}, errCursor
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	if err != nil {
		return cursor{}, errCursor
	}
	return cursor{at: at, tenant: parts[1], id: parts[2]}, nil
}

var errCursor = &payments.Error{Code: payments.CodeInvalid, Field: "cursor", Message: "must be the next_cursor of an earlier page"}

// null is the parameter for a filter: null for none.
func null(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// checkFilters refuses filters that PostgreSQL cannot compare with.
func checkFilters(named map[string]string) error {
	for field, text := range named {
		if !storable(text) {
			return unstorable(field)
		}
	}
	return nil
}
