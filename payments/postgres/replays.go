package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// choosing is a replay in the making.
type choosing struct {
	letters, tenants, results, details []string
	prospects                          map[string]prospect // of each letter that is not skipped
	passedOver                         int
}

func (c *choosing) add(one candidate, p prospect) {
	var result payments.ReplayResult
	if p.skipped != "" {
		result = payments.ReplaySkipped
	} else {
		c.prospects[one.letterID] = p
	}
	c.letters, c.tenants = append(c.letters, one.letterID), append(c.tenants, one.tenantID)
	c.results, c.details = append(c.results, string(result)), append(c.details, p.skipped)
}

// CreateReplay chooses the open dead letters of the filter and makes a replay of them, which any running worker begins at once. Letters that are in
// another unfinished replay are passed over and counted. Where nothing is left to do the replay is complete. CodeInvalid.
func (s *Store) CreateReplay(ctx context.Context, n payments.NewReplay) (payments.Replay, error) {
	if err := checkNewReplay(n); err != nil {
		return payments.Replay{}, err
	}
	var random [16]byte
	s.opts.Token(random[:])
	id := "rpl_" + hex.EncodeToString(random[:])
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			var there int
			var now time.Time
			b := tx.batch()
			b.Queue(query("clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
			b.Queue(query("replay_exists"), id).QueryRow(func(r pgx.Row) error { return r.Scan(&there) })
			if err := tx.send(ctx, b); err != nil || there > 0 {
				return err // an earlier attempt was committed
			}
			c, err := s.choose(ctx, tx, n)
			if err != nil {
				return err
			}
			return s.makeReplay(ctx, tx, id, n, c, now)
		})
	})
	if err != nil {
		return payments.Replay{}, err
	}
	return s.Replay(ctx, id)
}

func checkNewReplay(n payments.NewReplay) error {
	invalid := func(field, message string) error {
		return &payments.Error{Code: payments.CodeInvalid, Field: field, Message: message}
	}
	switch {
	case n.Actor == "":
		return invalid("actor", "is required: say who replays")
	case n.Rate < 0 || math.IsNaN(n.Rate) || math.IsInf(n.Rate, 0):
		return invalid("rate", "must be a number of items a second, or 0 for as fast as they can be issued")
	case n.Limit < 0:
		return invalid("limit", "must be at least 1, or 0 for all")
	}
	for name, text := range n.Set {
		if wrong := schema.CheckEdit(name, text); wrong != nil {
			return invalid("set", wrong.Placeless())
		}
		if !storable(name) || !storable(text) {
			return unstorable("set")
		}
		if payments.ContainsCardNumberString(text) || payments.ContainsCardNumberString(name) {
			return invalid("set", "contains what looks like a card number; send a Stripe payment_method instead, and never card data")
		}
	}
	if field, message := payments.CheckEdit(n.Set); field != "" {
		return invalid("set", field+": "+message)
	}
	return checkReplayFilter(n.Filter)
}

// choose reads the candidates, as many as are wanted. Letters that can never be replayed are items, too, so that their result is told.
func (s *Store) choose(ctx context.Context, tx *transaction, n payments.NewReplay) (*choosing, error) {
	c := &choosing{prospects: map[string]prospect{}}
	err := candidates(ctx, tx.conn, n.Filter, func(one candidate) bool {
		if one.busy {
			c.passedOver++
		} else {
			c.add(one, one.prospect(n.Set))
		}
		return n.Limit == 0 || len(c.prospects) < n.Limit
	})
	return c, err
}

