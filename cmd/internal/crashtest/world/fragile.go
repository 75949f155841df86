package world

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/migrations"
)

// NewFragile is a world on servers of its own, which may go away.
func NewFragile(ctx context.Context, t *testing.T, pace Times) (*World, *devstack.Postgres, *devstack.NATS) {
	t.Helper()
	pg, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	broker, err := devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	if err := pg.CreateDatabase(ctx, "outage"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, pg.DSN("outage")); err != nil {
		t.Fatal(err)
	}
	return newAt(t, place{dsn: pg.DSN("outage"), nats: broker.URL(), times: pace}), pg, broker
}

// Pass lets an outage last.
func Pass(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}
