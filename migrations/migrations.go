package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// lockID is the session lock's number; other programs that use goose on the same server have another.
const lockID = 0x6f6e636570617900 // "oncepay"

// How often and for how long a process asks for the lock while another one migrates.
const (
	lockEverySeconds = 1
	lockAttempts     = 30 * 60
)

// Step is one migration.
type Step struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero while it is not applied
}

// Up brings the database to Target. Any number of processes may call it at once; a process that dies in the middle leaves only whole steps
// behind. Where nothing is to be done it takes no lock. A database that is ahead of this program is left as it is.
func Up(ctx context.Context, dsn string) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	current, err := promptVersion(ctx, db)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if current >= target(provider) {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}

// Version returns the version that the database is at, 0 when it is empty. It changes nothing.
func Version(ctx context.Context, dsn string) (int64, error) {
	db, err := open(dsn)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	v, err := version(ctx, db)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	return v, nil
}

// Status lists all steps in their order and whether the database has them. It changes nothing.
func Status(ctx context.Context, dsn string) ([]Step, error) {
	db, err := open(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	at, err := applied(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var steps []Step
	for _, s := range provider.ListSources() {
		when, done := at[s.Version]
		steps = append(steps, Step{Version: s.Version, Name: s.Path, Applied: done, AppliedAt: when})
	}
	return steps, nil
}

// Target returns the version that this program needs.
func Target() int64 {
	entries, err := files.ReadDir(".")
	if err != nil {
		return 0 // an embedded directory can always be read
	}
	var last int64
	for _, e := range entries {
		if v, err := goose.NumericComponent(e.Name()); err == nil {
			last = max(last, v)
		}
	}
	return last
}

// open returns a connection pool for migrations: without the time limits of normal work, since a step may take long, and noticing within
// seconds that a client has died, so that its lock does not outlive it.
func open(dsn string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("migrations: the database URL cannot be read; it must be like postgres://user@host:5432/name: %w", err)
	}
	config.RuntimeParams["client_connection_check_interval"] = "1000"
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = answerTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "oncepay migrate"
	}
	return stdlib.OpenDB(*config), nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(lockEverySeconds, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return provider, nil
}

func target(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

// answerTimeout bounds what is answered at once by a server that answers at all.
const answerTimeout = 30 * time.Second

// promptVersion is version, given up when no answer comes: the connection may lead to a server that is gone.
func promptVersion(ctx context.Context, db *sql.DB) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return version(ctx, db)
}

// version reads the newest applied step without goose, which would create its table on the way.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	at, err := applied(ctx, db)
	var last int64
	for v := range at {
		last = max(last, v)
	}
	return last, err
}

// applied reads when each step was applied; a database without goose's table has none.
func applied(ctx context.Context, db *sql.DB) (map[int64]time.Time, error) {
	rows, err := db.QueryContext(ctx, "SELECT version_id, tstamp FROM goose_db_version WHERE is_applied")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" { // undefined_table
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	at := map[int64]time.Time{}
	for rows.Next() {
		var v int64
		var when time.Time
		if err := rows.Scan(&v, &when); err != nil {
			return nil, err
		}
		at[v] = when.UTC()
	}
	return at, rows.Err()
}
