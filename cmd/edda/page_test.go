package main

import (
	"os"
	"reflect"
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

// The names of JSON are promised.
func TestPageNamesEveryField(t *testing.T) {
	t.Parallel()
	page := thePage(t)
	lines := map[string]reflect.Type{
		"| `migrate status` | `schema`":   reflect.TypeFor[migrationJSON](),
		"| `queue list` | `queues`":       reflect.TypeFor[queueJSON](),
		"| `queue peek` | `next`":         reflect.TypeFor[messageJSON](),
		"| `queue show` | `messages`":     reflect.TypeFor[foundJSON](),
		"| `saga show` | `saga`":          reflect.TypeFor[instanceJSON](),
		"| `dead group` | `next`":         reflect.TypeFor[groupJSON](),
		"| `dead jobs` | `jobs`":          reflect.TypeFor[jobJSON](),
		"| `endpoint list` | `endpoints`": reflect.TypeFor[endpointJSON](),
		"| `dead show` | `number`":        reflect.TypeFor[letterJSON](),
		"| `advise` | `sagas`":            reflect.TypeFor[advisedJSON](),
		"| `manifest show` | `manifest`":  reflect.TypeFor[manifestJSON](),
		"| `run show` | `run`":            reflect.TypeFor[runJSON](),
		"| `group list` | `groups`":       reflect.TypeFor[manifestGroupJSON](),
		"| `lease list` | `leases`":       reflect.TypeFor[leaseJSON](),
	}
	for begin, fields := range lines {
		_, line, found := strings.Cut(page, begin)
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("docs/reference/cli.md has no line that begins with %s", begin)
		}
		for _, field := range reflect.VisibleFields(fields) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(begin+line, "`"+name+"`") {
				t.Errorf("the line %s has not the field %s", begin, name)
			}
		}
	}
}
