package main

import (
	"errors"
	"testing"
)

func TestBankTakesMoneyOnceForAKey(t *testing.T) {
	b := newBank()
	if err := b.charge("a", 1990, euro); !errors.Is(err, errBroken) {
		t.Errorf("the first answer is %v, want %v", err, errBroken)
	}
	if err := b.charge("a", 1990, euro); err != nil || len(b.taken) != 1 {
		t.Errorf("the second answer is %v, and money was taken %d times", err, len(b.taken))
	}
}
