package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/payments/coalesce"
)

// transaction is one transaction on one connection. Statements travel in batches: BEGIN goes out with the first one and COMMIT with the last,
// so that a transaction costs as many round trips as it has decisions to take.
type transaction struct {
	conn  *pgxpool.Conn
	begun bool
}

const begin = "begin isolation level read committed"

// rollbackLimit bounds the rollback of a failed transaction; a connection that does not answer in time is closed.
const rollbackLimit = 2 * time.Second

// transact runs do in a transaction, which do ends with commit.
func (s *Store) transact(ctx context.Context, do func(*transaction) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // it closes connections that are in a transaction still
	defer func() {
		if raw := conn.Conn(); !raw.IsClosed() && raw.PgConn().TxStatus() != 'I' {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
			defer cancel()
			_, _ = raw.Exec(ctx, "rollback")
		}
	}()
	return do(&transaction{conn: conn})
}

// batch returns an empty batch, which begins the transaction if it has not begun.
func (t *transaction) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if !t.begun {
		b.Queue(begin)
		t.begun = true
	}
	return b
}

// again ends a transaction that was refused, so that another one can begin.
func (t *transaction) again(ctx context.Context) error {
	t.begun = false
	_, err := t.conn.Exec(ctx, "rollback")
	return err
}

// send runs the batch's statements and their callbacks.
func (t *transaction) send(ctx context.Context, b *pgx.Batch) error {
	sent := t.conn.SendBatch(ctx, b)
	coalesce.Underway(ctx)
	return sent.Close()
}

// commit sends the batch with a COMMIT behind it. PostgreSQL passes over the COMMIT when a statement before it failed. After an error of the
// connection nothing is known.
func (t *transaction) commit(ctx context.Context, b *pgx.Batch) error {
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("%w: COMMIT was answered %q", errMapping, tag)
		}
		return nil
	})
	return t.send(ctx, b)
}

// hooked reports whether a test stops transactions before their COMMIT, which then must be sent apart from what comes before it.
func (s *Store) hooked() bool { return s.beforeCommit.Load() != nil }

// reached tells tests that a verb is about to commit.
func (s *Store) reached(verb string) {
	if hook := s.beforeCommit.Load(); hook != nil {
		(*hook)(verb)
	}
}
