package batch

import (
	"os"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(childMain())
	}
	devstacktest.Run(m)
}
