package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/edda-go/edda/internal/base/run"
)

func TestGateClosesWhenAllHaveLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g run.Gate
		if !g.Enter() {
			t.Fatal("the gate is closed from the start")
		}
		closed := make(chan struct{})
		go func() { g.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while somebody was in")
		default:
		}
		if g.Enter() {
			t.Error("somebody came in while it was being closed")
		}
		g.Leave()
		<-closed
		g.Close() // again
	})
}
