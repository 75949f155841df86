package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// flushRetry repeats a whole flush with the same tokens, so that a commit whose answer was lost reads its own tokens back.
var flushRetry = coalesce.Retry{Retryable: transient, Max: 5, Base: 10 * time.Millisecond, Cap: 400 * time.Millisecond}

// errRowGone: a row was there when we inserted, and not when we read.
var errRowGone = errors.New("a row vanished between two statements")

// contentFault reports SQLSTATE classes that one item's content causes: cardinality (21), data (22), constraints (23), limits (54).
func contentFault(err error) bool {
	switch class(err) {
	case "21", "22", "23", "54":
		return true
	}
	return false
}

// lockNotAvailable: a lock was not there within lock_timeout.
const lockNotAvailable = "55P03"

// oneItems reports whether one item has failed its whole batch: by its content, or since somebody keeps its row locked (55P03,
// lock_not_available, after lock_timeout). The others must not wait for it.
func oneItems(err error) bool {
	var pg *pgconn.PgError
	return contentFault(err) || errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// transient reports whether the same again may succeed: conflicts between transactions, a server or a connection that is away, time-outs.
func transient(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errRowGone) {
		return true
	}
	var own *payments.Error
	if errors.As(err, &own) {
		return own.Code == payments.CodeUnavailable
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		// The connection's faults come in many types; none of them says anything about the content.
		return !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, errMapping)
	}
	switch class(err) {
	case "08", "40", "53", "57", "58": // connection, rollback, resources, operator, system
		return true
	}
	return pg.Code == lockNotAvailable ||
		pg.Code == "55006" || // object_in_use
		pg.Code == "0A000" || pg.Code == "26000" || // a statement was prepared before a migration; pgx has dropped it by now
		pg.Code == "25006" || // read_only_sql_transaction: a standby, after a failover
		pg.Code == "25P03" // idle_in_transaction_session_timeout
}

func class(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 {
		return pg.Code[:2]
	}
	return ""
}

// errMapping marks results that do not have the form we asked for: a bug.
var errMapping = errors.New("unexpected result of a statement")

// translate gives an error that leaves this package its code.
func translate(err error) error {
	var own *payments.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.Is(err, coalesce.ErrNotFlushed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return payments.Errorf(payments.CodeUnavailable, "PostgreSQL: %w", err)
	}
	var panicked *coalesce.PanicError
	var count *coalesce.CountError
	if errors.As(err, &panicked) || errors.As(err, &count) || errors.Is(err, coalesce.ErrGoexit) {
		return payments.Errorf(payments.CodeInternal, "a flush failed: %w", err)
	}
	if code, ok := constraintCode(err); ok {
		return payments.Errorf(code, "PostgreSQL: %w", err)
	}
	if transient(err) {
		return payments.Errorf(payments.CodeUnavailable, "PostgreSQL: %w", err)
	}
	return payments.Errorf(payments.CodeInternal, "PostgreSQL: %w", err)
}

// attemptsMax bounds the repetitions of writes that do not go through a group.
const attemptsMax = 6

// write runs a write that may be repeated. Once begun it does not end with ctx: whoever stops listening in the middle would not know what was
// done in its name.
func (s *Store) write(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return translate(err)
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.FlushTimeout)
	defer cancel()
	limit := flushRetry.Base
	for attempt := 1; ; attempt++ {
		began := s.wall()
		err := do(own)
		s.took(s.wall().Sub(began))
		if err == nil || attempt == attemptsMax || !transient(err) {
			return translate(err)
		}
		timer := time.NewTimer(s.jitter(limit))
		select {
		case <-own.Done():
			timer.Stop()
			return translate(err)
		case <-timer.C:
		}
		limit = min(2*limit, flushRetry.Cap)
	}
}

// jitter is a random time in [0, limit).
func (s *Store) jitter(limit time.Duration) time.Duration {
	var random [8]byte
	s.opts.Token(random[:])
	return time.Duration(binary.LittleEndian.Uint64(random[:]) % uint64(limit))
}
