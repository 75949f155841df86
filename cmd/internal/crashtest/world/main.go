package world

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// worldsAtOnce is how many tests run side by side. They wait for leases and time-outs far more than they compute.
const worldsAtOnce = "8"

// ProgramEnv makes this test binary the program oncepay.
const ProgramEnv = "TEST_BINARY_IS_ONCEPAY"

// abandonedBatch is what a NATS server leaves behind when it is stopped in the middle of an atomic batch: the batch's store is not among those that it
// closes (nats-server 2.15.3). The outage tests stop servers at any moment.
func abandonedBatch() (options []goleak.Option) {
	for _, f := range []string{
		"github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop", "github.com/nats-io/nats-server/v2/server.(*msgBlock).flushLoop",
		"github.com/nats-io/nats-server/v2/server/ats.Register.func1",
	} {
		options = append(options, goleak.IgnoreAnyFunction(f))
	}
	return options
}

// Main is TestMain of each package of crash tests. It is also the whole of the processes that they start: this binary again, as a worker or as the program.
func Main(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(workerProcess())
	}
	if os.Getenv(ProgramEnv) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", worldsAtOnce)
	}
	devstacktest.Run(m, abandonedBatch()...)
}
