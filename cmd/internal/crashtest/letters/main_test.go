// Package letters holds the crash tests of what becomes a dead letter, and of its replay.
package letters

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
