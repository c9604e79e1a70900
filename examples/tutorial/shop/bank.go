package main

import (
	"cmp"
	"errors"
	"log"
	"os"
	"sync"
)

// bank stands in for a bank on the other side of a network, which breaks now and then.
type bank struct {
	key   string // by which the bank knows us
	mu    sync.Mutex
	taken map[string]int // cents, by the key of the request
}

var (
	errBroken  = errors.New("bank: the connection broke before the answer came")
	errRevoked = errors.New("bank: your key is revoked")
)

// thisYear is the key that the bank accepts.
const thisYear = "2026"

func newBank() *bank {
	return &bank{key: cmp.Or(os.Getenv("BANK_KEY"), thisYear), taken: map[string]int{}}
}

// charge takes money once for each request. The first answer for each request is lost on its way.
func (b *bank) charge(request string, cents int, currency string) error {
	if b.key != thisYear {
		return errRevoked
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.taken[request]; known {
		log.Printf("bank: %s again, nothing is taken", request)
		return nil
	}
	log.Printf("bank: %s takes %d cents in %s", request, cents, currency)
	b.taken[request] = cents
	return errBroken
}
