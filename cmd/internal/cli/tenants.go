package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// tenantDocument is a tenant as --json prints it.
type tenantDocument struct {
	ID            string           `json:"id"`
	StripeAccount *string          `json:"stripe_account"`
	StripeKey     *string          `json:"stripe_key"`
	CreatedAt     schema.Timestamp `json:"created_at"`
}

func documentOfTenant(t postgres.Tenant) tenantDocument {
	return tenantDocument{t.ID, schema.Null(t.StripeAccount), schema.Null(t.StripeKeyRef), schema.NewTimestamp(t.CreatedAt)}
}

func tenantsCommand(s *shared) *cobra.Command {
	return Group("tenants", "Create and list tenants", &cobra.Command{
		Use: "create NAME", Short: "Create a tenant; its payments are accepted from then on", Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				t, err := store.CreateTenant(c.Context(), postgres.Tenant{ID: args[0]})
				if payments.ErrorCode(err) == payments.CodeInvalid {
					// Nothing is wrong with a name that is taken: whoever makes sure of a tenant goes on.
					if exists, _ := store.TenantExists(c.Context(), args[0]); exists {
						return NewExit(exitFailed, "oncepay: "+err.Error())
					}
				}
				if err != nil {
					return err
				}
				if s.json {
					return console.JSON(s.out, documentOfTenant(t))
				}
				fmt.Fprintf(s.out, "tenant %s created\n", t.ID)
				return nil
			})
		},
	}, &cobra.Command{
		Use: "list", Short: "List tenants", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				list, err := store.Tenants(c.Context())
				if err != nil {
					return err
				}
				if s.json {
					page := schema.List[tenantDocument]{Data: []tenantDocument{}}
					for _, t := range list {
						page.Data = append(page.Data, documentOfTenant(t))
					}
					return console.JSON(s.out, page)
				}
				rows := make([][]string, len(list))
				for i, t := range list {
					rows[i] = []string{t.ID, orDash(t.StripeAccount), when(t.CreatedAt)}
				}
				return s.printList([]string{"TENANT", "STRIPE ACCOUNT", "CREATED (UTC)"}, rows, "")
			})
		},
	})
}
