package dev

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/payments/stripesim"
)

func stripeCommand() *cobra.Command {
	var addr, data string
	c := &cobra.Command{
		Use: "stripe", Short: "Run the Stripe simulator alone, until Ctrl-C", Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return runSimulator(c.Context(), addr, stripesim.Options{Path: data}, func(url string) {
				fmt.Fprintf(os.Stdout, "Stripe simulator on %s\n  key     any sk_test_… or rk_test_…\n  ledger  %s/_sim/ledger\n  faults  POST %s/_sim/faults\n", url, url, url)
			})
		},
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:12111", "listen address")
	c.Flags().StringVar(&data, "data", "", "ledger file that survives restarts; in memory when empty")
	return c
}

// runSimulator serves the simulator until ctx ends.
func runSimulator(ctx context.Context, addr string, o stripesim.Options, ready func(url string)) error {
	sim, err := stripesim.New(o)
	if err != nil {
		return &app.UsageError{Text: "--data: " + err.Error()}
	}
	url, server, err := serveLocal(addr, sim)
	if err != nil {
		_ = sim.Close()
		return &app.UsageError{Text: "--addr: " + err.Error()}
	}
	ready(url)
	<-ctx.Done()
	err = sim.Close()
	_ = server.Close()
	return err
}
