package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// Replay reads one replay and how far it is. CodeNotFound.
func (s *Store) Replay(ctx context.Context, id string) (payments.Replay, error) {
	if !storable(id) {
		return payments.Replay{}, noReplay()
	}
	found, err := s.readReplays(ctx, "replay", id)
	switch {
	case err != nil:
		return payments.Replay{}, err
	case len(found) == 0:
		return payments.Replay{}, noReplay()
	}
	return found[0], nil
}

// Replays returns a page of replays, newest first, and the cursor of the next page, "" after the last. CodeInvalid.
func (s *Store) Replays(ctx context.Context, limit int, after string) (page []payments.Replay, next string, err error) {
	var at, id any
	if after != "" {
		c, err := decodeCursor(after)
		if err != nil || !storable(c.id) {
			return nil, "", errCursor
		}
		at, id = c.at, c.id
	}
	limit = pageSize(limit)
	page, err = s.readReplays(ctx, "list_replays", at, id, limit+1)
	if len(page) > limit {
		page = page[:limit]
		last := page[limit-1]
		next = cursor{at: last.CreatedAt, id: last.ID}.encode()
	}
	return page, next, err
}

// ReplayUnfinished stands for a result in ReplayItems: those that have none.
const ReplayUnfinished payments.ReplayResult = "unfinished"

// ReplayItems returns a page of a replay's items, those of one result if it is given, and the cursor of the next page, "" after the last. CodeNotFound;
// CodeInvalid.
func (s *Store) ReplayItems(ctx context.Context, id string, result payments.ReplayResult, limit int, after string) (page []payments.ReplayItem, next string, err error) {
	if _, err := s.Replay(ctx, id); err != nil {
		return nil, "", err
	}
	if err := checkFilters(map[string]string{"result": string(result)}); err != nil {
		return nil, "", err
	}
	var letter any
	if after != "" {
		c, err := decodeCursor(after)
		if err != nil || !storable(c.id) {
			return nil, "", errCursor
		}
		letter = c.id
	}
	limit = pageSize(limit)
	rows, err := s.pool.Query(ctx, query("list_replay_items"), planned([]any{id, null(string(result)), letter, limit + 1})...)
	if err != nil {
		return nil, "", translate(err)
	}
	page, err = pgx.CollectRows(rows, scanReplayItem)
	if len(page) > limit {
		page = page[:limit]
		next = cursor{id: page[limit-1].LetterID}.encode()
	}
	return page, next, translate(err)
}

func scanReplayItem(r pgx.CollectableRow) (payments.ReplayItem, error) {
	var i payments.ReplayItem
	var payment []byte
	var result, status, kind string
	var finished pgtype.Timestamptz
	err := r.Scan(&i.ReplayID, &i.LetterID, &i.TenantID, &payment, &result, &status, &i.Detail, &finished, &kind)
	if len(payment) == len(payments.ID{}) {
		i.PaymentID = (*payments.ID)(payment)
	}
	i.Kind, i.Result, i.Status, i.FinishedAt = payments.Kind(kind), payments.ReplayResult(result), payments.Status(status), instant(finished)
	return i, err
}

func (s *Store) readReplays(ctx context.Context, statement string, params ...any) ([]payments.Replay, error) {
	rows, err := s.pool.Query(ctx, query(statement), params...)
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, scanReplay)
	return found, translate(err)
}

// replayColumns are what scanReplay reads.
const replayColumns = `r.id, r.state, r.filter::text, coalesce(r.changes::text, ''), r.rate, r.actor, coalesce(r.reason, ''), r.total, r.passed_over,
    r.amount::text, r.created_at, r.updated_at, r.finished_at, c.issued, c.succeeded, c.already_settled, c.failed_again, c.conflict, c.skipped, c.not_begun`

// notBegun is why items are skipped that nobody had begun when their replay was canceled.
const notBegun = `'the replay was canceled before'`

const replayCounts = `LATERAL (
    SELECT count(*) FILTER (WHERE issued_at IS NOT NULL OR result IS NOT NULL) AS issued, count(*) FILTER (WHERE result = 'succeeded') AS succeeded,
        count(*) FILTER (WHERE result = 'already_settled') AS already_settled, count(*) FILTER (WHERE result = 'failed_again') AS failed_again,
        count(*) FILTER (WHERE result = 'conflict') AS conflict, count(*) FILTER (WHERE result = 'skipped') AS skipped,
        count(*) FILTER (WHERE result = 'skipped' AND detail = ` + notBegun + `) AS not_begun
    FROM replay_items i WHERE i.replay_id = r.id) c`

// replayResults are the results in the order of replayCounts.
var replayResults = [...]payments.ReplayResult{
	payments.ReplaySucceeded, payments.ReplayAlreadySettled, payments.ReplayFailedAgain, payments.ReplayConflict, payments.ReplaySkipped,
}

func scanReplay(row pgx.CollectableRow) (payments.Replay, error) {
	var r payments.Replay
	var state, filter, changes, amount string
	var finished pgtype.Timestamptz
	var counts [len(replayResults)]int
	err := row.Scan(&r.ID, &state, &filter, &changes, &r.Rate, &r.Actor, &r.Reason, &r.Total, &r.PassedOver, &amount, &r.CreatedAt, &r.UpdatedAt, &finished,
		&r.Issued, &counts[0], &counts[1], &counts[2], &counts[3], &counts[4], &r.NotBegun)
	if err != nil {
		return r, err
	}
	r.State, r.FinishedAt = payments.ReplayState(state), instant(finished)
	r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	r.Results = map[payments.ReplayResult]int{}
	for i, result := range replayResults {
		if counts[i] > 0 {
			r.Results[result] = counts[i]
		}
	}
	if r.Filter, err = readFilter(filter); err == nil && changes != "" {
		err = json.Unmarshal([]byte(changes), &r.Set)
	}
	if err == nil {
		err = json.Unmarshal([]byte(amount), &r.Amount)
	}
	if err != nil {
		return r, fmt.Errorf("%w: replay %s: %w", errMapping, r.ID, err)
	}
	return r, nil
}

// readFilter reads what filterDocument wrote.
func readFilter(document string) (f payments.LetterFilter, err error) {
	var doc struct {
		TenantID       string                   `json:"tenant_id"`
		Reason         payments.Reason          `json:"reason"`
		State          payments.DeadLetterState `json:"state"`
		IdempotencyKey string                   `json:"idempotency_key"`
		Batch          string                   `json:"batch"`
		PaymentID      string                   `json:"payment_id"`
		ID             string                   `json:"id"`
		Text           string                   `json:"text"`
		Since          time.Time                `json:"since"`
		Until          time.Time                `json:"until"`
	}
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		return f, err
	}
	f = payments.LetterFilter{
		TenantID: doc.TenantID, Reason: doc.Reason, State: doc.State, IdempotencyKey: doc.IdempotencyKey, Batch: doc.Batch, ID: doc.ID, Text: doc.Text,
		Since: doc.Since, Until: doc.Until,
	}
	if doc.PaymentID != "" {
		id, err := payments.ParseID(doc.PaymentID)
		f.PaymentID = &id
		return f, err
	}
	return f, nil
}
