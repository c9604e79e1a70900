package wake_test

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wake"
)

// Collect returns the queues of a collected transaction once, and the code that commits the transaction wakes them.
func TestNotifierCollects(t *testing.T) {
	t.Parallel()
	schema, err := pg.ParseSchema("")
	if err != nil {
		t.Fatal(err)
	}
	n := wake.NewNotifier(nil, schema, wake.NewHub(nil), slog.Default(), true)
	tx, broken := new(int), errors.New("broken")
	queues, err := n.Collect(tx, func() error {
		n.WakeLater(t.Context(), tx, []int{1, 2})
		n.WakeLater(t.Context(), tx, []int{2, 3})
		if n.Collecting() != 1 {
			t.Errorf("%d transactions are collected, want 1", n.Collecting())
		}
		return broken
	})
	if !slices.Equal(queues, []int{1, 2, 3}) || !errors.Is(err, broken) || n.Collecting() != 0 {
		t.Errorf("collected %v and %v, %d are left", queues, err, n.Collecting())
	}
}
