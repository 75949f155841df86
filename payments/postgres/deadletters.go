package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// DeadLettersRequest asks for a page of dead letters, last seen first; empty filters let everything through. Suspects, which may turn out
// healthy, are listed only when State asks for them.
type DeadLettersRequest struct {
	TenantID       string
	Reason         payments.Reason
	State          payments.DeadLetterState
	IdempotencyKey string
	PaymentID      *payments.ID
	ID             string    // of the dead letter itself
	Text           string    // is part of the message or of the payload, as it is written
	Since, Until   time.Time // last seen in [Since, Until)
	Limit          int       // 1 to LimitMax; 0: LimitDefault
	Cursor         string
}

// DeadLetters returns a page of dead letters and the cursor of the next page, "" after the last. CodeInvalid: as List.
func (s *Store) DeadLetters(ctx context.Context, r DeadLettersRequest) (page []payments.DeadLetter, next string, err error) {
	err = checkFilters(map[string]string{"tenant": r.TenantID, "reason": string(r.Reason), "state": string(r.State), "idempotency_key": r.IdempotencyKey,
		"id": r.ID, "text": r.Text})
	if err != nil {
		return nil, "", err
	}
	var at, id any
	if r.Cursor != "" {
		c, err := decodeCursor(r.Cursor)
		if err != nil || !storable(c.id) {
			return nil, "", errCursor
		}
		at, id = c.at, c.id
	}
	limit := pageSize(r.Limit)
	rows, err := s.pool.Query(ctx, query("list_letters"), null(r.TenantID), null(string(r.Reason)), null(string(r.State)), null(r.IdempotencyKey),
		paymentParam(r.PaymentID), nullable(r.Since), nullable(r.Until), at, id, limit+1, null(r.ID), null(r.Text))
	if err != nil {
		return nil, "", translate(err)
	}
	page, err = collectLetters(rows)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		last := page[limit-1]
		next = cursor{at: last.LastSeen, id: last.ID}.encode()
	}
	return page, next, nil
}

// DeadLetter reads one dead letter with its headers and payload. CodeNotFound.
func (s *Store) DeadLetter(ctx context.Context, id string) (payments.DeadLetter, error) {
	missing := payments.Errorf(payments.CodeNotFound, "there is no such dead letter")
	if !storable(id) {
		return payments.DeadLetter{}, missing
	}
	rows, err := s.pool.Query(ctx, query("letters_by_id"), []string{id})
	if err != nil {
		return payments.DeadLetter{}, translate(err)
	}
	found, err := collectLetters(rows)
	if err != nil {
		return payments.DeadLetter{}, err
	}
	if len(found) == 0 {
		return payments.DeadLetter{}, missing
	}
	return found[0], nil
}

func collectLetters(rows pgx.Rows) ([]payments.DeadLetter, error) {
	defer rows.Close()
	var list []payments.DeadLetter
	for rows.Next() {
		d, err := scanLetter(rows)
		if err != nil {
			return nil, translate(err)
		}
		list = append(list, d)
	}
	return list, translate(rows.Err())
}
