package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Each station receives each message once, also when the tour ran in this database before.
func TestTour(t *testing.T) {
	t.Setenv(eddadev.PagesVariable, "off")
	for range 2 {
		// A tour ends while messages wait for their acks, and the next tour of the database handles them once more.
		t.Setenv("DATABASE_URL", eddatest.DSN(t))
		var out bytes.Buffer
		if err := run(t.Context(), 20, &out); err != nil {
			t.Errorf("tour: %v\n%s", err, &out)
		}
		const want = "20 booked, 20 in the statistics, 20 mailed, 20 printed, 20 posted"
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
