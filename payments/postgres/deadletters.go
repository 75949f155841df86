package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// DeadLettersRequest asks for a page of dead letters, last seen first. Suspects, which may turn out healthy, are listed only when State asks for
// them.
type DeadLettersRequest struct {
	payments.LetterFilter
	Limit  int // 1 to LimitMax; 0: LimitDefault
	Cursor string
}

// DeadLetters returns a page of dead letters and the cursor of the next page, "" after the last. CodeInvalid: as List.
func (s *Store) DeadLetters(ctx context.Context, r DeadLettersRequest) (page []payments.DeadLetter, next string, err error) {
	if err := checkLetterFilter(r.LetterFilter); err != nil {
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
	rows, err := s.pool.Query(ctx, query("list_letters"), planned(letterFilterParams(r.LetterFilter), at, id, limit+1)...)
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

// checkLetterFilter refuses what PostgreSQL cannot compare with.
func checkLetterFilter(f payments.LetterFilter) error {
	return checkFilters(map[string]string{"tenant": f.TenantID, "reason": string(f.Reason), "state": string(f.State), "idempotency_key": f.IdempotencyKey,
		"batch": f.Batch, "id": f.ID, "text": f.Text})
}

// letterFilterParams are the parameters $1 to $11 of {matches}.
func letterFilterParams(f payments.LetterFilter) []any {
	var batch []byte
	if id, err := payments.ParseID(f.Batch); err == nil && f.Batch == id.Format(payments.KindBatch) {
		batch = id[:]
	}
	return []any{
		null(f.TenantID), null(string(f.Reason)), null(string(f.State)), null(f.IdempotencyKey), paymentParam(f.PaymentID), nullable(f.Since),
		nullable(f.Until), null(f.ID), null(f.Text), null(f.Batch), batch,
	}
}

// planned are the arguments of a statement that is planned for these very parameters: with most filters unset one plan would fit none of them.
func planned(params []any, more ...any) []any {
	return append(append([]any{pgx.QueryExecModeCacheDescribe}, params...), more...)
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
