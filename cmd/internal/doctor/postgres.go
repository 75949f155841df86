package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// versionMin is the oldest PostgreSQL that the schema and its tests know: 15.
const versionMin = 150_000

// poolSize is how many questions are asked of PostgreSQL side by side.
const poolSize = 4

// checkPostgres connects, and finds out whether this server may be written to at all.
func checkPostgres(ctx context.Context, x *examination) verdict {
	config, err := pgxpool.ParseConfig(x.settings.DatabaseURL)
	if err != nil {
		return bad("correct ONCEPAY_DATABASE_URL", "ONCEPAY_DATABASE_URL cannot be read")
	}
	config.MaxConns = poolSize
	config.ConnConfig.ConnectTimeout = askLimit
	parameters := config.ConnConfig.RuntimeParams
	if parameters["application_name"] == "" {
		parameters["application_name"] = "oncepay doctor"
	}
	parameters["timezone"] = "UTC"
	parameters["lock_timeout"] = "2000"
	parameters["statement_timeout"] = fmt.Sprint(x.timeout.Milliseconds())
	parameters["synchronous_commit"] = "on" // as on every connection of a store
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return bad("correct ONCEPAY_DATABASE_URL", "%s", x.said(err))
	}
	x.onClose(pool.Close)
	x.pool = pool
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var f serverFacts
	err = x.row(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
		current_setting('default_transaction_read_only')::bool`, &f.number, &f.version, &f.standby, &f.readOnly)
	switch {
	case err != nil && tooLong(err):
		return unreachable("ONCEPAY_DATABASE_URL: PostgreSQL does not answer", err)
	case err != nil:
		return unreachable(x.said(app.DatabaseError(err)), err)
	}
	return judgeServer(f)
}

type serverFacts struct {
	number            int
	version           string
	standby, readOnly bool
}

func judgeServer(f serverFacts) verdict {
	switch {
	case f.number < versionMin:
		return bad("upgrade PostgreSQL to 15 or newer", "PostgreSQL %s; 15 or newer is needed", f.version)
	case f.standby:
		return bad("let ONCEPAY_DATABASE_URL lead to the primary (with several hosts: target_session_attrs=read-write)", "PostgreSQL %s, a standby: nothing can be written here", f.version)
	case f.readOnly:
		return bad("set default_transaction_read_only to off, for the server, the database and the role", "PostgreSQL %s begins every transaction read-only", f.version)
	}
	return good("PostgreSQL %s (15 or newer is needed)", f.version)
}

// unreachable says what to do about a connection that could not be made.
func unreachable(found string, err error) verdict {
	remedy := "start PostgreSQL, or correct host and port in ONCEPAY_DATABASE_URL; look at firewalls between"
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch {
		case strings.HasPrefix(answer.Code, "28"):
			remedy = "correct user and password in ONCEPAY_DATABASE_URL, or pg_hba.conf on the server"
		case answer.Code == "3D000":
			remedy = "create the database, or correct its name in ONCEPAY_DATABASE_URL"
		case answer.Code == "53300":
			remedy = "raise max_connections (or the limit of the role or database), or end connections that are not needed"
		default:
			remedy = "do what PostgreSQL's message says; its log says more"
		}
	}
	return bad(remedy, "%s", found)
}

// row asks for one row, in a transaction that can only read.
func (x *examination) row(ctx context.Context, sql string, into ...any) error {
	return x.reading(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, sql).Scan(into...) })
}

// reading runs f in a transaction that can only read.
func (x *examination) reading(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, f)
}

// unanswered is the verdict of a question to PostgreSQL that ended in an error.
func (x *examination) unanswered(err error) verdict {
	var answer *pgconn.PgError
	isAnswer := errors.As(err, &answer)
	switch {
	case isAnswer && answer.Code == "42501": // insufficient_privilege
		return skipped("postgres_permissions")
	case tooLong(err):
		return bad(longer, "PostgreSQL did not answer in time: %s", x.said(err))
	}
	return bad("do what PostgreSQL's message says; its log says more", "%s", x.said(err))
}

// unfinished is unanswered for a question that reads all payments: of many millions that may take longer than there is time, and is no fault.
func (x *examination) unfinished(err error) verdict {
	v := x.unanswered(err)
	if tooLong(err) {
		v.result = Warning
	}
	return v
}

// tooLong tells that time was over: ours, the statement's, or that of waiting for a lock of somebody else.
func tooLong(err error) bool {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code == "57014" || answer.Code == "55P03" // query_canceled, lock_not_available
	}
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

// checkEncoding: idempotency keys are ASCII, but descriptions and metadata are anything.
func checkEncoding(ctx context.Context, x *examination) verdict {
	var encoding string
	ctx, cancel := x.limited(ctx)
	defer cancel()
	if err := x.row(ctx, `SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`, &encoding); err != nil {
		return x.unanswered(err)
	}
	return judgeEncoding(encoding)
}

func judgeEncoding(encoding string) verdict {
	if encoding != "UTF8" {
		return bad("make a database with ENCODING 'UTF8' TEMPLATE template0, and move what is there with pg_dump", "the database is encoded in %s: texts that it cannot hold are refused", encoding)
	}
	return good("UTF8")
}

// reading is a clock of somebody else, and this machine's when it was read.
type reading struct {
	theirs, ours time.Time
}

// between makes a reading of an answer: we take its time to be in the middle of asking.
func between(before, after, theirs time.Time) reading {
	return reading{theirs: theirs, ours: before.Add(after.Sub(before) / 2)}
}
