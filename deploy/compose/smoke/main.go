// Command smoke proves a stack that runs with the Stripe simulator: as a tenant it publishes intents, each several times, and holds its own
// list against the simulator's ledger. It goes on while nodes and workers are killed and come back.
//
//	NATS_PASSWORD=$(docker compose run --rm -T prepare show demo) go run ./deploy/compose/smoke -intents 500
//
// It exits 0 only if every intent was charged once, with its amount, and the simulator knows of no double charge.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// options are what the flags say.
type options struct {
	nats, simulator  string
	tenant, password string
	intents, repeats int
	within           time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.nats, "nats", "nats://127.0.0.1:4222,nats://127.0.0.1:4223,nats://127.0.0.1:4224", "NATS servers, comma separated")
	flag.StringVar(&o.simulator, "simulator", "http://127.0.0.1:12111", "the Stripe simulator")
	flag.StringVar(&o.tenant, "tenant", "demo", "the tenant, which is also its NATS user; its password is in NATS_PASSWORD")
	flag.IntVar(&o.intents, "intents", 500, "how many intents")
	flag.IntVar(&o.repeats, "repeats", 3, "how often each is published")
	flag.DurationVar(&o.within, "within", 5*time.Minute, "how long all of it may take")
	flag.Parse()
	o.password = os.Getenv("NATS_PASSWORD")
	ctx, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	if err := run(ctx, o, time.Now, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

// run publishes, waits for the ledger to have every intent, and judges it.
func run(ctx context.Context, o options, now func() time.Time, out io.Writer) error {
	if o.password == "" {
		return errors.New("NATS_PASSWORD is not set; docker compose run --rm -T prepare show " + o.tenant)
	}
	started := now()
	wanted, err := newIntents(o, started)
	if err != nil {
		return err
	}
	sent, err := publish(ctx, o, wanted)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "published   %d intents of %s in %d messages, each with its PubAck; %d were sent again for want of one\n", len(wanted), o.tenant, sent.stored, sent.again)
	charged, err := waitCharged(ctx, o, wanted)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "charged     %d, each once and with its amount, after %s\n", charged, now().Sub(started).Round(100*time.Millisecond))
	s, err := getSummary(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "simulator   %d double charges, %d unattributed\n", s.DoubleCharges, s.Unattributed)
	if s.DoubleCharges != 0 || s.Unattributed != 0 {
		return errors.New("the ledger has charges that nobody asked for")
	}
	return nil
}
