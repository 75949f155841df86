package dev

import (
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// Main runs the program oncepay-dev and returns its exit code.
func Main(args []string) int {
	root := cli.Group("oncepay-dev", "The whole stack of Oncepay on this machine: demo, proof, benchmark, simulator",
		demoCommand(), upCommand(), benchCommand(), chaosCommand(), stripeCommand())
	root.AddCommand(childCommand(), nodeProcessCommand(), simulatorProcessCommand())
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return checkSabotage(os.Getenv("ONCEPAY_SABOTAGE")) }
	root.SetArgs(args)
	return cli.Execute(root, os.Stderr)
}

// checkSabotage refuses a sabotage that would not happen: whoever asks for one must not read PROVED and believe it withstood it.
func checkSabotage(what string) error {
	switch {
	case what == "":
		return nil
	case !payments.SabotageBuild:
		return &app.UsageError{Text: "ONCEPAY_SABOTAGE: this build cannot be sabotaged; build it with -tags sabotage, or unset it"}
	case !slices.Contains([]string{"look", "token", "owner", "window", "fingerprint", "ticket"}, what):
		return &app.UsageError{Text: "ONCEPAY_SABOTAGE: must be look, token, owner, window, fingerprint or ticket"}
	}
	return nil
}

func demoCommand() *cobra.Command {
	o := DemoOptions{}
	c := &cobra.Command{
		Use: "demo", Short: "Charge intents once, through faults and killed workers, and prove it", Args: cli.Arguments(0, 0),
		Long: "Publish intents again and again, from several producers, through real JetStream and PostgreSQL and a Stripe simulator that fails,\n" +
			"kill worker processes on the way, and hold the producers' list against the ledger. Exit code 0 only if the proof holds.",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Intents < 1 || o.Intents > 1_000_000 {
				return &app.UsageError{Text: "--intents: must be from 1 to 1,000,000"}
			}
			if err := checkFaults(o.Faults); err != nil {
				return err
			}
			proof, err := Demo(c.Context(), o, os.Stderr)
			if err != nil {
				return err
			}
			if o.JSON {
				if err := console.JSON(os.Stdout, proof); err != nil {
					return err
				}
			} else {
				proof.Print(os.Stdout)
			}
			if !proof.Holds {
				return cli.NewExit(1, "")
			}
			return nil
		},
	}
	c.Flags().IntVar(&o.Intents, "intents", 1000, "how many payment intents")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "what is drawn: amounts, order, faults")
	c.Flags().StringVar(&o.Faults, "faults", "all", "what Stripe does wrong: all, none, or a comma-separated list")
	c.Flags().BoolVar(&o.JSON, "json", false, "print the proof as one JSON document")
	return c
}

// childCommand is what a worker process runs: the same as oncepay serve, until its standard input ends.
func childCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerCommand, Hidden: true, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			go func() {
				// It ends when our parent has died, however it died, and with it the broker and the database: there is nothing to drain into, and
				// tickets bring back what was in flight. A parent that stops in order sends SIGTERM and keeps its end open until we are gone.
				_, _ = io.Copy(io.Discard, os.Stdin)
				os.Exit(1)
			}()
			settings, err := app.Load(app.Environment)
			if err != nil {
				return err
			}
			return app.Serve(c.Context(), settings, app.NewLog(os.Stderr, settings.LogLevel), app.ServeOptions{
				Ready: func(http, admin string) { _, _ = os.Stdout.WriteString("ready " + http + " " + admin + "\n") },
			})
		},
	}
}
