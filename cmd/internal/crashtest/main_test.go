package crashtest

import (
	"flag"
	"os"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// worldsAtOnce is how many tests run side by side. They wait for leases and time-outs far more than they compute.
const worldsAtOnce = "8"

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(workerProcess())
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", worldsAtOnce)
	}
	devstacktest.Run(m)
}
