package eddatest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
)

// passes runs a test, with the test's output kept out of the example's.
func passes(test func(*testing.T)) bool {
	out := os.Stdout
	os.Stdout = os.Stderr
	defer func() { os.Stdout = out }()
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestBank", F: test}})
}

// A test with its own Postgres: an installed one is started, and leaves nothing behind.
func ExamplePool() {
	testBank := func(t *testing.T) {
		pool := eddatest.Pool(t)
		b, err := bus.New(pool, bus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.InstallQueue(t.Context(), "bank", "card.charge"); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("passes:", passes(testBank))
	// Output: passes: true
}
