package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// completeMax bounds the batches of one transaction: they may have a hundred children each.
const completeMax = 100

// CompleteBatches implements payments.Batches. A batch that somebody keeps locked holds up none of the others. After a commit whose answer was lost
// the number may be too small; the events are in the outbox.
func (s *Store) CompleteBatches(ctx context.Context, refs []payments.BatchRef) (told int, err error) {
	keys := make([]key, 0, len(refs))
	for _, r := range refs {
		if storable(r.TenantID) { // no other has batches
			keys = append(keys, key{r.TenantID, r.ID})
		}
	}
	slices.SortFunc(keys, key.compare)
	keys = slices.Compact(keys)
	for chunk := range slices.Chunk(keys, completeMax) {
		n, failed := s.completeChunk(ctx, chunk)
		if len(chunk) > 1 && oneItems(failed) {
			n, failed = s.completeSingly(ctx, chunk)
		}
		told += n
		if err == nil {
			err = failed
		}
		if failed != nil && !oneItems(failed) {
			break
		}
	}
	return told, err
}

// completeSingly goes on where one of several failed by itself; the error is that of the first that does again.
func (s *Store) completeSingly(ctx context.Context, keys []key) (told int, err error) {
	for i := range keys {
		n, failed := s.completeChunk(ctx, keys[i:i+1])
		told += n
		if err == nil {
			err = failed
		}
		if failed != nil && !oneItems(failed) {
			break
		}
	}
	return told, err
}

// completeChunk tells of those batches whose children are all final, in one transaction: it locks, looks, and writes. It looks once before that,
// since most of those that are asked for are not complete, and need not be locked then: a batch that is complete stays so.
func (s *Store) completeChunk(ctx context.Context, keys []key) (told int, err error) {
	totals := map[key][]payments.StatusTotal{}
	tenants, ids := keyArrays(keys)
	err = s.write(ctx, func(ctx context.Context) error {
		clear(totals)
		rows, err := s.pool.Query(ctx, query("complete_totals"), tenants, ids)
		if err != nil {
			return err
		}
		defer rows.Close()
		return scanTotals(rows, totals)
	})
	if err != nil || len(totals) == 0 {
		return 0, err
	}
	return s.tellComplete(ctx, slices.SortedFunc(maps.Keys(totals), key.compare))
}

func (s *Store) tellComplete(ctx context.Context, keys []key) (told int, err error) {
	var messages []payments.OutboxItem
	err = s.write(ctx, func(ctx context.Context) error {
		told, messages = 0, nil
		return s.transact(ctx, func(tx *transaction) error {
			complete, now, err := s.lookComplete(ctx, tx, keys)
			if err != nil {
				return err
			}
			b := tx.batch()
			if len(complete) > 0 {
				if err := s.queueComplete(b, complete, now, &messages); err != nil {
					return err
				}
			}
			told = len(complete)
			s.reached("complete")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return 0, err
	}
	s.committed(messages)
	return told, nil
}

// lookComplete locks the batches that are not told yet and returns those that are complete, with the store's time.
func (s *Store) lookComplete(ctx context.Context, tx *transaction, keys []key) (complete []payments.BatchState, now time.Time, err error) {
	tenants, ids := keyArrays(keys)
	var locked []payments.Batch
	totals := map[key][]payments.StatusTotal{}
	b := tx.batch()
	b.Queue(query("lock_batches"), tenants, ids, s.now()).Query(collectBatches(&locked, &now))
	b.Queue(query("complete_totals"), tenants, ids).Query(func(rows pgx.Rows) error { return scanTotals(rows, totals) })
	if err := tx.send(ctx, b); err != nil {
		return nil, now, err
	}
	for _, batch := range locked {
		state := payments.BatchState{Batch: batch, Totals: sortedTotals(totals[key{batch.TenantID, batch.ID()}])}
		if state.Complete() {
			complete = append(complete, state)
		}
	}
	return complete, now.UTC(), nil
}

// queueComplete adds what tells of each batch, once: the time, the timeline's entry, its event, and the event's row in the outbox.
func (s *Store) queueComplete(b *pgx.Batch, complete []payments.BatchState, now time.Time, messages *[]payments.OutboxItem) error {
	keys, changes := make([]key, len(complete)), make([]*change, len(complete))
	for i, state := range complete {
		keys[i] = key{state.TenantID, state.ID()}
		body, err := s.completedEvent(state, later(now, state.CreatedAt))
		if err != nil {
			return err
		}
		of := payments.BatchRequest{TenantID: state.TenantID, IdempotencyKey: state.IdempotencyKey}
		changes[i] = &change{
			after:  payments.Payment{Intent: of.Intent(), ID: of.ID(), Status: payments.StatusSucceeded},
			events: []event{{completedSequence, later(now, state.CreatedAt), schema.EventBatchCompleted, body}},
		}
	}
	tenants, ids := keyArrays(keys)
	b.Queue(query("complete_batches"), tenants, ids, now)
	var hold *time.Time
	if d := s.hold(); d > 0 {
		hold = nullable(now.Add(d))
	}
	queueEvents(b, changes, hold, messages)
	return nil
}

// completedSequence is the number of the only event that a batch ever has.
const completedSequence = 1

// completedEvent is the event that says that the batch is complete.
func (s *Store) completedEvent(state payments.BatchState, at time.Time) ([]byte, error) {
	doc := document.Batch(state)
	data, err := schema.Marshal(doc)
	if err != nil {
		return nil, payments.Errorf(payments.CodeInternal, "the document of %s cannot be written: %w", doc.ID, err)
	}
	body, err := schema.EncodeEvent(schema.Event{
		ID:       schema.EventID(doc.ID, completedSequence, schema.EventBatchCompleted),
		Source:   schema.EventSource(s.opts.Namespace),
		Type:     schema.EventBatchCompleted,
		Subject:  doc.ID,
		Time:     at,
		TenantID: state.TenantID,
		Sequence: completedSequence,
		Data:     data,
	})
	if err != nil {
		return nil, payments.Errorf(payments.CodeInternal, "the event of %s cannot be written: %w", doc.ID, err)
	}
	return body, nil
}
