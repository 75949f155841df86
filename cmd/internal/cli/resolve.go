package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

// resolveHelp is wrapped to helpWidth.
const resolveHelp = `Record a person's decision about a payment that Stripe's records do not settle. Look at Stripe
first: what is recorded here is what everybody is told. Nothing is refunded or cancelled there
by it, and only ` + "`waiting`" + ` sends anything.

  succeeded      it was charged
  failed         it was not charged, and will not be
  canceled       it was not charged, and is given up
  unknown        ask Stripe's records again
  waiting        send it; only when nothing of it can be at Stripe

What may have been charged is failed or canceled only once it is needs_review: then Stripe's
records have been read to their end, and a person has to say what they mean. What could charge
twice or lose a charge is refused, with the reason.`

// resolve is one call of payments resolve.
type resolve struct {
	*shared
	as, reason, tenant string
	yes                bool
	op                 payments.Operation
}

func paymentsResolveCommand(s *shared) *cobra.Command {
	r := resolve{shared: s}
	c := &cobra.Command{
		Use: "resolve ID --as STATUS --reason R", Short: "Record a person's decision about a payment", Args: Arguments(1, 1), Long: resolveHelp,
		RunE: func(c *cobra.Command, args []string) (err error) {
			id, err := payments.ParseID(args[0])
			if err != nil {
				return &app.UsageError{Text: "the id of a payment is needed: pay_…"}
			}
			if wrong := payments.CheckResolution(payments.Status(r.as)); wrong != "" {
				return &app.UsageError{Text: "--as: " + wrong}
			}
			if c.Flags().Changed("tenant") && payments.CheckTenantID(r.tenant) != "" {
				return &app.UsageError{Text: "--tenant: " + payments.CheckTenantID(r.tenant)}
			}
			if r.op, err = s.operation(c, "--reason", r.reason, true); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error { return r.run(c.Context(), store, id, c.InOrStdin()) })
		},
	}
	bindActor(c)
	c.Flags().StringVar(&r.as, "as", "", "what it is from now on (required)")
	c.Flags().StringVar(&r.reason, "reason", "", "why: what you saw at Stripe (required)")
	c.Flags().StringVar(&r.tenant, "tenant", "", "the tenant; by default the one that has it")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask; nobody is asked where there is no terminal")
	return c
}

func (r *resolve) run(ctx context.Context, store operators, id payments.ID, in io.Reader) error {
	p, err := store.FindAnywhere(ctx, id)
	if r.tenant != "" {
		p, err = store.Find(ctx, r.tenant, id)
	}
	if err != nil {
		return err
	}
	if !r.yes && r.asks(in) {
		fmt.Fprintf(r.err, "%s of tenant %s, %s, is %s (%s)\n", p.ID.Format(p.Kind), p.TenantID, money(map[string]int64{p.Currency: p.Amount}, 0), p.ShownStatus(), orDash(p.Reason))
		if err := r.confirm(ctx, in, false, "record it as "+r.as+"?", "nothing was changed"); err != nil {
			return err
		}
	}
	done, err := store.Resolve(ctx, p.TenantID, id, payments.Status(r.as), r.op)
	if err != nil {
		return failure(err)
	}
	if r.json {
		return console.JSON(r.out, document.Payment(done.Payment))
	}
	fmt.Fprintf(r.out, "%s is %s; it was %s\n", p.ID.Format(p.Kind), done.Payment.Status, p.ShownStatus())
	return nil
}
