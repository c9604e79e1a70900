package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := pgdev.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
