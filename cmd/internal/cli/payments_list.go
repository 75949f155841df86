package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
)

// listedKinds are what a list for operators shows: all that can wait for one.
var listedKinds = []payments.Kind{payments.KindCharge, payments.KindCapture, payments.KindCancel, payments.KindRefund}

// paymentsList is one call of payments list.
type paymentsList struct {
	*shared
	payments.ListRequest
	status, kind, batch string
}

func paymentsListCommand(s *shared) *cobra.Command {
	l := paymentsList{shared: s}
	c := &cobra.Command{
		Use: "list", Short: "List payments, captures, cancels and refunds, newest first", Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := l.check(c); err != nil {
				return err
			}
			return s.withStore(c.Context(), func(store *postgres.Store) error { return l.run(c.Context(), store) })
		},
	}
	c.Flags().StringVar(&l.TenantID, "tenant", "", "only this tenant's")
	c.Flags().StringVar(&l.status, "status", "", "only those in this status")
	c.Flags().StringVar(&l.kind, "kind", "", "only those of this kind: charge, capture, cancel or refund; default all")
	c.Flags().StringVar(&l.Customer, "customer", "", "only this customer's, which are charges")
	c.Flags().StringVar(&l.IdempotencyKey, "key", "", "only the one of this key")
	c.Flags().StringVar(&l.batch, "batch", "", "only those of this batch, in its order: its id (bat_…), or with --tenant its key")
	bindPage(c, &l.Limit, &l.Cursor, "")
	return c
}

// check reads the flags.
func (l *paymentsList) check(c *cobra.Command) error {
	l.Status, l.Kinds = payments.Status(l.status), listedKinds
	if l.status != "" && !l.Status.Stored() && l.Status != payments.StatusProcessing {
		return &app.UsageError{Text: "--status: must be one of " + statusList()}
	}
	if c.Flags().Changed("kind") {
		if l.Kinds = []payments.Kind{payments.Kind(l.kind)}; !slices.Contains(listedKinds, l.Kinds[0]) {
			return &app.UsageError{Text: "--kind: must be charge, capture, cancel or refund; batches are shown by `oncepay batch show`"}
		}
	}
	if err := checkLimit(l.Limit); err != nil {
		return err
	}
	return checkBatch(c, l.batch, l.TenantID)
}

func (l *paymentsList) run(ctx context.Context, store *postgres.Store) (err error) {
	if err := isTenant(ctx, store, l.TenantID); err != nil {
		return err
	}
	if l.batch != "" {
		if l.TenantID, l.Batch, err = findBatch(ctx, store, l.batch, l.TenantID); err != nil {
			return err
		}
	}
	found, next, err := store.List(ctx, l.ListRequest)
	if err != nil {
		return err
	}
	if len(found) == 0 && l.batch == "" {
		if err := l.namesAnother(ctx, store); err != nil {
			return err
		}
	}
	page, err := store.WithRefunds(ctx, found)
	if err != nil {
		return err
	}
	return printPage(l.shared, page, next, listedDocument, listColumns(page))
}

// namesAnotherOfAny is namesAnother for a key whose tenant is not said: of the first that has it.
func (l *paymentsList) namesAnotherOfAny(ctx context.Context, store *postgres.Store) error {
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if err := l.shownElsewhere(ctx, store, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// namesAnother is the error of a tenant's key that names something, and no list of this kind shows it: that nothing is there would be taken for leave to ask for
// it under another key.
func (l *paymentsList) namesAnother(ctx context.Context, store *postgres.Store) error {
	switch {
	case l.IdempotencyKey == "":
		return nil
	case l.TenantID == "":
		return l.namesAnotherOfAny(ctx, store)
	}
	return l.shownElsewhere(ctx, store, l.TenantID)
}

// shownElsewhere says where that is shown which the tenant's key names and no list of this kind shows; nil: it names nothing else.
func (l *paymentsList) shownElsewhere(ctx context.Context, store *postgres.Store, tenant string) error {
	p, err := store.FindByKey(ctx, tenant, l.IdempotencyKey)
	switch {
	case payments.ErrorCode(err) == payments.CodeNotFound:
		page, _, err := store.Batches(ctx, payments.BatchListRequest{TenantID: tenant, Parent: l.IdempotencyKey, Limit: 1})
		if err == nil && len(page) > 0 {
			err = payments.Errorf(payments.CodeNotFound, "--key: names a run of batches, and no payment: `oncepay batch show %s --tenant %s` shows it", l.IdempotencyKey, tenant)
		}
		return err
	case err != nil:
		return err
	case p.Kind == payments.KindBatch:
		return payments.Errorf(payments.CodeNotFound, "--key: names a batch, and no payment: `oncepay batch show %s` shows it", p.ID.Format(p.Kind))
	case !l.Lists(p.Kind):
		return payments.Errorf(payments.CodeNotFound, "--key: names a %s: `oncepay payments show %s` shows it", p.Kind, p.ID.Format(p.Kind))
	}
	return nil
}

// listedDocument is one of a list as it is alone.
func listedDocument(f payments.FollowUp) any {
	if f.Kind.FollowUp() {
		return document.FollowUp(f)
	}
	return document.Payment(f.Payment)
}

// listColumns are those of a page; where something is no charge, they say what it is. A cancel has no amount of its own.
func listColumns(page []payments.FollowUp) columns[payments.FollowUp] {
	show := columns[payments.FollowUp]{
		[]console.Column{{Head: "ID"}, {Head: "TENANT", Goes: 4}, {Head: "KEY", Least: 8, Ends: true}, {Head: "STATUS"},
			{Head: "REASON", Goes: 3, Below: true}, {Head: "AMOUNT"}, {Head: "CREATED (UTC)", Goes: 1}},
		func(f payments.FollowUp) []string {
			amount := payments.FormatAmount(f.Amount, f.Currency)
			if f.Kind == payments.KindCancel {
				amount = "-"
			}
			return []string{f.ID.Format(f.Kind), f.TenantID, f.IdempotencyKey, string(f.ShownStatus()), orDash(f.Payment.Reason), amount, when(f.CreatedAt)}
		},
	}
	if !slices.ContainsFunc(page, func(f payments.FollowUp) bool { return f.Kind.FollowUp() }) {
		return show
	}
	row := show.row
	show.heads = slices.Insert(show.heads, 1, console.Column{Head: "OPERATION", Goes: 2, Below: true})
	show.row = func(f payments.FollowUp) []string {
		kind := "-"
		if f.Kind.FollowUp() {
			kind = string(f.Kind)
		}
		return slices.Insert(row(f), 1, kind)
	}
	return show
}

// statusList names every status that can be asked for.
func statusList() string {
	names := []string{string(payments.StatusProcessing)}
	for _, status := range payments.Statuses() {
		names = append(names, string(status))
	}
	return strings.Join(names, ", ")
}
