package cli

import (
	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

func serveCommand(s *shared) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Work: admit intents, charge them, relay events, until told to stop", Args: Arguments(0, 0),
		Long: "Work until SIGTERM or SIGINT, and then drain: what is in flight is finished and recorded.\n\n" +
			"It brings the database and the streams to what this version needs; any number of processes may\nstart at once.\n`oncepay config` lists every setting.",
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := s.settings()
			if err != nil {
				return err
			}
			return app.Serve(c.Context(), settings, app.NewLog(s.err, settings.LogLevel), app.ServeOptions{})
		},
	}
	return c
}
