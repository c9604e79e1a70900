package bus_test

import (
	"testing"

	"github.com/edda-go/edda/bus"
)

// The tables of the subscriptions have no statistics in a new installation. The planner took one row for
// thousands, and Postgres compiled the statement for half a second before the first take of every process.
func TestRoutesAreReadWithoutCompilation(t *testing.T) {
	w := newWorld(t, bus.Options{})
	sql := bus.Statement(w.bus, "routes")
	var plan string
	if err := w.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+sql).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) WHERE $1::jsonb -> 0 ? 'JIT'`, plan); n != 0 {
		t.Errorf("the statement was compiled: %s", plan)
	}
}
