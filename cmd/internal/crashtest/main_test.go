package crashtest

import (
	"flag"
	"os"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/cli"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// worldsAtOnce is how many tests run side by side. They wait for leases and time-outs far more than they compute.
const worldsAtOnce = "8"

// programEnv makes this test binary the program oncepay.
const programEnv = "TEST_BINARY_IS_ONCEPAY"

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(workerProcess())
	}
	if os.Getenv(programEnv) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", worldsAtOnce)
	}
	devstacktest.Run(m)
}
