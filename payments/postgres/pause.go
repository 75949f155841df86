package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// pauseSettles is how long Pause waits for tokens that are being given by transactions which did not see it.
const pauseSettles = 5 * time.Second

// Pause holds back whoever it names: a tenant, an account or, with neither, everybody. From its commit on no statement that begins gives a token to
// what it names, and when Pause returns those that had begun before have ended, unless they take longer than 5 s. A pause of the same scope is
// changed. CodeInvalid: both are named, or no reason or nobody who pauses, or it would be over already; CodeNotFound: no such tenant; CodeUnavailable.
func (s *Store) Pause(ctx context.Context, p payments.Pause) (payments.Pause, error) {
	if err := s.checkPause(ctx, p); err != nil {
		return payments.Pause{}, err
	}
	until := nullable(p.Until)
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			b := tx.batch()
			b.Queue(query("pause"), s.now(), until, null(p.TenantID), null(p.AccountID), sanitised(p.Reason, messageMax), sanitised(p.Actor, nameMax)).
				QueryRow(func(row pgx.Row) error { return row.Scan(&p.ID, &p.Since) })
			if err := tx.send(ctx, b); err != nil {
				if errors.Is(err, pgx.ErrNoRows) {
					return &payments.Error{Code: payments.CodeInvalid, Field: "until", Message: "is over already: give a time that is to come"}
				}
				return err
			}
			result := []byte("{}")
			if until != nil {
				result = []byte(`{"until":"` + p.Until.UTC().Format(time.RFC3339) + `"}`)
			}
			b = tx.batch()
			s.queueAudit(b, payments.AuditEntry{Actor: p.Actor, Action: "pause", Reason: p.Reason, TenantID: p.TenantID, Target: p.AccountID, Result: result})
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return payments.Pause{}, err
	}
	p.Since = p.Since.UTC()
	return p, s.pauseSettled(ctx)
}

// checkPause says what is wrong with a pause.
func (s *Store) checkPause(ctx context.Context, p payments.Pause) error {
	invalid := func(field, text string) error {
		return &payments.Error{Code: payments.CodeInvalid, Field: field, Message: text}
	}
	if p.Reason == "" {
		return invalid("reason", "is required: say why, for whoever finds the payments waiting")
	}
	if p.Actor == "" {
		return invalid("actor", "is required: say who pauses")
	}
	return s.checkScope(ctx, p)
}

// checkScope says what is wrong with whom a pause names.
func (s *Store) checkScope(ctx context.Context, p payments.Pause) error {
	switch {
	case p.TenantID != "" && p.AccountID != "":
		return &payments.Error{Code: payments.CodeInvalid, Field: "account", Message: "name a tenant or an account, not both"}
	case p.AccountID != "" && checkStripeAccount(p.AccountID) != "":
		return &payments.Error{Code: payments.CodeInvalid, Field: "account", Message: "must be the id of a Stripe account, acct_ and letters or digits"}
	case p.TenantID == "":
		return nil
	}
	there, err := s.TenantExists(ctx, p.TenantID)
	if err == nil && !there {
		err = &payments.Error{Code: payments.CodeNotFound, Field: "tenant", Message: "no such tenant: see tenants list"}
	}
	return err
}

// pauseSettled waits until the transactions that may have missed the pause are over.
func (s *Store) pauseSettled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pauseSettles)
	defer cancel()
	older, err := s.tokenGivers(ctx)
	for err == nil && len(older) > 0 {
		select {
		case <-ctx.Done():
			return nil // they are in flight, as what was sent before
		case <-time.After(s.jitter(20 * time.Millisecond)):
		}
		var now []string
		now, err = s.tokenGivers(ctx)
		older = slices.DeleteFunc(older, func(t string) bool { return !slices.Contains(now, t) })
	}
	if ctx.Err() != nil {
		return nil
	}
	return translate(err)
}

func (s *Store) tokenGivers(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, query("pause_older"))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Resume ends the pause of exactly that scope, and reports whether it held anybody: tickets are given out again at once. CodeInvalid and CodeNotFound
// as for Pause; CodeUnavailable.
func (s *Store) Resume(ctx context.Context, scope payments.Pause, o payments.Operation) (ended bool, err error) {
	if o.Actor == "" {
		return false, &payments.Error{Code: payments.CodeInvalid, Field: "actor", Message: "is required: say who resumes"}
	}
	if err := s.checkScope(ctx, scope); err != nil {
		return false, err
	}
	err = s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			b := tx.batch()
			ended = false
			b.Queue(query("resume"), s.now(), scope.TenantID, scope.AccountID).QueryRow(func(row pgx.Row) error {
				if err := row.Scan(&ended); !errors.Is(err, pgx.ErrNoRows) {
					return err
				}
				return nil
			})
			if err := tx.send(ctx, b); err != nil {
				return err
			}
			result := []byte(`{"ended":false}`)
			if ended {
				result = []byte(`{"ended":true}`)
			}
			b = tx.batch()
			s.queueAudit(b, payments.AuditEntry{Actor: o.Actor, Action: "resume", Reason: o.Reason, TenantID: scope.TenantID, Target: scope.AccountID, Result: result})
			return tx.commit(ctx, b)
		})
	})
	return ended, err
}

// Pauses lists the pauses that hold somebody now, the oldest first.
func (s *Store) Pauses(ctx context.Context) ([]payments.Pause, error) {
	rows, err := s.pool.Query(ctx, query("pauses"), s.now())
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (payments.Pause, error) {
		var p payments.Pause
		var until pgtype.Timestamptz
		err := r.Scan(&p.ID, &p.TenantID, &p.AccountID, &p.Reason, &p.Actor, &p.Since, &until)
		p.Since, p.Until = p.Since.UTC(), instant(until)
		return p, err
	})
	return list, translate(err)
}

// showPaused sets the reason of payments that a pause holds back: those that are received or waiting and that nobody has.
func (s *Store) showPaused(ctx context.Context, list []payments.Payment) error {
	var tenants, accounts []string
	var places []int
	for i := range list {
		if p := &list[i]; !p.Owned && (p.Status == payments.StatusReceived || p.Status == payments.StatusWaiting) {
			tenants, accounts, places = append(tenants, p.TenantID), append(accounts, p.StripeAccount), append(places, i)
		}
	}
	if len(places) == 0 {
		return nil
	}
	rows, err := s.pool.Query(ctx, query("paused"), s.now(), tenants, accounts)
	if err != nil {
		return translate(err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, place := range held {
		list[places[place-1]].Reason = payments.ReasonPaused
	}
	return translate(err)
}
