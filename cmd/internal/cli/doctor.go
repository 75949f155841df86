package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/cmd/internal/doctor"
)

// Bounds of --timeout.
const (
	doctorTimeoutMin = time.Second
	doctorTimeoutMax = 10 * time.Minute
)

func doctorCommand(s *shared) *cobra.Command {
	timeout := doctor.TimeoutDefault
	mark := acceptMark{shared: s}
	c := &cobra.Command{
		Use: "doctor", Short: "Check PostgreSQL, NATS, Stripe and the work in hand, and say what to mend", Args: Arguments(0, 0),
		Long: "Check PostgreSQL, NATS, Stripe and the work in hand, and say what to do about what is wrong.\n\n" +
			"It changes nothing and publishes nothing. Run it with the settings of a serving process, where\n" +
			"that process runs. With --accept-mark it does something else: it says that a database which does\n" +
			"not fit the mark that is kept of it in NATS has lost nothing all the same, so that payments are\n" +
			"sent again. If that is not sure, `oncepay rewind` is the way.\n" +
			"Exit code 0: nothing failed (there may be warnings); 1: something failed; 2: a setting is missing or\nimpossible.",
		RunE: func(c *cobra.Command, _ []string) error {
			if timeout < doctorTimeoutMin || timeout > doctorTimeoutMax {
				return &app.UsageError{Text: "--timeout: must be from " + doctorTimeoutMin.String() + " to " + doctorTimeoutMax.String()}
			}
			op, err := mark.check(c)
			if err != nil {
				return err
			}
			settings, err := s.settings()
			if err != nil {
				return err
			}
			if err := settings.RequireDatabase(); err != nil {
				return err
			}
			if mark.accept {
				return mark.run(c.Context(), settings, c.InOrStdin(), op)
			}
			report := doctor.Run(c.Context(), doctor.Options{Settings: settings, Timeout: timeout})
			if err := c.Context().Err(); err != nil {
				return err // told to stop: what was not answered says nothing
			}
			if s.json {
				err = console.JSON(s.out, report)
			} else {
				err = printReport(s.out, report)
			}
			if err == nil && !report.OK {
				err = NewExit(exitFailed, "")
			}
			return err
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "for how long everything together is asked; looking at the tickets of many millions of payments takes longer")
	mark.bind(c)
	return c
}
