//go:build !later

package main

import (
	"log"

	"github.com/edda-go/edda/bus"
)

// run stands in for what is in later.go.
func run(func(*bus.Context, Charge) error) {
	log.Fatal("this program waits for bus.Handle, which is not in this version")
}
