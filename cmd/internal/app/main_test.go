package app

import (
	"io"
	"log/slog"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// given is a source of settings.
func given(values map[string]string) Source {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}
