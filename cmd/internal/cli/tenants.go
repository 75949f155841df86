package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/schema"
)

// tenantDocument is a tenant as --json prints it. StripeAccount and StripeKey are its way to Stripe as it was given, both null for the
// installation's own; Account and Livemode are what Stripe named for a way of its own, null until a worker has asked.
type tenantDocument struct {
	ID            string           `json:"id"`
	StripeAccount *string          `json:"stripe_account"`
	StripeKey     *string          `json:"stripe_key"`
	Account       *string          `json:"account"`
	Livemode      *bool            `json:"livemode"`
	CreatedAt     schema.Timestamp `json:"created_at"`
}

func documentOfTenant(t postgres.Tenant) tenantDocument {
	d := tenantDocument{
		ID: t.ID, StripeAccount: schema.Null(t.StripeAccount), StripeKey: schema.Null(t.StripeKeyRef), Account: schema.Null(t.Account.ID),
		CreatedAt: schema.NewTimestamp(t.CreatedAt),
	}
	if t.Account.ID != "" {
		d.Livemode = &t.Account.Livemode
	}
	return d
}

func tenantsCommand(s *shared) *cobra.Command {
	return Group("tenants", "Create and list tenants", tenantsCreateCommand(s), tenantsListCommand(s))
}

// The flags of a tenant's own way to Stripe. They stand before the settings of the same names, which this command does not need.
const (
	accountFlag = "stripe-account"
	keyFlag     = "stripe-key"
)

func tenantsCreateCommand(s *shared) *cobra.Command {
	var t postgres.Tenant
	var note string
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a tenant; its payments are accepted from then on", Args: Arguments(1, 1),
		Long: "Create a tenant; its payments are accepted from then on. They go to the installation's\n" +
			"Stripe account, unless the tenant is given an account of its own, for ever: one that is connected to\n" +
			"the installation's, or one with a key of its own.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkWay(c, t); err != nil {
				return err
			}
			op, err := s.operation(c, "--note", note, false)
			if err != nil {
				return err
			}
			t.ID = args[0]
			return s.withStore(c.Context(), func(store *postgres.Store) error { return s.createTenant(c.Context(), store, t, op) })
		},
	}
	bindActor(c)
	c.Flags().StringVar(&note, "note", "", "why, in your own words, for the audit")
	c.Flags().StringVar(&t.StripeAccount, accountFlag, "", "account acct_… that is connected to the installation's: its payments are made there, with ONCEPAY_STRIPE_KEY")
	c.Flags().StringVar(&t.StripeKeyRef, keyFlag, "",
		"where the workers find a key of its own, as file:/path (mode 0600). A second line of the file states the account acct_… of a key that may not read it")
	return c
}

var accountID = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,64}$`)

// checkWay checks a tenant's own way to Stripe, without repeating what was given: people paste keys. A flag that is there and empty is a
// variable that was not set, and must not lead to the installation's account.
func checkWay(c *cobra.Command, t postgres.Tenant) error {
	problem := func(flag, text string) error { return &app.UsageError{Text: "--" + flag + ": " + text} }
	account, key := c.Flags().Changed(accountFlag), c.Flags().Changed(keyFlag)
	if account && key {
		return problem(accountFlag, "goes without --"+keyFlag+": a connected account is reached with the installation's key; "+
			"the account of a key that may not read it is stated on the second line of its file")
	}
	if account && !accountID.MatchString(t.StripeAccount) {
		return problem(accountFlag, "must be the id of a connected account, acct_ and letters or digits")
	}
	if text := stripe.CheckKeyRef(t.StripeKeyRef); key && text != "" {
		return problem(keyFlag, text)
	}
	return nil
}

func (s *shared) createTenant(ctx context.Context, store *postgres.Store, wanted postgres.Tenant, op payments.Operation) error {
	t, err := store.By(op).CreateTenant(ctx, wanted)
	var refused *payments.Error
	if errors.As(err, &refused) && refused.Code == payments.CodeInvalid {
		// Nothing is wrong with a name that is taken: whoever makes sure of a tenant goes on, unless its payments would go elsewhere.
		if there, exists, _ := store.TenantRoute(ctx, wanted.ID); exists {
			return NewExit(exitFailed, "oncepay: "+taken(refused, there, wanted))
		}
		if flag := map[string]string{"stripe_account": accountFlag, "stripe_key": keyFlag}[refused.Field]; flag != "" {
			return &app.UsageError{Text: "--" + flag + ": " + refused.Message}
		}
	}
	if err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(t.StripeKeyRef, "file:"); ok {
		if _, err := os.Stat(path); err != nil {
			fmt.Fprintln(s.err, "its key is not to be seen on this machine; every worker must find it under that path, and the tenant's payments wait until it does")
		}
	}
	if s.json {
		return console.JSON(s.out, documentOfTenant(t))
	}
	if t.OwnWay() {
		fmt.Fprintf(s.out, "tenant %s created; its payments go %s\n", t.ID, way(t))
	} else {
		fmt.Fprintf(s.out, "tenant %s created\n", t.ID)
	}
	return nil
}

// taken says that the name is taken, and by whom if that is somebody else than was wanted.
func taken(refused *payments.Error, there, wanted postgres.Tenant) string {
	if there.StripeAccount == wanted.StripeAccount && there.StripeKeyRef == wanted.StripeKeyRef {
		return refused.Error()
	}
	return "tenant_id: exists already, and its payments go " + way(there) + ", which never changes: choose another name"
}

// way tells people which way a tenant's payments go. A reference is shown, never what it refers to.
func way(t postgres.Tenant) string {
	switch {
	case t.StripeAccount != "":
		return "to the connected account " + t.StripeAccount
	case t.StripeKeyRef != "":
		return "with the key in " + t.StripeKeyRef
	default:
		return "to the installation's account"
	}
}

func tenantsListCommand(s *shared) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tenants, and the Stripe accounts of those that have their own", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				list, err := store.Tenants(c.Context())
				if err != nil {
					return err
				}
				return printPage(s, list, "", documentOfTenant, columns[postgres.Tenant]{
					[]console.Column{{Head: "TENANT"}, {Head: "ITS PAYMENTS GO", Goes: 2, Below: true}, {Head: "STRIPE ACCOUNT"}, {Head: "CREATED (UTC)", Goes: 1}},
					func(t postgres.Tenant) []string {
						return []string{t.ID, way(t), accountOf(t), when(t.CreatedAt)}
					},
				})
			})
		},
	}
}

// accountOf shows the account of a tenant's own way.
func accountOf(t postgres.Tenant) string {
	switch {
	case !t.OwnWay():
		return "-"
	case t.Account.ID == "":
		return "not read yet"
	case t.Account.Livemode:
		return t.Account.ID + " (live)"
	default:
		return t.Account.ID + " (test)"
	}
}
