//go:build bouncer

package bouncer_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// command is the command edda, built when a test first wants it.
var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "edda-bouncer-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "edda")
	out, err := exec.Command("go", "build", "-o", path, "../../../cmd/edda").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// edda runs the command through PgBouncer, with a connection string as a beginner writes it.
func (w *world) edda(args ...string) string {
	w.t.Helper()
	path, err := command()
	if err != nil {
		w.t.Fatalf("build the command: %v\n%s", err, path)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, path, append(args, "--database", w.bouncer.DSN(), "--schema", w.schema)...)
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("edda %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) wantSaid(word string, args ...string) {
	w.t.Helper()
	if said := w.edda(args...); !strings.Contains(said, word) {
		w.t.Errorf("edda %s does not say %q:\n%s", strings.Join(args, " "), word, said)
	}
}

// awaitPaused waits until the endpoint's log says that it has paused.
func (w *world) awaitPaused() {
	w.t.Helper()
	for !strings.Contains(w.log.String(), "endpoint is paused") {
		if w.t.Context().Err() != nil {
			w.t.Fatal(w.t.Context().Err())
		}
		w.wantSaid("tasks", "endpoint", "list")
	}
}

// Each of these runs ten times: what would be left in one session is met in another.
func TestCommandOftenAndByDefault(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		return w.effect(ctx, tx, m.Key, m.N)
	}))
	w.send(task{Key: "one"})
	w.awaitEffects(1)
	for range 10 {
		w.wantSaid("tasks", "queue", "list")
		w.wantSaid("tasks", "endpoint", "list")
		w.wantSaid("NAME", "migrate", "status")
		w.edda("dead", "list")
		w.wantSaid("of write-ahead log were written in a second", "vitals", "--over", "200ms")
	}
}

// A scrape reads the queues through PgBouncer.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	metrics := eddaprom.New(eddaprom.Options{})
	b := w.newBus(bus.Options{Events: metrics.Observe})
	operator, err := operate.New(w.pool, operate.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	metrics.Watch(operator)
	reader, err := vitals.New(w.pool, vitals.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	metrics.WatchVitals(reader)
	w.startOn(b, "tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		return w.effect(ctx, tx, m.Key, m.N)
	}))
	w.sendTasks(2, 10, never)
	w.awaitEffects(20)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	_, examined := values["edda_vital_level"]
	if _, read := values["edda_queue_ready"]; !read || !examined ||
		values["edda_vital_read_errors_total"] != 0 || values["edda_queue_read_errors_total"] != 0 ||
		values["edda_messages_handled_total"] != 20 {
		t.Errorf("the metrics are %v", values)
	}
}
