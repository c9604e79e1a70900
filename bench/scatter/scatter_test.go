package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

// The whole program with small numbers: 23 requests are divided by no design evenly.
func TestProgram(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	code := start([]string{"-requests", "23", "-quiet", "50ms", "-for", "1ms"}, &out, &complaints)
	if code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	for _, want := range []string{"wrong=0", "flat   optimistic", "tree  pessimistic", "chunks   optimistic",
		"sequential  pessimistic", "append"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program did not print %q:\n%s", want, out.String())
		}
	}
}

func TestProgramWithAFullQueue(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	if code := start([]string{"-requests", "6000", "-design", "flat", "-store", "pessimistic", "-workers", "1",
		"-full"}, &out, &complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	if !strings.Contains(out.String(), "runs=1 wrong=0") {
		t.Errorf("it printed:\n%s", out.String())
	}
}

// Replies that are kept are as many, by the saga and in rows.
func TestProgramKeepsReplies(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	if code := start([]string{"-requests", "300", "-design", "flat,append", "-bytes", "500", "-quiet", "50ms", "-for",
		"1ms"}, &out, &complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	if !strings.Contains(out.String(), "wrong=0") {
		t.Errorf("it printed:\n%s", out.String())
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-requests", "0"}, {"-workers", "9"}, {"-design", "round"}, {"-store", "adaptive"},
		{"-design", "tree", "-full"}, {"-bytes", "1000"}, {"-design", "tree", "-bytes", "1"},
		{"-unrelated", "0"}, {"-quiet", "0s"}, {"now"}, {"-what"}} {
		var out, complaints bytes.Buffer
		if code := start(args, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), "-h for help") {
			t.Errorf("%v ended with %d and %q, want 2 and where help is", args, code, complaints.String())
		}
	}
	var out bytes.Buffer
	if code := start([]string{"-h"}, &out, &out); code != 0 || !strings.Contains(out.String(), "-workers") {
		t.Errorf("-h ended with %d and %q", code, out.String())
	}
}
