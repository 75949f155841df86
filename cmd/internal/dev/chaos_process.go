package dev

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// Hidden commands: a NATS node and a simulator that are processes of their own.
const (
	nodeCommand      = "nats-process"
	simulatorCommand = "stripe-process"
)

func nodeProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use: nodeCommand, Hidden: true, Args: cli.Arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			chaos.UntilParentEnds()
			var node chaos.Node
			if err := json.Unmarshal([]byte(args[0]), &node); err != nil {
				return err
			}
			return node.Run(c.Context(), nodeLog{}, sayReady)
		},
	}
}

func simulatorProcessCommand() *cobra.Command {
	var addr, data string
	var seed uint64
	c := &cobra.Command{
		Use: simulatorCommand, Hidden: true, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			chaos.UntilParentEnds()
			return runSimulator(c.Context(), addr, stripesim.Options{Path: data, Seed: seed}, func(string) { sayReady() })
		},
	}
	c.Flags().StringVar(&addr, "addr", "", "")
	c.Flags().StringVar(&data, "data", "", "")
	c.Flags().Uint64Var(&seed, "seed", 0, "")
	return c
}

func sayReady() { fmt.Fprintln(os.Stdout, chaos.ReadyLine) }

// nodeLog writes what a NATS node finds worth a warning.
type nodeLog struct{}

func (nodeLog) Noticef(string, ...any)        {}
func (nodeLog) Debugf(string, ...any)         {}
func (nodeLog) Tracef(string, ...any)         {}
func (nodeLog) Warnf(format string, v ...any) { fmt.Fprintf(os.Stderr, "warning: "+format+"\n", v...) }
func (nodeLog) Errorf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", v...)
}
func (nodeLog) Fatalf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "fatal: "+format+"\n", v...)
	os.Exit(1)
}
