package bus_test

import (
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/jackc/pgx/v5"
)

// The limit of 5 ms on lock waits of handlers still applied when the batch was written. There a batch waits for no lock
// of a message, but Postgres locks a table for a moment while it extends the file, and on a busy disk that moment is
// longer than 5 ms: batches of handlers that send into one queue were rolled back, again and again.
func TestWritingABatchWaitsForATableThatGrows(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	sessions, goOn := make(chan int, 100), make(chan bool)
	sends := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
		if m.N == 0 {
			var pid int
			if err := tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
				return err
			}
			sessions <- pid
			<-goOn
		}
		ctx.Send(told{Key: m.Key, Sum: m.N})
		return nil
	})
	w.makeQueue("tallies")
	w.start("tallies", bus.EndpointOptions{Concurrency: 1}, sends)
	sent := 0
	three := func() (pid int) {
		if err := w.bus.InTx(t.Context(), func(tx pgx.Tx) (err error) {
			for n := range 3 {
				if _, err = w.bus.SendTx(t.Context(), tx, add{Key: "a", N: n}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sent += 3
		return await(w, "the handler", sessions)
	}
	// Preparing a statement waits for the lock of this test too, in a handler's time. So the batch that counts runs in
	// a session that has written before and has prepared all statements. The pool has few sessions, so this loop ends.
	written := map[int]bool{}
	pid := three()
	for ; !written[pid]; pid = three() {
		written[pid] = true
		goOn <- true
		w.untilEmpty("tallies")
	}
	holder := w.begin()
	w.execTx(holder, `LOCK TABLE `+w.queue("listener")+` IN SHARE MODE`)
	close(goOn)
	w.until("the write has waited for longer than a handler may", func() bool {
		return len(eventsOf[event.BatchFailed](w)) > 0 || w.count(`SELECT count(*) FROM pg_stat_activity
			JOIN pg_locks USING (pid) WHERE query LIKE '-- name: insert%' AND position($1 IN query) > 0
			AND clock_timestamp() - waitstart > interval '30 ms'`, w.schema) > 0
	})
	w.commit(holder)
	w.untilEmpty("tallies")
	w.want(sent, `SELECT count(*) FROM `+w.queue("listener"))
	if failed := eventsOf[event.BatchFailed](w); len(failed) > 0 {
		t.Errorf("a batch was rolled back: %v", failed[0].Err)
	}
}
