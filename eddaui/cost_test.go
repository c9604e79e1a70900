package eddaui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/big"
)

// No page reads a queue, or another table that may be long, as a whole: the server counts sequential scans. make
// pages measures the same with millions of rows.
func TestNoPageReadsALongTableWhole(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	world, err := big.Seed(t.Context(), pool, schema, big.Size{
		Living: 10_000, Letters: 5_000, Groups: 30, Queued: 20_000, History: 40_000, Runs: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	readers, err := world.Readers(t.Context(), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(readers.Close)
	s := serve(t, pool, schema, eddaui.Options{Reader: readers, Authorize: allow(eddaui.View | eddaui.Bodies)})
	if n := strings.Count(s.get(big.JSON(world.Instance())), `"change": "changed"`); n != 19 {
		t.Errorf("an instance of twenty versions has %d that followed another", n)
	}
	for _, p := range world.Pages() {
		whole, err := world.ReadWhole(t.Context(), schema, readers, func() {
			for _, path := range []string{p.Path, big.JSON(p.Path)} {
				a := s.do(http.MethodGet, path)
				// TestEachPageIsMeasured detects a page that is not requested
				unknown := a.status == http.StatusNotFound && strings.Contains(a.body, "No page has this address.")
				if a.status != http.StatusOK && !unknown {
					t.Errorf("page %q, %s, is %d:\n%.500s", p.Name, path, a.status, a.body)
				}
			}
		})
		if err != nil || len(whole) > 0 {
			t.Errorf("page %q, %s, reads all of %v, %v", p.Name, p.Path, whole, err)
		}
	}
	whole, err := world.ReadWhole(t.Context(), schema, readers, func() {
		var n int
		if err := readers.QueryRow(t.Context(), "SELECT count(*) FROM "+schema+".queue_1").Scan(&n); err != nil {
			t.Error(err)
		}
	})
	if err != nil || len(whole) != 1 || whole[0] != "queue_1" {
		t.Errorf("a count of a queue is not noticed: %v, %v", whole, err)
	}
}
