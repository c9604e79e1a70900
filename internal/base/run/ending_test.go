package run_test

import (
	"context"
	"errors"
	"testing"

	"github.com/edda-go/edda/internal/base/run"
)

func TestEndingIsTheFirstThatGaveUp(t *testing.T) {
	t.Parallel()
	first := errors.New("first")
	var e run.Ending
	e.Begin(t.Context())
	e.GiveUp(first)
	e.GiveUp(errors.New("second"))
	if err := e.Err(e.Await(t.Context())); !errors.Is(err, first) {
		t.Error(err)
	}
	e.Begin(t.Context())
	ended, end := context.WithCancel(t.Context())
	end()
	if err := e.Await(ended); err != nil {
		t.Errorf("the next Run ended with an error of the last one: %v", err)
	}
}

func TestDrainCountsWhenTheRunIsToEnd(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	var e run.Ending
	e.Begin(ctx)
	e.Drained()
	if err := e.Err(nil); err != nil {
		t.Errorf("a term was cancelled while the Run goes on: %v", err)
	}
	end()
	e.Drained() // in the same instant, as with a Drain of 1ms
	if err := e.Err(nil); !errors.Is(err, run.ErrDrain) {
		t.Errorf("%v, want ErrDrain", err)
	}
}
