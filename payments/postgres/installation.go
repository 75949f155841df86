package postgres

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/payments"
)

// PinNamespace binds the database to the store's namespace, for ever, if it is bound to none. Whoever sends to Stripe must call it first: under
// another namespace a payment in doubt is looked for in vain and sent under a new key, which is a second charge. CodeInvalid: the database is
// another namespace's; CodeUnavailable.
func (s *Store) PinNamespace(ctx context.Context) error {
	var pinned string
	err := s.write(ctx, func(ctx context.Context) error {
		if _, err := s.pool.Exec(ctx, query("pin_namespace"), s.opts.Namespace); err != nil {
			return err
		}
		// A statement of its own sees what somebody else has pinned meanwhile.
		return s.pool.QueryRow(ctx, query("namespace")).Scan(&pinned)
	})
	if err == nil && pinned != s.opts.Namespace {
		return &payments.Error{Code: payments.CodeInvalid, Field: "ONCEPAY_NAMESPACE", Message: fmt.Sprintf(
			"is %q, but this database was begun under %q, and payments in doubt would be charged again under another name: set it to that, or use another database",
			s.opts.Namespace, pinned)}
	}
	return err
}
