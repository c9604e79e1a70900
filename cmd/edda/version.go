package main

import (
	"runtime"
	"runtime/debug"

	"github.com/edda-go/edda/migrations"
	"github.com/spf13/cobra"
)

func (t *tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program, and of the schema it knows",
		Example: `  edda version
  edda version --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			version := "(devel)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				version = info.Main.Version
			}
			return t.print(result{
				value: map[string]any{"version": version, "schema_version": migrations.Version,
					"go": runtime.Version()},
				page: func(p *page) {
					p.line("edda %s, schema version %d, %s", version, migrations.Version, runtime.Version())
				},
			})
		},
	}
}
