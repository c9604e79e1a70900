//go:build failover

package failover

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// freeze stops all processes of a server, which answers nothing any more and closes no connection: so does a machine
// that is gone.
func (w *world) freeze(s *pgdev.Server) {
	w.Helper()
	pool := w.poolOf(s)
	var first string
	w.must(pool.QueryRow(w.Context(), "SELECT pg_read_file('postmaster.pid')").Scan(&first))
	first, _, _ = strings.Cut(first, "\n")
	rows, err := pool.Query(w.Context(), "SELECT pid::text FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
	w.must(err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	pool.Close()
	for _, text := range append([]string{first}, all...) {
		pid, err := strconv.Atoi(text)
		w.must(err)
		process, err := os.FindProcess(pid)
		w.must(err)
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			continue // it has ended in the meantime
		}
		w.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) })
	}
}

// The primary's machine dies without closing a connection. Workers detect that by themselves, and continue with the
// standby.
func TestFailoverFromAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	standby := w.standby()
	w.work()
	w.publishAll(0, 100)
	w.handled(w.pool, 100)
	w.caughtUp()
	w.until("the schedule runs", func() bool { return w.runs() > 0 })
	w.freeze(w.primary)
	runs := w.runs()
	w.must(standby.Promote(t.Context()))
	fresh := w.poolOf(standby)
	began := time.Now()
	_, b := w.program()
	w.bus = b
	w.publishAll(100, 110)
	t.Logf("published after %v", time.Since(began))
	ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(time.Minute))
	defer cancel()
	for {
		ids, _, deposits := w.counts(fresh)
		calls, gone := w.outside()
		if min(ids, deposits, calls, gone) == 110 && w.runs() > runs+2 {
			break
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			t.Fatalf("of 110 messages %d are in the ledger, %d in the accounts, %d were called for and %d are over "+
				"the border, and there were %d runs: %v", ids, deposits, calls, gone, w.runs()-runs, err)
		}
	}
	t.Logf("handled after %v", time.Since(began))
	w.hasOnce(fresh, 110)
}
