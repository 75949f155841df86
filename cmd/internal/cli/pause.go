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
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// scope are the flags that say whom a pause is for.
type scope struct{ tenant, account string }

func (p *scope) bind(c *cobra.Command) {
	c.Flags().StringVar(&p.tenant, "tenant", "", "only this tenant's")
	c.Flags().StringVar(&p.account, "account", "", "only those of this Stripe account (acct_…), whichever tenants they are")
}

// check refuses a flag that is there and empty: a variable that was not set, which must not mean everybody.
func (p *scope) check(c *cobra.Command) error {
	tenant, account := c.Flags().Changed("tenant"), c.Flags().Changed("account")
	switch {
	case tenant && account:
		return &app.UsageError{Text: "--account: goes without --tenant"}
	case tenant && payments.CheckTenantID(p.tenant) != "":
		return &app.UsageError{Text: "--tenant: " + payments.CheckTenantID(p.tenant)}
	case account && !accountID.MatchString(p.account):
		return &app.UsageError{Text: "--account: must be the id of a Stripe account, acct_…"}
	}
	return nil
}

// whom says whom a pause is for.
func whom(p payments.Pause) string {
	switch {
	case p.TenantID != "":
		return "tenant " + p.TenantID
	case p.AccountID != "":
		return "account " + p.AccountID
	}
	return "everything"
}

// flags are those that name a pause's scope again.
func (p scope) flags() string {
	switch {
	case p.tenant != "":
		return " --tenant " + p.tenant
	case p.account != "":
		return " --account " + p.account
	}
	return ""
}

// pauseHelp is wrapped to helpWidth.
const pauseHelp = `Send nothing to Stripe for a tenant, for a Stripe account, or with neither flag for everybody,
until somebody resumes or --until has come. Payments are accepted and stored all the same, and say
that they are paused; what is being sent at this moment ends as usual. Pausing again changes the
reason and the end. ` + "`oncepay doctor`" + ` lists what is paused.

  oncepay pause --tenant acme --reason "their checkout is looping" --until 2h
  oncepay pause --reason "Stripe asked us to stop"`

func pauseCommand(s *shared) *cobra.Command {
	var of scope
	var reason, until string
	var force bool
	c := &cobra.Command{
		Use: "pause [--tenant T | --account A] --reason R", Short: "Send nothing to Stripe for a while; acceptance goes on", Args: Arguments(0, 0), Long: pauseHelp,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := of.check(c); err != nil {
				return err
			}
			op, err := s.operation(c, "--reason", reason, true)
			if err != nil {
				return err
			}
			end, err := futureMoment(c, until)
			if err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error {
				if err := knownAccount(c.Context(), store, of.account, force); err != nil {
					return err
				}
				p, err := store.Pause(c.Context(), payments.Pause{TenantID: of.tenant, AccountID: of.account, Reason: op.Reason, Actor: op.Actor, Until: end})
				if err != nil {
					return err
				}
				if s.json {
					return console.JSON(s.out, document.Pause(p))
				}
				fmt.Fprintf(s.out, "paused %s, %s\n", whom(p), untilWhen(p))
				fmt.Fprintf(s.err, "payments are accepted and wait; `oncepay resume%s --reason R` lets them go on\n", of.flags())
				return nil
			})
		},
	}
	of.bind(c)
	bindActor(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for everybody who meets it (required)")
	c.Flags().BoolVar(&force, "force", false, "also a Stripe account that nothing here has gone to yet")
	c.Flags().StringVar(&until, "until", "", "RFC 3339 time, or how long from now (2h); without it until somebody resumes")
	return c
}

// knownAccount refuses an account that nothing here goes to: a pause of a mistyped one would hold nothing, and look as if it did.
func knownAccount(ctx context.Context, store operators, account string, force bool) error {
	if account == "" || force {
		return nil
	}
	known, err := store.StripeAccounts(ctx)
	if err != nil || slices.Contains(known, account) {
		return err
	}
	names := "none is known yet"
	if len(known) > 0 {
		names = "known are " + strings.Join(known, ", ")
	}
	return payments.Errorf(payments.CodeNotFound, "--account: nothing here goes to this account, so nothing was paused; %s. --force pauses it all the same, "+
		"before its first payment; `oncepay doctor` says which account the installation's own is (stripe_account)", names)
}

// untilWhen says when a pause ends.
func untilWhen(p payments.Pause) string {
	if p.Until.IsZero() {
		return "until it is resumed"
	}
	return "until " + when(p.Until) + " UTC"
}

// futureMoment reads when a pause ends.
func futureMoment(c *cobra.Command, text string) (time.Time, error) {
	if !c.Flags().Changed("until") {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(d), nil
	}
	at, err := schema.ParseTime(text)
	switch {
	case err != nil:
		return at, &app.UsageError{Text: "--until: must be an RFC 3339 time such as 2026-01-31T03:00:00Z, or how long from now such as 2h"}
	case !at.After(time.Now()):
		return at, &app.UsageError{Text: "--until: is past already"}
	}
	return at, nil
}

func resumeCommand(s *shared) *cobra.Command {
	var of scope
	var reason string
	c := &cobra.Command{
		Use: "resume [--tenant T | --account A] --reason R", Short: "End a pause", Args: Arguments(0, 0),
		Long: "End the pause of a tenant, of a Stripe account, or with neither flag the one of everything. Other\n" +
			"pauses are left as they are.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := of.check(c); err != nil {
				return err
			}
			op, err := s.operation(c, "--reason", reason, true)
			if err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error {
				scope := payments.Pause{TenantID: of.tenant, AccountID: of.account}
				before, err := store.Pauses(c.Context())
				if err != nil {
					return err
				}
				ended, err := store.Resume(c.Context(), scope, op)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(before, func(p payments.Pause) bool { return p.TenantID == scope.TenantID && p.AccountID == scope.AccountID })
				if !ended || i < 0 {
					return payments.Errorf(payments.CodeNotFound, "there is no pause of %s%s", whom(scope), stillPaused(before))
				}
				p, rest := before[i], slices.Delete(slices.Clone(before), i, i+1)
				if s.json {
					return console.JSON(s.out, document.Pause(p))
				}
				fmt.Fprintf(s.out, "resumed %s, paused since %s UTC by %s: %s\n", whom(p), when(p.Since), console.Safe(p.Actor), console.Safe(p.Reason))
				if len(rest) > 0 {
					fmt.Fprintln(s.err, errorLine(strings.TrimPrefix(stillPaused(rest), "; ")))
				}
				return nil
			})
		},
	}
	of.bind(c)
	bindActor(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit (required)")
	return c
}

// stillPaused lists pauses.
func stillPaused(list []payments.Pause) string {
	if len(list) == 0 {
		return ""
	}
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = whom(p)
	}
	return "; still paused: " + strings.Join(names, ", ")
}
