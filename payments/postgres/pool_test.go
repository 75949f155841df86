package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestCommitsSurvive: a database that is set to answer commits before they are on disk does not make ours answer so.
func TestCommitsSurvive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	var name, got string
	if err := b.pool.QueryRow(ctx, "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	if err := b.another(Options{}).pool.QueryRow(ctx, "SHOW synchronous_commit").Scan(&got); err != nil || got != "on" {
		t.Errorf("synchronous_commit is %q, %v", got, err)
	}
}
