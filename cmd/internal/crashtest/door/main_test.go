// Package door holds the crash tests of the HTTP API and of batch files: processes with the API are killed, cut off and asked again.
package door

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
