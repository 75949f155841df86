// Package followups kills those who capture, cancel and refund payments, at every step and under every fault.
package followups

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