func (s *Store) makeReplay(ctx context.Context, tx *transaction, id string, n payments.NewReplay, c *choosing, now time.Time) error {
	var added []string
	b := tx.batch()
	b.Queue(query("add_replay_items"), id, c.letters, c.tenants, c.results, c.details, now).Query(func(rows pgx.Rows) (err error) {
		added, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	var t outlook
	for _, letter := range added {
		if p, chosen := c.prospects[letter]; chosen {
			t.add(p)
		}
	}
	var v payments.ReplayPreview
	t.sum(&v)
	amount := v.Amount
	passedOver := c.passedOver + len(c.letters) - len(added)
	state := payments.ReplayRunning
	if v.Count == 0 {
		state = payments.ReplayCompleted
	}
	filter, err := filterDocument(n.Filter)
	if err != nil {
		return err
	}
	amounts, _ := json.Marshal(amount) // a map of numbers
	result, _ := json.Marshal(map[string]any{"replay": id, "count": len(added), "passed_over": passedOver, "amount": amount, "set": n.Set, "rate": n.Rate})
	var changes any
	if len(n.Set) > 0 {
		text, _ := json.Marshal(n.Set)
		changes = string(text)
	}
	b = tx.batch()
	b.Queue(query("create_replay"), id, string(state), string(filter), changes, n.Rate, sanitised(n.Actor, nameMax), sanitised(n.Reason, messageMax), len(added),
		passedOver, string(amounts), now)
	s.queueAudit(b, payments.AuditEntry{
		Actor: n.Actor, Action: "dlq replay", Reason: n.Reason, TenantID: n.Filter.TenantID, Target: id, Filter: filter, Result: result,
	})
	s.reached("create_replay")
	return tx.commit(ctx, b)
}

// filterDocument is a filter as it is kept. A text that somebody looked for in payloads may be a card number.
func filterDocument(f payments.LetterFilter) ([]byte, error) {
	if payments.ContainsCardNumberString(f.Text) {
		f.Text = "(a card number)"
	}
	doc, err := schema.Marshal(document.LetterFilter(f))
	if err != nil {
		return nil, payments.Errorf(payments.CodeInvalid, "the filter cannot be written: %w", err)
	}
	return doc, nil
}

// PauseReplay lets a replay issue nothing until it is resumed. What was issued goes on. CodeNotFound; CodeInvalid when it is finished.
func (s *Store) PauseReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return s.moveReplay(ctx, id, payments.ReplayPaused, "replays pause", op)
}

// ResumeReplay lets a paused replay go on. CodeNotFound; CodeInvalid when it is finished.
func (s *Store) ResumeReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return s.moveReplay(ctx, id, payments.ReplayRunning, "replays resume", op)
}

// CancelReplay ends a replay: what was not issued is skipped, and its dead letters stay open; what was issued gets its result still. CodeNotFound;
// CodeInvalid when it is completed.
func (s *Store) CancelReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return s.moveReplay(ctx, id, payments.ReplayCanceled, "replays cancel", op)
}

func (s *Store) moveReplay(ctx context.Context, id string, to payments.ReplayState, action string, op payments.Operation) (payments.Replay, error) {
	if op.Actor == "" {
		return payments.Replay{}, &payments.Error{Code: payments.CodeInvalid, Field: "actor", Message: "is required: say who does it"}
	}
	if !storable(id) {
		return payments.Replay{}, noReplay()
	}
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			var state string
			var now time.Time
			b := tx.batch()
			b.Queue(query("lock_replay"), id, s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&state, &now) })
			if err := tx.send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
				return noReplay()
			} else if err != nil {
				return err
			}
			switch from := payments.ReplayState(state); {
			case from == to:
				return nil // it is so already; or an earlier attempt was committed
			case from == payments.ReplayCanceled || from == payments.ReplayCompleted:
				return payments.Errorf(payments.CodeInvalid, "the replay is %s, so there is nothing left to do; make a new one", from)
			}
			b = tx.batch()
			b.Queue(query("set_replay_state"), id, string(to), now)
			if to == payments.ReplayCanceled {
				b.Queue(query("skip_replay_items"), id, now)
			}
			s.queueAudit(b, payments.AuditEntry{Actor: op.Actor, Action: action, Reason: op.Reason, Target: id})
			s.reached("move_replay")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return payments.Replay{}, err
	}
	return s.Replay(ctx, id)
}

func noReplay() error { return payments.Errorf(payments.CodeNotFound, "there is no such replay") }
