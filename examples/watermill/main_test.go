package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
)

// This binary is also the worker processes of the test.
func TestMain(m *testing.M) {
	if os.Getenv(assignmentVariable) != "" {
		os.Exit(start(nil, os.Stdout, os.Stderr))
	}
	os.Exit(pgdev.Main(m))
}

// The program in its short form: the counts are exact though workers were killed with their batches open.
func TestCountsAreExact(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	x := exchange{dsn: pgdev.DSN(t), schema: pgdev.Schema(t), total: 3000, kills: 4, out: &out, errs: os.Stderr}
	if err := takeTour(t.Context(), x.dsn, x.schema, 20, &out); err != nil {
		t.Errorf("tour: %v\n%s", err, &out)
	}
	if err := x.run(t.Context()); err != nil {
		t.Errorf("exchange: %v\n%s", err, &out)
	}
	for _, want := range []string{"20 booked, 20 in the statistics, 20 mailed, 20 printed, 20 posted", "counts exact"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-n", "0"}, {"-kill", "-1"}, {"-no-such"}, {"word"}} {
		var errs bytes.Buffer
		if got := start(args, &errs, &errs); got != 2 || errs.Len() == 0 {
			t.Errorf("%v: code %d, %s", args, got, &errs)
		}
	}
}
