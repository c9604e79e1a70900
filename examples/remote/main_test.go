package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The programs run twice, on the same database and the same broker.
func TestEveryRunHasItsInvoice(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	folder := t.TempDir()
	sum := regexp.MustCompile(`^runs=[1-9]\d* attempts=[1-9]\d* unfinished=0 missing=0\n$`)
	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), folder, 3*time.Second, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if !sum.MatchString(out.String()) {
			t.Errorf("it said\n%s", out.String())
		}
	}
}

func TestVerdictIsFineOnlyIfNothingIsWrong(t *testing.T) {
	t.Parallel()
	for want, all := range map[bool][]verdict{
		true:  {{runs: 1}},
		false: {{}, {runs: 1, unfinished: 1}, {runs: 1, missing: 1}},
	} {
		for _, v := range all {
			if v.fine() != want {
				t.Errorf("%v is fine: %t, want %t", v, !want, want)
			}
		}
	}
}
