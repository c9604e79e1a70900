package eddaprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	metricName = regexp.MustCompile(`\bedda_[a-z_]+\b`)
	// a metric with the labels that select it, and a list of labels of a sum
	selected = regexp.MustCompile(`\b(edda_[a-z_]+)\{([^}]*)\}`)
	summedBy = regexp.MustCompile(`\b(?:by|on) \(([a-z_, ]+)\)`)
	label    = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	comment  = regexp.MustCompile(`(?m)^\s*#.*$`)
)

// families returns the names of the exported metrics in Prometheus: three for a histogram.
func families(t *testing.T) map[string][]string {
	t.Helper()
	doc := readFile(t, "doc.go")
	found := map[string][]string{}
	for name, labels := range described() {
		if !regexp.MustCompile(`\t` + name + ` +histogram `).MatchString(doc) {
			found[name] = labels
			continue
		}
		found[name+"_bucket"] = append(labels, "le")
		found[name+"_sum"], found[name+"_count"] = labels, labels
	}
	return found
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkExpressions fails for a metric that eddaprom does not export, and for a label that a metric does not have.
func checkExpressions(t *testing.T, where, text string) {
	t.Helper()
	for _, fault := range faultsOf(families(t), text) {
		t.Errorf("%s: %s", where, fault)
	}
}

func faultsOf(known map[string][]string, text string) (faults []string) {
	all := []string{"job", "instance", "le"}
	for _, labels := range known {
		all = append(all, labels...)
	}
	for _, name := range metricName.FindAllString(text, -1) {
		if _, ok := known[name]; !ok {
			faults = append(faults, "eddaprom does not export "+name)
		}
	}
	for _, m := range selected.FindAllStringSubmatch(text, -1) {
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(append(known[m[1]], "job", "instance"), l[1]) {
				faults = append(faults, m[1]+" has no label "+l[1])
			}
		}
	}
	for _, m := range summedBy.FindAllStringSubmatch(text, -1) {
		for l := range strings.SplitSeq(m[1], ", ") {
			if !slices.Contains(all, l) {
				faults = append(faults, "no metric has the label "+l)
			}
		}
	}
	return faults
}

// The check must find the faults that it is for.
func TestExpressionsOfNothingAreSeen(t *testing.T) {
	t.Parallel()
	known := families(t)
	for text, want := range map[string]string{
		`max by (endpoint) (edda_queue_ready{endpoint="a"})`: "",
		`rate(edda_batch_seconds_bucket{le="1"}[5m])`:        "",
		`rate(edda_batch_seconds[5m])`:                       "does not export edda_batch_seconds",
		`edda_queue_depth > 1`:                               "does not export edda_queue_depth",
		`edda_lease_holder{endpoint="a"}`:                    "edda_lease_holder has no label endpoint",
		`sum by (endpoint, colour) (edda_queue_ready)`:       "no metric has the label colour",
	} {
		if got := strings.Join(faultsOf(known, text), "; "); (want == "") != (got == "") || !strings.Contains(got,
			want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A rule on a metric that does not exist never fires, and no error reports that.
func TestAlertsAreOnMetricsThatExist(t *testing.T) {
	t.Parallel()
	checkExpressions(t, "alerts.yaml", comment.ReplaceAllString(readFile(t, "grafana/alerts.yaml"), ""))
	checkExpressions(t, "alerts_test.yaml", comment.ReplaceAllString(readFile(t, "grafana/alerts_test.yaml"), ""))
}

// Each alert has a test that makes it fire and one that does not, and a heading of its runbook's page.
func TestAlertsHaveTestsAndRunbooks(t *testing.T) {
	t.Parallel()
	rules, tests := readFile(t, "grafana/alerts.yaml"), readFile(t, "grafana/alerts_test.yaml")
	page := readFile(t, "../docs/operate/alerts.md")
	blocks := strings.Split(rules, "\n      - alert: ")[1:]
	if len(blocks) < 20 {
		t.Fatalf("there are %d alerts, want 20 or more", len(blocks))
	}
	for _, block := range blocks {
		name, _, _ := strings.Cut(block, "\n")
		fires := regexp.MustCompile(`alertname: ` + name + `\n +exp_alerts:\n +- exp_labels`)
		quiet := regexp.MustCompile(`alertname: ` + name + `\n +exp_alerts: \[\]`)
		if !fires.MatchString(tests) || !quiet.MatchString(tests) {
			t.Errorf("alerts_test.yaml does not make %s fire, or has nothing that does not", name)
		}
		if !strings.Contains(block+"\n", "runbook: docs/operate/alerts.md#"+strings.ToLower(name)+"\n") ||
			!strings.Contains(block, "summary: ") || !strings.Contains(block, "severity: ") {
			t.Errorf("%s has no severity, no summary, or not the runbook docs/operate/alerts.md#%s", name,
				strings.ToLower(name))
		}
		if !strings.Contains(page, "\n## "+name+"\n") {
			t.Errorf("docs/operate/alerts.md has no heading %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Edda\w+)$`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(rules, "- alert: "+m[1]+"\n") {
			t.Errorf("docs/operate/alerts.md has %s, and there is no such alert", m[1])
		}
	}
}

// The dashboard shows every metric, and no metric that does not exist.
func TestDashboardShowsEveryMetric(t *testing.T) {
	t.Parallel()
	text := readFile(t, "grafana/edda.json")
	var board struct {
		Title  string
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ RefID, Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	ids, below := map[int]bool{}, 0
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.Y < below {
			t.Errorf("panel %d (%s) has the id of another, no title, or no place: %+v", p.ID, p.Title, p.GridPos)
		}
		if ids[p.ID] = true; p.Type == "row" {
			below = p.GridPos.Y
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpressions(t, "panel "+p.Title, target.Expr)
			shown.WriteString(target.Expr + "\n")
		}
	}
	for name := range families(t) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !regexp.MustCompile(`\b` + base + `(_bucket|_sum|_count)?\b`).MatchString(shown.String()) {
			t.Errorf("the dashboard does not show %s", base)
		}
	}
	for _, v := range board.Templating.List {
		checkExpressions(t, "variable "+v.Name, v.Definition)
	}
}
