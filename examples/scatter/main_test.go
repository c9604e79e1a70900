package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

// The whole program with small numbers: 23 requests are divided by no design evenly.
func TestProgram(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	if code := start([]string{"-requests", "23"}, &out, &complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	for _, want := range []string{"flat ", "tree ", "chunks ", "sequential ", "append ", "runs=5 wrong=0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program did not print %q:\n%s", want, out.String())
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-requests", "0"}, {"-requests", "100001"}, {"now"}, {"-what"}} {
		var out, complaints bytes.Buffer
		if code := start(args, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), "-h for help") {
			t.Errorf("%v ended with %d and %q, want 2 and where help is", args, code, complaints.String())
		}
	}
}
