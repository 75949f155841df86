package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

func paymentsCommand(s *shared) *cobra.Command {
	return Group("payments", "Find out what became of payments, and decide where nobody else can", paymentsShowCommand(s), paymentsListCommand(s),
		paymentsResolveCommand(s))
}

func paymentsShowCommand(s *shared) *cobra.Command {
	var tenant, key string
	c := &cobra.Command{
		Use: "show ID | --tenant T --key K", Short: "Show one payment (pay_…), refund (ref_…), capture or cancel (op_…) with its timeline", Args: Arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (key != "") {
				return &app.UsageError{Text: "give either an id (pay_…, ref_…, op_…), or --tenant and --key"}
			}
			if key != "" && tenant == "" {
				return &app.UsageError{Text: "--tenant: is required with --key"}
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error {
				p, err := findPayment(c.Context(), store, args, tenant, key)
				if err != nil {
					return err
				}
				return s.showPayment(c.Context(), store, p)
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	c.Flags().StringVar(&key, "key", "", "the idempotency key")
	return c
}

func findPayment(ctx context.Context, store *postgres.Store, args []string, tenant, key string) (payments.Payment, error) {
	if key != "" {
		p, err := store.FindByKey(ctx, tenant, key)
		if payments.ErrorCode(err) == payments.CodeNotFound {
			err = payments.Errorf(payments.CodeNotFound, "the tenant has no payment under this key")
		}
		return noBatchIn(p, err)
	}
	id, err := payments.ParseID(args[0])
	if err != nil {
		return payments.Payment{}, err
	}
	if tenant != "" {
		p, err := store.Find(ctx, tenant, id)
		return noBatchIn(p, named(err, args[0], "the tenant has no"))
	}
	p, err := store.FindAnywhere(ctx, id)
	return noBatchIn(p, named(err, args[0], "there is no"))
}

// named is the error of a look-up, which says what is not there by the id that was typed: a refund's is not a payment's.
func named(err error, typed, no string) error {
	if payments.ErrorCode(err) != payments.CodeNotFound {
		return err
	}
	prefix, _, _ := strings.Cut(typed, "_")
	return payments.Errorf(payments.CodeNotFound, no+" %s %s", map[string]string{"pay": "payment", "ref": "refund", "op": "capture or cancel", "bat": "batch"}[prefix], typed)
}

// noBatchIn lets a payment or an operation through, and says where a batch is shown, which has neither an amount nor an outcome of its own.
func noBatchIn(p payments.Payment, err error) (payments.Payment, error) {
	if err == nil && p.Kind == payments.KindBatch {
		id := p.ID.Format(p.Kind)
		return p, payments.Errorf(payments.CodeNotFound, "%s is a batch: `oncepay batch show %s` shows it, `oncepay payments list --batch %s` its payments", id, id, id)
	}
	return p, err
}

// checkBatch checks the --batch of a list: a key names a batch of one tenant only.
func checkBatch(c *cobra.Command, batch, tenant string) error {
	_, byID := batchID(batch)
	switch {
	case !c.Flags().Changed("batch"), byID:
		return nil
	case batch == "":
		return &app.UsageError{Text: "--batch: is empty: give a batch's id (bat_…) or its key"}
	case tenant == "":
		return &app.UsageError{Text: "--tenant: is required where --batch is a key and not an id (bat_…)"}
	}
	return nil
}

func batchID(text string) (payments.ID, bool) {
	id, err := payments.ParseID(text)
	return id, err == nil && strings.HasPrefix(text, "bat_")
}

// findBatch says whose a batch is, and its id. A client's key may look like an id: that is found where the tenant is given.
func findBatch(ctx context.Context, store *postgres.Store, batch, tenant string) (string, payments.ID, error) {
	id, byID := batchID(batch)
	if tenant != "" {
		if byID {
			if _, err := store.Batch(ctx, tenant, id); payments.ErrorCode(err) != payments.CodeNotFound {
				return tenant, id, err
			}
		}
		id = payments.NewID(tenant, batch)
		_, err := store.Batch(ctx, tenant, id)
		if payments.ErrorCode(err) == payments.CodeNotFound {
			err = noBatch(ctx, store, tenant, batch)
		}
		return tenant, id, err
	}
	p, err := store.FindAnywhere(ctx, id)
	if payments.ErrorCode(err) == payments.CodeNotFound || err == nil && p.Kind != payments.KindBatch {
		return "", id, payments.Errorf(payments.CodeNotFound, "there is no batch with this id")
	}
	return p.TenantID, id, err
}

// noBatch is the error of a key that names no batch. The key of a run names several: they are listed.
func noBatch(ctx context.Context, store *postgres.Store, tenant, key string) error {
	page, next, err := store.Batches(ctx, payments.BatchListRequest{TenantID: tenant, Parent: key, Limit: batchesNamed})
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return payments.Errorf(payments.CodeNotFound, "--batch: the tenant has no batch and no run of batches under this key")
	}
	names := make([]string, len(page))
	for i, b := range page {
		names[i] = b.IdempotencyKey
	}
	if next != "" {
		names = append(names, "…")
	}
	return payments.Errorf(payments.CodeNotFound, "--batch: this is the key of a run, not of a batch; give one of its batches: %s. `oncepay batch show %s --tenant %s` has the totals of all",
		strings.Join(names, ", "), key, tenant)
}

// batchesNamed is how many batches of a run are named.
const batchesNamed = 5
