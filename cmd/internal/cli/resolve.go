package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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

  succeeded      it was charged; --payment-intent says by which PaymentIntent, where Stripe has not
                 named one, and no other payment may have that one. Recorded as captured is what
                 Stripe has shown to be taken of it, as with stripe_disagrees: amount, else all
                 of the amount; or --amount-captured, which is no less than Stripe has shown
  failed         it was not charged, and will not be
  canceled       it was not charged, and is given up
  unknown        ask Stripe's records again
  waiting        send it; only when nothing of it can be at Stripe

What may have been charged is failed or canceled only once it is needs_review: then Stripe's
records have been read to their end, and a person has to say what they mean. What could charge
twice or lose a charge is refused, with the reason.

A refund (ref_…) that is needs_review is resolved as succeeded, when the money was given back at
Stripe, and counts on its payment then, with its amount or --amount-refunded; or as failed,
canceled or unknown. A capture or a cancel (op_…) as unknown, which reads what became of its
PaymentIntent; or as failed or canceled.`

// resolve is one call of payments resolve.
type resolve struct {
	*shared
	decision       payments.Decision
	typed          string // the id
	reason, tenant string
	yes            bool
	op             payments.Operation
}

func paymentsResolveCommand(s *shared) *cobra.Command {
	r := resolve{shared: s}
	var as string
	c := &cobra.Command{
		Use: "resolve ID --as STATUS [--payment-intent PI] --reason R", Short: "Record a person's decision about a payment", Args: Arguments(1, 1), Long: resolveHelp,
		RunE: func(c *cobra.Command, args []string) (err error) {
			id, err := payments.ParseID(args[0])
			if err != nil {
				return &app.UsageError{Text: "the id of a payment is needed: pay_…; or of a refund, capture or cancel: ref_…, op_…"}
			}
			r.typed, r.decision.As = args[0], payments.Status(as)
			if wrong := payments.CheckResolution(r.decision.As); wrong != "" {
				return &app.UsageError{Text: "--as: " + wrong}
			}
			if wrong := payments.CheckPaymentIntent(r.decision.PaymentIntent); c.Flags().Changed("payment-intent") && wrong != "" {
				return &app.UsageError{Text: "--payment-intent: " + wrong}
			}
			if c.Flags().Changed("amount-captured") && r.decision.AmountCaptured < 1 { // 0 stands for none
				return &app.UsageError{Text: "--amount-captured: must be at least 1, in minor units; what captured nothing has not succeeded"}
			}
			if c.Flags().Changed("amount-refunded") && r.decision.AmountRefunded < 1 {
				return &app.UsageError{Text: "--amount-refunded: must be at least 1, in minor units; what gave nothing back has not succeeded"}
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
	c.Flags().StringVar(&as, "as", "", "what it is from now on (required)")
	c.Flags().StringVar(&r.decision.PaymentIntent, "payment-intent", "", "what was charged at Stripe, pi_…; with --as succeeded, required while the payment shows none")
	c.Flags().Int64Var(&r.decision.AmountCaptured, "amount-captured", 0, "how much was captured, in minor units as Stripe counts them; with --as succeeded; default what Stripe has shown to be taken, else all of it")
	c.Flags().Int64Var(&r.decision.AmountRefunded, "amount-refunded", 0, "how much a refund gave back, in minor units; with --as succeeded, required where Stripe has another amount; default all of it")
	c.Flags().StringVar(&r.reason, "reason", "", "why: what you saw at Stripe (required)")
	c.Flags().StringVar(&r.tenant, "tenant", "", "the tenant; by default the one that has it")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask; required where there is no terminal")
	return c
}

func (r *resolve) run(ctx context.Context, store operators, id payments.ID, in io.Reader) error {
	p, err := store.FindAnywhere(ctx, id)
	no := "there is no"
	if r.tenant != "" {
		no = "the tenant has no"
		p, err = store.Find(ctx, r.tenant, id)
	}
	if p, err = noBatchIn(p, named(err, r.typed, no)); err != nil {
		return err
	}
	// What is wrong for any worker and at any time is said before anything is asked; the store judges the rest, by its own time.
	seen := p
	seen.Owned, seen.ExpiresAt = false, time.Time{}
	becomes, err := payments.Resolve(seen, r.decision, r.op, time.Now())
	if err != nil {
		return failure(namingFlags(err))
	}
	if !r.yes {
		fmt.Fprintf(r.err, "%s of tenant %s, %s, is %s (%s)\n%s\n", p.ID.Format(p.Kind), p.TenantID, money(map[string]int64{p.Currency: p.Amount}, 0), p.ShownStatus(),
			orDash(p.Reason), comesTo(p, becomes, r.decision))
		if err := r.warn(ctx, store, p); err != nil {
			return err
		}
	}
	if err := r.confirm(ctx, in, r.yes, "record it as "+string(r.decision.As)+"?", "nothing was changed"); err != nil {
		return err
	}
	done, err := store.Resolve(ctx, p.TenantID, id, r.decision, r.op)
	if err != nil {
		return failure(namingFlags(err))
	}
	switch {
	case r.json && p.Kind.FollowUp():
		f, err := store.FindFollowUp(ctx, p.TenantID, id)
		if err != nil {
			return err
		}
		return console.JSON(r.out, document.FollowUp(f))
	case r.json:
		return console.JSON(r.out, document.Payment(done.Payment))
	}
	fmt.Fprintf(r.out, "%s is %s; it was %s\n", p.ID.Format(p.Kind), done.Payment.Status, p.ShownStatus())
	return nil
}

// warn tells whoever decides what nobody else has done before.
func (r *resolve) warn(ctx context.Context, store operators, p payments.Payment) error {
	switch {
	case unlooked(p):
		where, err := whereToLook(ctx, store, p)
		if err != nil {
			return err
		}
		fmt.Fprintln(r.err, console.Safe(where))
	case strings.HasPrefix(p.Reason, payments.ReasonTaken):
		fmt.Fprintln(r.err, "its PaymentIntent has been given to another payment by a person, which stays as it is: `oncepay audit --action 'payments resolve'` says which")
	}
	return nil
}

// comesTo says what a decision does, before it is made.
func comesTo(p payments.Payment, t payments.Transition, d payments.Decision) string {
	if p.Kind.FollowUp() && t.Status != payments.StatusUnknown {
		return followUpComesTo(p, d)
	}
	switch t.Status {
	case payments.StatusSucceeded:
		captured := money(map[string]int64{p.Currency: t.Object.AmountReceived}, 0)
		if t.Object.AmountReceived != p.Amount {
			captured += " of " + money(map[string]int64{p.Currency: p.Amount}, 0)
		}
		return "for good, as paid: " + captured + " captured by " + t.Object.ID + "; Stripe is not asked, your word stands"
	case payments.StatusWaiting:
		return "it is sent to Stripe again, which may charge it"
	case payments.StatusUnknown:
		return "nothing is sent: Stripe's records are read again and decide"
	}
	return "for good, as not charged: nothing is ever sent for it; Stripe is not asked, your word stands"
}

// namingFlags is an error about a member of a decision as one about its flag.
func namingFlags(err error) error {
	var e *payments.Error
	if !errors.As(err, &e) || e.Field == "" {
		return err
	}
	named := *e
	named.Field = "--" + strings.ReplaceAll(e.Field, "_", "-")
	return &named
}
