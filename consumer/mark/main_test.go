package mark_test

import (
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }
