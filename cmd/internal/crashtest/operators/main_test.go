// Package operators holds the crash tests of what operators do: they restore databases, rewind, pause, resolve and replay, among faults.
package operators

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
