package stripesim

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary a simulator process for the kill -9 test.
const helperEnv = "STRIPESIM_TEST_HELPER_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(helperEnv); path != "" {
		os.Exit(helperProcess(path))
	}
	goleak.VerifyTestMain(m)
}
