package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Tenant is somebody who may have payments. At most one of StripeAccount and StripeKeyRef is set; with neither the installation's own key and
// account are used.
type Tenant struct {
	ID            string
	StripeAccount string // connected account, acct_…
	StripeKeyRef  string // where the tenant's own key is found, file:/absolute/path; never the key
	// Account is what Stripe itself named for the tenant's own way; zero until that was read, and for tenants without a way of their own.
	Account   payments.Account
	CreatedAt time.Time
}

// OwnWay reports whether the tenant's payments go to Stripe otherwise than with the installation's own key and account.
func (t Tenant) OwnWay() bool { return t.StripeAccount != "" || t.StripeKeyRef != "" }

// CreateTenant stores a new tenant. CodeInvalid: the id has not the form of one or holds a card number, it exists already, both ways to Stripe are given, or
// the one that is given has not the form of one. Account is left out: PinTenantAccount sets it. An operator's is made through By.
func (s *Store) CreateTenant(ctx context.Context, t Tenant) (Tenant, error) {
	return s.createTenant(ctx, t, nil)
}

func (s *Store) createTenant(ctx context.Context, t Tenant, line *payments.AuditEntry) (Tenant, error) {
	if problem := payments.CheckTenantID(t.ID); problem != "" {
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "tenant_id", Message: problem}
	}
	if payments.ContainsCardNumberString(t.ID) {
		// Such a subject is refused anyway, and the number must not stand in a table.
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "tenant_id", Message: "contains what looks like a card number: choose another name"}
	}
	if problem := checkStripeAccount(t.StripeAccount); problem != "" {
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "stripe_account", Message: problem}
	}
	if problem := checkStripeKeyRef(t.StripeKeyRef); problem != "" {
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "stripe_key", Message: problem}
	}
	t.Account = payments.Account{}
	err := s.withLine(ctx, line, func(b *pgx.Batch) {
		b.Queue(query("create_tenant"), t.ID, t.StripeAccount, t.StripeKeyRef, s.now()).QueryRow(func(row pgx.Row) error { return row.Scan(&t.CreatedAt) })
	})
	switch {
	case violates(err, "tenants_pkey"):
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "tenant_id", Message: "exists already: choose another name, or use the tenant as it is"}
	case violates(err, "tenants_one_way_to_stripe"):
		return Tenant{}, &payments.Error{Code: payments.CodeInvalid, Field: "stripe_account", Message: "give either a connected account or a key of its own, not both"}
	case err != nil:
		return Tenant{}, translate(err)
	}
	s.tenants.add(t.ID)
	t.CreatedAt = t.CreatedAt.UTC()
	return t, nil
}

// Tenants lists all tenants by id.
func (s *Store) Tenants(ctx context.Context) ([]Tenant, error) {
	rows, err := s.pool.Query(ctx, query("list_tenants"))
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanTenant)
	return list, translate(err)
}

// StripeAccounts lists the Stripe accounts that payments here go to, as far as the database knows: the installation's own is known to it once a payment
// was sent.
func (s *Store) StripeAccounts(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, query("stripe_accounts"))
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return list, translate(err)
}

// scanTenant reads {tenant}.
func scanTenant(r pgx.CollectableRow) (Tenant, error) {
	var t Tenant
	err := r.Scan(&t.ID, &t.StripeAccount, &t.StripeKeyRef, &t.Account.ID, &t.Account.Livemode, &t.CreatedAt)
	t.CreatedAt = t.CreatedAt.UTC()
	return t, err
}

// TenantExists reports whether there is a tenant of that id.
func (s *Store) TenantExists(ctx context.Context, id string) (bool, error) {
	if payments.CheckTenantID(id) != "" {
		return false, nil
	}
	missing, err := s.missingTenants(ctx, []string{id})
	return !missing[id], translate(err)
}
