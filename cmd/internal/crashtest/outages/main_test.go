// Package outages takes PostgreSQL, NATS, Stripe and their connections away, and lets workers drain and pause.
package outages

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
