package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/sagatest"
)

// The program as README.md shows it: it makes its tables, and an order is paid.
func TestProgram(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	t.Setenv(eddadev.PagesVariable, "127.0.0.1:0")
	printed, out := io.Pipe()
	log.SetOutput(out)
	defer log.SetOutput(io.Discard)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.Contains(lines.Text(), ": 1990 cents are paid") {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the program did not say that the order is paid: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestOrderWithoutMoneyEnds(t *testing.T) {
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Advance(time.Minute); err != nil || r.Live("7") { // no test waits
		t.Errorf("an unpaid order goes on: %v", err)
	}
}
