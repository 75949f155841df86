// Package scenario tells single payments from their beginning to their end, error by error, and wants each of their attempts told.
package scenario

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
