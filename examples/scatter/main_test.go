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

// The whole program with small numbers, twice in one database: 23 requests are divided by no design evenly.
func TestProgram(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	t.Setenv(eddadev.PagesVariable, "off")
	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), 23, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, want := range []string{"flat ", "tree ", "chunks ", "sequential ", "append ", "runs=5 wrong=0"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the program did not print %q:\n%s", want, out.String())
			}
		}
	}
}
