package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the nodes of the broker, too.
func TestMain(m *testing.M) {
	cluster.RunNode()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}

func TestEveryOrderIsPaidOnceInTheOtherDatabase(t *testing.T) {
	var out bytes.Buffer
	if err := look(t.Context(), settings{seconds: 3, rate: 40, seed: 1}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	said := out.String()
	if !regexp.MustCompile(`orders=[1-9]\d* paid=[1-9]\d* declined=[1-9]\d* lost=0 double=0 wrong=0`).MatchString(
		said) {
		t.Errorf("the sum is not told, or not as it should be:\n%s", said)
	}
	for _, step := range []string{"orders    placed", "orders    card.charge is given to the broker, topic payments",
		"payments  card.charge is handled by endpoint payments", "orders    order.paid is handled by endpoint page",
		"payments  order.paid is handled by endpoint shipping"} {
		if !strings.Contains(said, step) {
			t.Errorf("it was not told that %q:\n%s", step, said)
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-seconds", "0"}, {"-rate", "2000"}, {"-rate", "-1"}, {"more"}, {"-unknown"}} {
		var complaints bytes.Buffer
		if code := start(args, t.Output(), &complaints); code != 2 || complaints.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, complaints.String())
		}
	}
}
