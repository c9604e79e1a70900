package view

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

var errTest = errors.New("damaged")

// The names in JSON must not change.
func TestPageNamesEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	lines := map[string]Object{
		"| `migrate status` | `schema`":   Migrations(make([]migrations.Migration, 1)).Rows[0].JSON,
		"| `queue list` | `queues`":       queueOf(operate.QueueInfo{}),
		"| `queue peek` | `next`":         messageOf(operate.QueuedMessage{Faulty: errTest}, true),
		"| `queue show` | `messages`":     foundOf(operate.FoundMessage{}, true),
		"| `saga show` | `saga`":          instanceOf(persistence.Listed{Faulty: errTest}),
		"| `saga list` | `next`":          append(instanceOf(persistence.Listed{}), "overdue", nil),
		"| `saga repair` | `saga`":        Repaired(saga.Instance{}, saga.Instance{Version: 1}).JSON,
		"| `saga end` | `saga`":           Ended(saga.Instance{}).JSON,
		"| `saga timeout` | `saga`":       Timeout(operate.Target{}, "due", "fired", saga.Pending{}).JSON,
		"| `dead group` | `next`":         letterGroupRow(recoverability.LetterGroup{}).JSON,
		"| `dead jobs` | `jobs`":          jobOf(recoverability.Job{}),
		"| `dead undo` | `job`":           Undone(1, recoverability.Undone{}).JSON,
		"| `endpoint list` | `endpoints`": endpointRow(operate.EndpointSettings{}).JSON,
		"| `dead show` | `number`":        letterOf(recoverability.Letter{}),
		"| `manifest show` | `manifest`":  manifestOf(scheduler.ManifestInfo{}),
		"| `run show` | `run`":            runOf(scheduler.RunInfo{}),
		"| `group list` | `groups`":       manifestGroupOf(scheduler.GroupInfo{}),
		"| `lease list` | `leases`":       leaseRow(scheduler.LeaseInfo{}).JSON,
		"| `history show` | `life`":       versionOf(history.Version{}),
		"| `history find` | `message`":    append(sentOf(history.Message{}, true), placeOf(whereabouts.Place{})...),
		"| `history export` | one":        entryOf(history.Entry{}, true),
		"| `history ended` | `lives`":     lifeOf(history.Life{}),
		"| `vitals` | `at`": slices.Concat(Vitals(&vitals.Report{}).JSON, vitalOf(vitals.Vital{}),
			holderOf(vitals.Holder{}), listsOf(&vitals.Report{})),
		"| `limit get`, `limit set`": append(limitOf(operate.LimitInfo{}, nil),
			holderOfLimit(operate.Holder{})...),
		"| `endpoint pace` | `paces`": Paces([]operate.Pace{{}}).Rows[0].JSON,
		"| `map` | `endpoints`": slices.Concat(Map(&operate.Map{}).JSON, mappedOf(operate.MapEndpoint{}),
			edgeOf(operate.Edge{}), faultOf(operate.Fault{})),
		"| `history conversation` | `count`": nodeOf(&whereabouts.Node{
			Effects: []whereabouts.Group{{}}}),
	}
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
