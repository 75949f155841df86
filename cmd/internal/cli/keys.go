package cli

import (
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

func keysCreateCommand(s *shared) *cobra.Command {
	var tenant, list string
	var ttl time.Duration
	c := &cobra.Command{
		Use: "create --tenant T", Short: "Create an API key; it is printed once and never again", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if tenant == "" {
				return &app.UsageError{Text: "--tenant: is required"}
			}
			if wrong := payments.CheckTenantID(tenant); wrong != "" {
				return &app.UsageError{Text: "--tenant: " + wrong}
			}
			wanted, err := readScopes(list)
			if err != nil {
				return err
			}
			var expires time.Time
			if ttl < 0 {
				return &app.UsageError{Text: "--ttl: must not be negative"}
			}
			if ttl > 0 {
				expires = time.Now().Add(ttl)
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				k, secret, err := store.CreateAPIKey(c.Context(), tenant, wanted, expires)
				if payments.ErrorCode(err) == payments.CodeNotFound {
					return payments.Errorf(payments.CodeNotFound, "--tenant: there is no such tenant: `oncepay tenants create %s` makes it", tenant)
				}
				if err != nil {
					return err
				}
				if s.json {
					return console.JSON(s.out, documentOfKey(k, secret))
				}
				fmt.Fprintf(s.err, "keep it: it is not shown again, and only its hash is stored; `oncepay keys revoke %s` revokes it\n", k.ID)
				fmt.Fprintln(s.out, secret)
				return nil
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant that the key speaks for")
	c.Flags().StringVar(&list, "scopes", scopeList(payments.Scopes(), ","), "what the key allows, comma separated")
	c.Flags().DurationVar(&ttl, "ttl", 0, "how long the key is good; 0: until it is revoked")
	return c
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
					[]string{"ID", "TENANT", "KEY", "SCOPES", "CREATED (UTC)", "EXPIRES", "REVOKED"},
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
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key", Args: Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				if err := store.RevokeAPIKey(c.Context(), args[0]); err != nil {
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
}
