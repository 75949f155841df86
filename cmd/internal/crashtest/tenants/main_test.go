// Package tenants holds the crash tests of what tenants share and do not: accounts, rates, fairness, and a breaker for each account.
package tenants

import (
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
)

func TestMain(m *testing.M) { world.Main(m) }
