// Package matrix kills owners of payments at every step, under every fault: workers, replays and real processes.
package matrix

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
