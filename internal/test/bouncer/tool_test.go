//go:build bouncer

package bouncer_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/prometheus/client_golang/prometheus"
)

// The command gets the connection string of a beginner. It runs ten times over four sessions, so that a later run meets
// the settings that an earlier one left.
func TestCommandOftenAndByDefault(t *testing.T) {
	const sessions = 4
	w := newWorld(t, sessions)
	w.must(w.bus().InstallQueue(t.Context(), "tasks", task{}.Kind()))
	path := filepath.Join(t.TempDir(), "edda")
	if out, err := exec.Command("go", "build", "-o", path, "../../../cmd/edda").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	for range 10 {
		for command, says := range map[string]string{
			"queue list": "tasks", "endpoint list": "tasks", "migrate status": "NAME", "dead list": "",
			"endpoint pause tasks --reason why": "", "endpoint resume tasks": "", "lease list": "",
			"vitals --over 200ms": "of write-ahead log were written in a second",
		} {
			args := append(strings.Fields(command), "--database", w.bouncer.DSN(), "--schema", w.schema)
			out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), says) {
				t.Errorf("edda %s does not say %q: %v\n%s", command, says, err, out)
			}
		}
	}
	w.wantClean(sessions)
}

// PgBouncer refuses the settings that the pages ask for, and the pages are there all the same. A scrape reads the
// queues and the conditions of the database.
func TestPagesAndMetricsAreThereBehindABouncer(t *testing.T) {
	const sessions = 4
	w := newWorld(t, sessions)
	w.must(w.bus().InstallQueue(t.Context(), "tasks", task{}.Kind()))
	ui, err := eddaui.New(w.pool, eddaui.Options{Schema: w.schema, Log: slog.New(slog.DiscardHandler)})
	w.must(err)
	defer ui.Close()
	for _, path := range []string{"/", "/dead", "/manifests", "/sagas", "/limits"} {
		answer := httptest.NewRecorder()
		ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusOK {
			t.Errorf("%s is %d: %s", path, answer.Code, answer.Body)
		}
	}
	operator, err := operate.New(w.pool, operate.Options{Schema: w.schema})
	w.must(err)
	reader, err := vitals.New(w.pool, vitals.Options{Schema: w.schema})
	w.must(err)
	metrics := eddaprom.New(eddaprom.Options{})
	metrics.Watch(operator)
	metrics.WatchVitals(reader)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	w.must(err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	_, examined := values["edda_vital_level"]
	if _, read := values["edda_queue_ready"]; !read || !examined || values["edda_vital_read_errors_total"] != 0 ||
		values["edda_queue_read_errors_total"] != 0 {
		t.Errorf("the metrics are %v", values)
	}
	w.wantClean(sessions)
}
