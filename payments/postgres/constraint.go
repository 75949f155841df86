package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/payments"
)

// constraintCodes says what it means when a constraint refuses a row. A constraint that is not listed is one that only a bug of ours can
// break: CodeInternal.
var constraintCodes = map[string]payments.Code{
	"payments_amount":           payments.CodeInvalid,
	"payments_kind":             payments.CodeInvalid,
	"payments_lane":             payments.CodeInvalid,
	"tenants_pkey":              payments.CodeInvalid,
	"tenants_id_form":           payments.CodeInvalid,
	"tenants_one_way_to_stripe": payments.CodeInvalid,

	"tenants_account_has_a_way":            payments.CodeInvalid,
	"tenants_account_is_the_connected_one": payments.CodeInvalid,

	"api_keys_tenant_id_fkey": payments.CodeNotFound,
}

// constraintCode returns the code of a refused constraint, or of a value that SQL cannot take.
func constraintCode(err error) (payments.Code, bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return "", false
	}
	if code, ok := constraintCodes[pg.ConstraintName]; ok {
		return code, true
	}
	if class(err) == "22" {
		return payments.CodeInvalid, true
	}
	return payments.CodeInternal, contentFault(err)
}

// violates reports whether err is the refusal of the named constraint.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}
