package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/migrations"
)

func versionCommand(s *shared) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, Go version and the schema version that this program needs", Args: Arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			version, revision := "devel", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" && info.Main.Version != "(devel)" {
					version = info.Main.Version
				}
				for _, setting := range info.Settings {
					if setting.Key == "vcs.revision" {
						revision = setting.Value
					}
				}
			}
			if s.json {
				return console.JSON(s.out, map[string]any{"version": version, "revision": revision, "go": runtime.Version(), "schema": migrations.Target()})
			}
			if revision != "" {
				version += " (" + revision + ")"
			}
			fmt.Fprintf(s.out, "oncepay %s, %s, schema %d\n", version, runtime.Version(), migrations.Target())
			return nil
		},
	}
}
