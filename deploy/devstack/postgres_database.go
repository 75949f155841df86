package devstack

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase creates an empty database. A name that is taken is an error.
func (p *Postgres) CreateDatabase(ctx context.Context, name string) error {
	return p.admin(ctx, "create database "+name, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// CopyDatabase creates a database as a copy of template, to which nobody may be
// connected. PostgreSQL's WAL_LOG strategy is used: it needs no checkpoint.
func (p *Postgres) CopyDatabase(ctx context.Context, name, template string) error {
	return p.admin(ctx, "copy database "+template, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY WAL_LOG",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize()))
}

// DropDatabase drops a database and cuts whoever is connected to it. One that
// does not exist is no error.
func (p *Postgres) DropDatabase(ctx context.Context, name string) error {
	return p.admin(ctx, "drop database "+name, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// admin runs one statement on a connection of its own to the database "postgres".
func (p *Postgres) admin(ctx context.Context, what, sql string) error {
	conn, err := pgx.Connect(ctx, p.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", what, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("postgres: %s: %w", what, err)
	}
	return nil
}
