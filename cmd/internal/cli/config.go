package cli

import (
	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
)

func configCommand(s *shared) *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the effective settings; secrets are hidden", Args: Arguments(0, 0),
		Long: "Print the effective settings; secrets are hidden.\n\nEach setting comes from its flag (ONCEPAY_STRIPE_KEY is --stripe-key), else the environment, else the file of --config.",
		RunE: func(*cobra.Command, []string) error {
			sources, err := s.sources()
			if err != nil {
				return err
			}
			effective := app.Effective(sources...)
			_, wrong := app.Load(sources...)
			if s.json {
				if wrong != nil {
					return wrong // one document or none
				}
				document := map[string]string{}
				for _, pair := range effective {
					document[pair[0]] = pair[1]
				}
				if err := console.JSON(s.out, document); err != nil {
					return err
				}
			} else {
				rows := make([][]string, len(effective))
				for i, pair := range effective {
					rows[i] = []string{pair[0], pair[1], app.Usage(pair[0])}
				}
				if err := s.table(s.out, []console.Column{{Head: "SETTING"}, {Head: "VALUE"}, {Head: "MEANING", Goes: 1, Below: true}}, rows); err != nil {
					return err
				}
			}
			return wrong
		},
	}
}
