// Package protection tests each protection against charging twice by itself, and by removing it: the oracle has to turn red.
package protection

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
