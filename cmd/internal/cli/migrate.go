package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/schema"
)

func migrateCommand(s *shared) *cobra.Command {
	return Group("migrate", "Bring the database to what this version needs",
		&cobra.Command{Use: "up", Short: "Apply what is missing; safe while others do the same", Args: Arguments(0, 0),
			RunE: func(c *cobra.Command, _ []string) error { return s.migrateUp(c.Context()) }},
		&cobra.Command{Use: "status", Short: "List all steps and whether they are applied", Args: Arguments(0, 0),
			RunE: func(c *cobra.Command, _ []string) error { return s.migrateStatus(c.Context()) }},
	)
}

// migrationStep is a step as --json prints it.
type migrationStep struct {
	Version   int64             `json:"version"`
	Name      string            `json:"name"`
	Applied   bool              `json:"applied"`
	AppliedAt *schema.Timestamp `json:"applied_at"`
}

func (s *shared) migrateUp(ctx context.Context) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if err := settings.RequireDatabase(); err != nil {
		return err
	}
	if err := migrations.Up(ctx, settings.DatabaseURL); err != nil {
		return app.DatabaseError(err)
	}
	at, err := migrations.Version(ctx, settings.DatabaseURL)
	if err != nil {
		return app.DatabaseError(err)
	}
	if s.json {
		return console.JSON(s.out, map[string]int64{"version": at})
	}
	fmt.Fprintf(s.out, "the database is at version %d\n", at)
	return nil
}

func (s *shared) migrateStatus(ctx context.Context) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if err := settings.RequireDatabase(); err != nil {
		return err
	}
	steps, err := migrations.Status(ctx, settings.DatabaseURL)
	if err != nil {
		return app.DatabaseError(err)
	}
	if s.json {
		list := schema.List[migrationStep]{Data: []migrationStep{}}
		for _, step := range steps {
			list.Data = append(list.Data, migrationStep{step.Version, step.Name, step.Applied, schema.NullTimestamp(step.AppliedAt)})
		}
		return console.JSON(s.out, list)
	}
	rows := make([][]string, len(steps))
	for i, step := range steps {
		at := "missing: run `oncepay migrate up`"
		if step.Applied {
			at = step.AppliedAt.UTC().Format(time.RFC3339)
		}
		rows[i] = []string{strconv.FormatInt(step.Version, 10), step.Name, at}
	}
	return console.Table(s.out, []string{"VERSION", "NAME", "APPLIED"}, rows)
}
