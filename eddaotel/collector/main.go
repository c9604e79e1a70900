package main

import (
	"fmt"
	"os"

	"go.opentelemetry.io/collector/otelcol"
)

func main() {
	if err := otelcol.NewCommand(settings()).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}
