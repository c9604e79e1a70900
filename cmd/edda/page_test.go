package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/scheduler"
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
	lines := map[string]object{
		"| `migrate status` | `schema`":   migrationOf(migrate.Migration{}),
		"| `queue list` | `queues`":       queueOf(operate.QueueInfo{}),
		"| `queue peek` | `next`":         messageOf(operate.QueuedMessage{Faulty: errNotFound}, true),
		"| `queue show` | `messages`":     foundOf(operate.FoundMessage{}, true),
		"| `saga show` | `saga`":          instanceOf(persistence.Listed{Faulty: errNotFound}),
		"| `dead group` | `next`":         groupOf(deadletter.Group{}),
		"| `dead jobs` | `jobs`":          jobOf(deadletter.Job{}),
		"| `endpoint list` | `endpoints`": first(endpointRow(operate.EndpointSettings{})),
		"| `dead show` | `number`":        letterOf(deadletter.Letter{}),
		"| `manifest show` | `manifest`":  manifestOf(scheduler.ManifestInfo{}),
		"| `run show` | `run`":            runOf(scheduler.RunInfo{}),
		"| `group list` | `groups`":       manifestGroupOf(scheduler.GroupInfo{}),
		"| `lease list` | `leases`":       first(leaseRow(scheduler.LeaseInfo{})),
		"| `history show` | `life`":       versionOf(history.Version{}),
		"| `history find` | `message`":    append(sentOf(history.Message{}, true), placeOf(whereabouts.Place{})...),
		"| `history export` | one":        entryOf(history.Entry{}, true),
		"| `history ended` | `lives`":     lifeOf(history.Life{}),
		"| `history conversation` | `count`": nodeOf(&whereabouts.Node{
			Effects: []whereabouts.Group{{}}}),
	}
	advised := object{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[advisedJSON]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		advised = append(advised, name, nil)
	}
	lines["| `advise` | `sagas`"] = advised
	for begin, fields := range lines {
		_, line, found := strings.Cut(page, begin)
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("docs/reference/cli.md has no line that begins with %s", begin)
		}
		for n := 0; n < len(fields); n += 2 {
			if !strings.Contains(begin+line, fmt.Sprintf("`%s`", fields[n])) {
				t.Errorf("the line %s has not the field %s", begin, fields[n])
			}
		}
	}
}

func first(o object, _ []string) object { return o }
