package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
)

func batchShowCommand(s *shared) *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use: "show ID|K", Short: "Show how far a batch is, or all batches of a run together (operators)", Args: Arguments(1, 1),
		Long: "Show how far a batch is: by its id (bat_…), by its key, or by the key of a run (its batches'\n" +
			"parent), for the totals over all its batches.\n\n" +
			"This reads the database (ONCEPAY_DATABASE_URL), as operators do. With an API key alone, repeat\n" +
			"`oncepay batch run` with the same file and key, or ask the API: GET /v1/batches?parent=K.",
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			id, err := payments.ParseID(name)
			byID := err == nil && strings.HasPrefix(name, "bat_")
			switch {
			case !byID && (payments.CheckKey(name) != "" || payments.ContainsCardNumberString(name)):
				return &app.UsageError{Text: "give a batch's id (bat_…), its key, or the key of a run"}
			case tenant != "" && payments.CheckTenantID(tenant) != "":
				return &app.UsageError{Text: "--tenant: " + payments.CheckTenantID(tenant)}
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				if byID && tenant == "" {
					p, err := store.FindAnywhere(c.Context(), id)
					if payments.ErrorCode(err) == payments.CodeNotFound {
						return payments.Errorf(payments.CodeNotFound, "there is no batch with this id")
					}
					if err != nil {
						return err
					}
					tenant = p.TenantID
				}
				if !byID {
					if tenant, err = tenantOfKey(c.Context(), store, tenant, name); err != nil {
						return err
					}
					id = payments.NewID(tenant, name)
				}
				state, err := store.Batch(c.Context(), tenant, id)
				if payments.ErrorCode(err) == payments.CodeNotFound && !byID {
					return s.showRun(c.Context(), store, tenant, name)
				}
				if err != nil {
					return err
				}
				return s.printBatch(state)
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant; needed with a key that several tenants have")
	return c
}

// tenantOfKey is the one tenant that has a batch or a run under the key, unless the caller names one.
func tenantOfKey(ctx context.Context, store *postgres.Store, named, key string) (string, error) {
	if named != "" {
		return named, nil
	}
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, t := range tenants {
		_, err := store.Batch(ctx, t.ID, payments.NewID(t.ID, key))
		if payments.ErrorCode(err) == payments.CodeNotFound {
			var page []payments.BatchState
			page, _, err = store.Batches(ctx, payments.BatchListRequest{TenantID: t.ID, Parent: key, Limit: 1})
			if err == nil && len(page) == 0 {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		if found != "" {
			return "", &app.UsageError{Text: "--tenant: is required: several tenants have a batch or a run under this key"}
		}
		found = t.ID
	}
	if found == "" {
		return "", payments.Errorf(payments.CodeNotFound, "no tenant has a batch or a run of batches under this key")
	}
	return found, nil
}

func (s *shared) printBatch(state payments.BatchState) error {
	d := document.Batch(state)
	if s.json {
		return console.JSON(s.out, d)
	}
	var totals batch.Totals
	totals.Add(d)
	s.printLines([][2]string{
		{"batch", d.ID}, {"tenant", state.TenantID}, {"key", d.IdempotencyKey}, {"parent", state.Parent}, {"created", when(state.CreatedAt)},
		{"payments", fmt.Sprint(d.Count)}, {"complete", yesNo(d.Complete)},
	})
	return s.printTotals(totals.ByStatus)
}

// showRun shows all batches of a run together.
func (s *shared) showRun(ctx context.Context, reader payments.Reader, tenant, run string) error {
	var all batch.Totals
	for cursor := ""; ; {
		page, next, err := reader.Batches(ctx, payments.BatchListRequest{TenantID: tenant, Parent: run, Limit: payments.LimitDefault, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, state := range page {
			all.Add(document.Batch(state))
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if all.Batches == 0 {
		return payments.Errorf(payments.CodeNotFound, "the tenant has no batch and no run of batches under this key")
	}
	if s.json {
		return console.JSON(s.out, runDocument{Parent: run, Batches: all.Batches, Count: all.Payments, ByStatus: all.ByStatus, Complete: &all.Complete})
	}
	s.printLines([][2]string{
		{"run", run}, {"tenant", tenant}, {"batches", fmt.Sprint(all.Batches)}, {"payments", fmt.Sprint(all.Payments)}, {"complete", yesNo(all.Complete)},
	})
	return s.printTotals(all.ByStatus)
}

// linesIndent is where the texts of printLines begin.
const linesIndent = 16

// printLines prints what is there under its names, and an empty line.
func (s *shared) printLines(lines [][2]string) {
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(s.out, "%-15s %s\n", l[0], console.Wrapped(console.Safe(l[1]), s.lineWidth(s.out), linesIndent))
		}
	}
	fmt.Fprintln(s.out)
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
