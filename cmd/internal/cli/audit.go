package cli

import (
	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

func auditCommand(s *shared) *cobra.Command {
	var f payments.AuditFilter
	var since, until, from string
	var limit int
	c := &cobra.Command{
		Use: "audit", Short: "List what operators did, newest first", Args: Arguments(0, 0),
		Long: "List what operators did, newest first: every replay, discard, resolution, pause, rewind, tenant and\n" +
			"API key with its actor, time, filter and result. It is only ever added to.",
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := checkLimit(limit); err != nil {
				return err
			}
			if f.TenantID != "" && payments.CheckTenantID(f.TenantID) != "" {
				return &app.UsageError{Text: "--tenant: " + payments.CheckTenantID(f.TenantID)}
			}
			if f.Since, err = moment("--since", since); err != nil {
				return err
			}
			if f.Until, err = moment("--until", until); err != nil {
				return err
			}
			return s.withOperators(c.Context(), func(store operators) error {
				page, next, err := store.Audit(c.Context(), f, limit, from)
				if err != nil {
					return err
				}
				return printPage(s, page, next, document.AuditEntry, columns[payments.AuditEntry]{
					[]console.Column{{Head: "AT (UTC)"}, {Head: "BY", Least: 10}, {Head: "ACTION"}, {Head: "TARGET", Goes: 5, Below: true},
						{Head: "TENANT", Goes: 4, Below: true}, {Head: "WHY", Least: 16, Goes: 3, Below: true}, {Head: "FILTER", Goes: 1, Below: true},
						{Head: "RESULT", Goes: 2, Below: true}},
					func(e payments.AuditEntry) []string {
						return []string{when(e.At), e.Actor, e.Action, orDash(e.Target), orDash(e.TenantID), orDash(e.Reason), orDash(string(e.Filter)), orDash(string(e.Result))}
					},
				})
			})
		},
	}
	c.Flags().StringVar(&f.TenantID, "tenant", "", "only what was done to this tenant")
	c.Flags().StringVar(&f.Actor, "actor", "", "only what this one did")
	c.Flags().StringVar(&f.Action, "action", "", "only this action, as the command: dlq replay, payments resolve, pause, …")
	c.Flags().StringVar(&f.Target, "target", "", "only what was done to this: dl_…, rpl_…, pay_…, acct_…, key_…")
	c.Flags().StringVar(&since, "since", "", "only at or after this RFC 3339 time, or this long ago (2h)")
	c.Flags().StringVar(&until, "until", "", "only before this RFC 3339 time, or this long ago")
	bindPage(c, &limit, &from, "")
	return c
}
