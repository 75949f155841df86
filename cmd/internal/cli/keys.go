package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// keyDocument is an API key as --json prints it; Key is there only when it was just made.
type keyDocument struct {
	ID        string            `json:"id"`
	TenantID  string            `json:"tenant_id"`
	Key       string            `json:"key,omitempty"`
	Prefix    string            `json:"prefix"`
	Scopes    []payments.Scope  `json:"scopes"`
	CreatedAt schema.Timestamp  `json:"created_at"`
	ExpiresAt *schema.Timestamp `json:"expires_at"`
	RevokedAt *schema.Timestamp `json:"revoked_at"`
}

func documentOfKey(k payments.APIKey, secret string) keyDocument {
	return keyDocument{k.ID, k.TenantID, secret, k.Prefix, k.Scopes, schema.NewTimestamp(k.CreatedAt), schema.NullTimestamp(k.ExpiresAt), schema.NullTimestamp(k.RevokedAt)}
}

func keysCommand(s *shared) *cobra.Command {
	return Group("keys", "Create, list and revoke API keys", keysCreateCommand(s), keysListCommand(s), keysRevokeCommand(s))
}

// serviceScopes are what a service needs that asks for payments and reads them; whoever needs more says so.
var serviceScopes = []payments.Scope{payments.ScopePaymentsWrite, payments.ScopePaymentsRead}

// keysCreate is one call of keys create.
type keysCreate struct {
	*shared
	tenant, scopes, note string
	ttl                  time.Duration
}

func keysCreateCommand(s *shared) *cobra.Command {
	k := keysCreate{shared: s}
	c := &cobra.Command{
		Use: "create --tenant T", Short: "Create an API key; it is printed once and never again", Args: Arguments(0, 0),
		Long: "Create an API key; it is printed once and never again. It may make payments and read them, unless\n" +
			"--scopes says otherwise: batches (`oncepay batch run`, too) need batches:write and payments:read,\n" +
			"and refunds need refunds:write. Captures and cancels go with payments:write.\n\n" +
			"  oncepay keys create --tenant acme --scopes payments:write,payments:read,refunds:write",
		RunE: func(c *cobra.Command, _ []string) error {
			if k.tenant == "" {
				return &app.UsageError{Text: "--tenant: is required"}
			}
			if wrong := payments.CheckTenantID(k.tenant); wrong != "" {
				return &app.UsageError{Text: "--tenant: " + wrong}
			}
			scopes, err := readScopes(k.scopes)
			if err != nil {
				return err
			}
			if k.ttl < 0 {
				return &app.UsageError{Text: "--ttl: must not be negative"}
			}
			op, err := s.operation(c, "--note", k.note, false)
			if err != nil {
				return err
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error { return k.run(c.Context(), store.By(op), scopes) })
		},
	}
	bindActor(c)
	c.Flags().StringVar(&k.tenant, "tenant", "", "the tenant that the key speaks for")
	c.Flags().StringVar(&k.scopes, "scopes", scopeList(serviceScopes, ","), "what the key allows, comma separated: "+scopeList(payments.Scopes(), ", "))
	c.Flags().DurationVar(&k.ttl, "ttl", 0, "how long the key is good; 0: until it is revoked")
	c.Flags().StringVar(&k.note, "note", "", "why, in your own words, for the audit")
	return c
}

func (k *keysCreate) run(ctx context.Context, store postgres.Operator, scopes []payments.Scope) error {
	var expires time.Time
	if k.ttl > 0 {
		expires = time.Now().Add(k.ttl)
	}
	made, secret, err := store.CreateAPIKey(ctx, k.tenant, scopes, expires)
	if payments.ErrorCode(err) == payments.CodeNotFound {
		return payments.Errorf(payments.CodeNotFound, "--tenant: there is no such tenant: `oncepay tenants create %s` makes it", k.tenant)
	}
	if err != nil {
		return err
	}
	if k.json {
		return console.JSON(k.out, documentOfKey(made, secret))
	}
	fmt.Fprintf(k.err, "keep it: it is not shown again, and only its hash is stored; `oncepay keys revoke %s` revokes it\n", made.ID)
	fmt.Fprintln(k.out, secret)
	return nil
}

func readScopes(list string) (wanted []payments.Scope, err error) {
	for word := range strings.SplitSeq(list, ",") {
		scope := payments.Scope(strings.TrimSpace(word))
		if !slices.Contains(payments.Scopes(), scope) {
			return nil, &app.UsageError{Text: "--scopes: must be a list of " + scopeList(payments.Scopes(), ", ")}
		}
		wanted = append(wanted, scope)
	}
	return wanted, nil
}

func scopeList(scopes []payments.Scope, separator string) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, separator)
}

func keysListCommand(s *shared) *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use: "list", Short: "List API keys; never the keys themselves", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				if err := isTenant(c.Context(), store, tenant); err != nil {
					return err
				}
				list, err := store.APIKeys(c.Context(), tenant)
				if err != nil {
					return err
				}
				document := func(k payments.APIKey) keyDocument { return documentOfKey(k, "") }
				return printPage(s, list, "", document, columns[payments.APIKey]{
					[]console.Column{{Head: "ID"}, {Head: "TENANT"}, {Head: "KEY", Goes: 3}, {Head: "SCOPES", Goes: 2, Below: true}, {Head: "CREATED (UTC)", Goes: 1},
						{Head: "EXPIRES", Goes: 4}, {Head: "REVOKED"}},
					func(k payments.APIKey) []string {
						return []string{k.ID, k.TenantID, k.Prefix + "…", scopeList(k.Scopes, ","), when(k.CreatedAt), when(k.ExpiresAt), when(k.RevokedAt)}
					},
				})
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "only this tenant's")
	return c
}

func keysRevokeCommand(s *shared) *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key", Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			op, err := s.operation(c, "--note", note, false)
			if err != nil {
				return err
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				if err := store.By(op).RevokeAPIKey(c.Context(), args[0]); err != nil {
					return err
				}
				if s.json {
					return console.JSON(s.out, map[string]any{"id": args[0], "revoked": true})
				}
				fmt.Fprintf(s.out, "%s revoked\n", args[0])
				return nil
			})
		},
	}
	bindActor(c)
	c.Flags().StringVar(&note, "note", "", "why, in your own words, for the audit")
	return c
}
