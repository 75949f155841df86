package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// storeTimeout is how long a command tries to reach PostgreSQL.
const storeTimeout = 15 * time.Second

// withStore opens the store of the settings for one command.
func (s *shared) withStore(ctx context.Context, f func(*postgres.Store) error) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	store, err := openStore(ctx, settings)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = store.Close(ctx)
	}()
	return asUsage(f(store))
}

// isTenant refuses the name of a tenant that is not there: an empty list would look as if it had nothing. "" is nobody's name, and fine.
func isTenant(ctx context.Context, store *postgres.Store, tenant string) error {
	if tenant == "" {
		return nil
	}
	there, err := store.TenantExists(ctx, tenant)
	if err == nil && !there {
		err = payments.Errorf(payments.CodeNotFound, "--tenant: there is no such tenant; `oncepay tenants list` shows them")
	}
	return err
}

func openStore(ctx context.Context, settings app.Settings) (*postgres.Store, error) {
	if err := settings.RequireDatabase(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	at, err := migrations.Version(ctx, settings.DatabaseURL)
	if err != nil {
		return nil, app.DatabaseError(err)
	}
	if at < migrations.Target() {
		return nil, fmt.Errorf("the database is at version %d and this program needs %d: run `oncepay migrate up`", at, migrations.Target())
	}
	store, err := postgres.Open(ctx, settings.DatabaseURL, postgres.Options{PoolSize: 2, Namespace: settings.Namespace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, app.DatabaseError(err)
	}
	return store, nil
}

// asUsage makes what the person typed wrong a usage error.
func asUsage(err error) error {
	var e *payments.Error
	if errors.As(err, &e) && e.Code == payments.CodeInvalid {
		return &app.UsageError{Text: e.Error()}
	}
	return err
}

// orDash shows an absent text.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// when shows a time to people.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// cursor is a list's next_cursor: null after the last page.
func cursor(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}
