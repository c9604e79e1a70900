// page bank

package main

import (
	"errors"
	"log"
	"sync"
)

// bank stands in for a bank on the other side of a network, which breaks now and then.
type bank struct {
	mu    sync.Mutex
	taken map[string]int // cents, by the key of the request
}

var errBroken = errors.New("bank: the connection broke before the answer came")

// charge takes money once for each key. The first answer for each key is lost on its way.
func (b *bank) charge(key string, cents int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.taken[key]; known {
		log.Printf("bank: %s again, nothing is taken", key)
		return nil
	}
	log.Printf("bank: %s takes %d cents", key, cents)
	b.taken[key] = cents
	return errBroken
}

// end
