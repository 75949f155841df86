package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/payments"
)

// connectionSettings hold on every connection of ours. A transaction that was forgotten must not hold up vacuum for ever. The planner is kept
// to nested loops over indexes: a plan that was made while a table was empty, and then kept, read whole tables once they had grown. A row that
// somebody keeps locked (a session at a prompt, a worker that was stopped in the middle) must hold up its own item, not the batch (see oneItems).
// A commit is one that survives: a server, database or role that is set to answer before that would lose payments whose message is acked.
var connectionSettings = map[string]string{
	"application_name":                    "oncepay",
	"timezone":                            "UTC",
	"default_transaction_isolation":       "read committed",
	"idle_in_transaction_session_timeout": "30000",
	"statement_timeout":                   "60000",
	"lock_timeout":                        "2000",
	"synchronous_commit":                  "on",
	"enable_seqscan":                      "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"jit":                                 "off",
}

// Connections are made anew now and then, which also ends the plans that they keep.
const (
	connectionLifetime       = 10 * time.Minute
	connectionLifetimeJitter = time.Minute
)

// connectTimeout bounds the making of a connection, unless the URL says otherwise (connect_timeout). A server that accepts and never answers, as a
// balancer before a dead one does, would keep a place in the pool for ever.
const connectTimeout = 15 * time.Second

// openPool connects and asks one question, so that a wrong URL is an error here and not at the first payment.
func openPool(ctx context.Context, dsn string, opts Options, now func() *time.Time, kept *plans) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// pgx hides the password in its own message.
		return nil, payments.Errorf(payments.CodeInvalid, "the database URL cannot be read; it must be like postgres://user@host:5432/name: %w", err)
	}
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = connectionLifetime, connectionLifetimeJitter
	config.MaxConns = int32(min(opts.PoolSize, 10_000))
	own := config.ConnConfig.RuntimeParams["application_name"] == ""
	for name, value := range connectionSettings {
		if name == "application_name" && !own {
			continue // an operator's own name says more
		}
		config.ConnConfig.RuntimeParams[name] = value
	}
	if own && opts.Name != "" {
		config.ConnConfig.RuntimeParams["application_name"] = opts.Name
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.PrepareConn = kept.prepare
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		if opts.Connected != nil {
			opts.Connected(ctx, func(ctx context.Context) (payments.MarkState, error) { return readMark(ctx, c, now()) })
		}
		return registerArrays(ctx, c)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, payments.Errorf(payments.CodeUnavailable, "PostgreSQL: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, payments.Errorf(payments.CodeUnavailable, "PostgreSQL does not answer: %w", err)
	}
	return pool, nil
}
