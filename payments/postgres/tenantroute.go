package postgres

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// TenantRoute reads the tenant's row as it stands now: which way its payments go to Stripe, and the account that was pinned for it. false: there
// is no such tenant. CodeUnavailable.
func (s *Store) TenantRoute(ctx context.Context, tenantID string) (Tenant, bool, error) {
	if payments.CheckTenantID(tenantID) != "" {
		return Tenant{}, false, nil
	}
	rows, err := s.pool.Query(ctx, query("tenant"), tenantID)
	if err != nil {
		return Tenant{}, false, translate(err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, scanTenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return Tenant{}, false, nil
	}
	return t, err == nil, translate(err)
}

// PinTenantAccount stores, for ever, the account that Stripe named for the tenant's own way, if none is stored; the same again changes nothing.
// CodeInvalid: another account or mode stands there already, the tenant has no way of its own, or Stripe named another account than the
// connected one that the tenant was given; CodeNotFound: no such tenant; CodeUnavailable. After an error nothing may be sent for the tenant
// to that account.
func (s *Store) PinTenantAccount(ctx context.Context, tenantID string, a payments.Account) error {
	if problem := checkStripeAccount(a.ID); problem != "" || a.ID == "" {
		return payments.Errorf(payments.CodeInvalid, "tenant %q: what Stripe named is no account id of the form acct_…: look at what answers under the Stripe URL", tenantID)
	}
	err := s.write(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, query("pin_account"), tenantID, a.ID, a.Livemode)
		return err
	})
	switch {
	case violates(err, "tenants_account_has_a_way"):
		return payments.Errorf(payments.CodeInvalid, "tenant %q has no account or key of its own: its payments go to the installation's account", tenantID)
	case violates(err, "tenants_account_is_the_connected_one"):
		return payments.Errorf(payments.CodeInvalid,
			"tenant %q was given another connected account than Stripe answers for, which is %s: nothing is sent for it; create a tenant with that account", tenantID, a.ID)
	case err != nil:
		return err
	}
	t, there, err := s.TenantRoute(ctx, tenantID)
	switch {
	case err != nil:
		return err
	case !there:
		return payments.Errorf(payments.CodeNotFound, "no tenant %q: create it first", tenantID)
	case t.Account != a:
		return &payments.Error{Code: payments.CodeInvalid, Field: "stripe_key", Message: fmt.Sprintf(
			"of tenant %q belongs to %s now, but the tenant's payments were begun on %s, and what is in doubt would be charged again elsewhere: "+
				"put a key of that account back, or create another tenant", tenantID, mode(a), mode(t.Account))}
	}
	return nil
}

// mode is the account as people tell accounts apart.
func mode(a payments.Account) string {
	if a.Livemode {
		return a.ID + " (live mode)"
	}
	return a.ID + " (test mode)"
}

var (
	accountForm = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,64}$`)
	secretForm  = regexp.MustCompile(`(?i)\b(sk|rk|pk|whsec)_`)
)

// checkStripeAccount says what is wrong with the id of a connected account, without repeating it: somebody may have given a key. "" is none.
func checkStripeAccount(id string) string {
	if id == "" || accountForm.MatchString(id) {
		return ""
	}
	return "must be the id of a connected account, acct_ and letters or digits"
}

// checkStripeKeyRef says what is wrong with the place of a key, without repeating it. "" is none.
func checkStripeKeyRef(ref string) string {
	if ref == "" {
		return ""
	}
	if secretForm.MatchString(ref) {
		return "looks like a key, and keys are not kept in the database: put it into a file that only the workers can read and give file:/its/absolute/path"
	}
	file, isFile := strings.CutPrefix(ref, "file:")
	if !isFile || !path.IsAbs(file) || path.Clean(file) != file || file == "/" || !storable(ref) {
		return "must say where the key is found, as file:/absolute/path"
	}
	return ""
}
