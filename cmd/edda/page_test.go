package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func thePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPageNamesEveryCommand(t *testing.T) {
	t.Parallel()
	page := thePage(t)
	var commands []string
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if !c.HasSubCommands() {
			path, _, _ := strings.Cut(c.CommandPath(), " [")
			commands = append(commands, path)
			if !strings.Contains(page, "| `"+path) {
				t.Errorf("docs/reference/cli.md has no line for %s", path)
			}
		}
		for _, under := range c.Commands() {
			visit(under)
		}
	}
	visit((&tool{}).root())
	for _, named := range regexp.MustCompile("(?m)^\\| `(edda [a-z]+(?: [a-z]+)?)").FindAllStringSubmatch(page, -1) {
		if !slices.Contains(commands, named[1]) {
			t.Errorf("docs/reference/cli.md has %s, and there is no such command", named[1])
		}
	}
}
