// page kill

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddatest"
)

// TestMain runs the tests, or the shop itself if a test has started this process.
func TestMain(m *testing.M) {
	if os.Getenv("SHOP_IS_A_CHILD") != "" {
		main()
		return
	}
	os.Exit(eddatest.Main(m))
}

func TestKilledShopGoesOn(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t)) // a database of the test's own
	t.Setenv("EDDA_PAGES", "off")
	t.Setenv("SHOP_IS_A_CHILD", "yes")
	kill, says := start(t, "7")
	says("order 7: 1990 cents are paid")
	kill() // in the middle of the order: it waits for its shipping
	_, says = start(t)
	says("order 7: shipped")
}

// start starts the shop as a process of its own. The function says returns when the shop has logged a line with text.
func start(t *testing.T, numbers ...string) (kill func(), says func(text string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	shop := exec.CommandContext(ctx, os.Args[0], numbers...)
	logged, err := shop.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = shop.Process.Kill() // SIGKILL: the process has no time for anything
		_ = shop.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(logged)
	return kill, func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the shop ended and did not say %q: %v", text, lines.Err())
	}
}

// end
