package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/deploy/chaos"
)

// ChaosOptions are the flags of chaos.
type ChaosOptions struct {
	Seed     uint64
	Duration time.Duration // of the faults; coming to rest takes as long as there is headway
	Rate     int           // payments a second
	KeysOff  bool          // Stripe forgets keys at once, and nothing fails
	Schedule bool          // only print what would happen
	JSON     bool
}

// command is the command that does the same again.
func (o ChaosOptions) command() string {
	text := fmt.Sprintf("oncepay-dev chaos --seed %d --duration %s --rate %d", o.Seed, o.Duration, o.Rate)
	if o.KeysOff {
		text += " --keys-off"
	}
	return text
}

func (o ChaosOptions) check() error {
	switch {
	case o.Duration < time.Second || o.Duration > 24*time.Hour:
		return &app.UsageError{Text: "--duration: must be from 1s to 24h"}
	case o.Rate < 1 || o.Rate > 200:
		return &app.UsageError{Text: "--rate: must be from 1 to 200"}
	}
	return nil
}

func chaosCommand() *cobra.Command {
	o := ChaosOptions{}
	c := &cobra.Command{
		Use: "chaos", Short: "Break real processes and their connections at random, and prove that each was charged once", Args: cli.Arguments(0, 0),
		Long: "Run a cluster of three NATS servers, PostgreSQL, the Stripe simulator, three workers and two API servers as processes of their own; kill,\n" +
			"stop and restart them, cut and stall what is between them, and let Stripe fail, while producers send over NATS and HTTP, again and\n" +
			"again. Then heal everything, wait for rest, and hold the producers' own list against Stripe's ledger. What happens is drawn from the seed\n" +
			"and printed. Exit code 0 only if the proof holds.",
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("seed") {
				o.Seed = uint64(rand.Uint32())
			}
			if err := o.check(); err != nil {
				return err
			}
			return runChaos(c.Context(), o)
		},
	}
	c.Flags().Uint64Var(&o.Seed, "seed", 0, "what is drawn: payments, and what happens when; another one each time when not given")
	c.Flags().DurationVar(&o.Duration, "duration", time.Minute, "how long things are broken")
	c.Flags().IntVar(&o.Rate, "rate", 60, "payments a second")
	c.Flags().BoolVar(&o.KeysOff, "keys-off", false, "break nothing, but let Stripe forget every key at once: it must be asked once for each payment")
	c.Flags().BoolVar(&o.Schedule, "schedule", false, "only print what would happen")
	c.Flags().BoolVar(&o.JSON, "json", false, "print the proof as one JSON document")
	return c
}

func runChaos(ctx context.Context, o ChaosOptions) error {
	if o.Schedule {
		events := o.schedule()
		if o.JSON {
			return console.JSON(os.Stdout, events)
		}
		for _, e := range events {
			fmt.Fprintln(os.Stdout, e)
		}
		return nil
	}
	proof, err := Chaos(ctx, o, os.Stderr)
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
}

// The parts of a run. Each worker and API server reaches the others over links of its own.
var (
	chaosWorkers = []string{"worker-1", "worker-2", "worker-3"}
	chaosDoors   = []string{"api-1", "api-2"}
	chaosNodes   = []string{"nats-1", "nats-2", "nats-3"}
)

const (
	toPostgres   = ">postgres"
	toNATS       = ">nats"
	toStripe     = ">stripe"
	producing    = "producers"
	nameStripe   = "stripe"
	namePostgres = "postgres"
)

// scene is what the schedule is about.
func scene() chaos.Scene {
	s := chaos.Scene{Workers: chaosWorkers, Doors: chaosDoors, Nodes: chaosNodes, Postgres: namePostgres, Stripe: nameStripe, Faults: faults, Lease: chaosLease}
	s.Pausable, s.Letters = []string{holdAll, holdTenant, holdAccount}, "dead letters"
	for _, name := range slices.Concat(chaosWorkers, chaosDoors) {
		s.Links = append(s.Links, name+toPostgres, name+toNATS)
	}
	for _, name := range chaosWorkers {
		s.Links = append(s.Links, name+toStripe)
	}
	s.Links = append(s.Links, producing+toNATS)
	for _, name := range chaosDoors {
		s.Links = append(s.Links, producing+">"+name)
	}
	return s
}

// schedule is what happens in a run: nothing where keys are off.
func (o ChaosOptions) schedule() []chaos.Event {
	if o.KeysOff {
		return nil
	}
	return chaos.Schedule(o.Seed, o.Duration, scene())
}
