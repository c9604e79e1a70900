//go:build failover

package failover

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func sleep(ctx context.Context, d time.Duration) error { return run.Sleep(ctx, d) }

func portOf(t *testing.T, s *pgdev.Server) uint16 {
	t.Helper()
	config, err := pgx.ParseConfig(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return config.Port
}

// idOf is the id of a message of a test, the same each time.
func idOf(test string, n int) (id saga.ID) {
	sum := sha256.Sum256(fmt.Append(nil, test, n))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8
	return id
}

func (w *world) copied(o pgdev.CopyOptions) *pgdev.Server {
	w.Helper()
	c, err := w.primary.Copy(w.Context(), o)
	w.must(err)
	w.Cleanup(func() { w.must(c.Stop()) })
	return c
}

func (w *world) poolOf(s *pgdev.Server) *pgxpool.Pool {
	w.Helper()
	pool, err := pgxpool.New(context.Background(), s.DSN())
	w.must(err)
	w.Cleanup(pool.Close)
	return pool
}

// A primary is killed under load and its synchronous standby promoted, while two processes run. Each message that was
// confirmed is handled, once, and the processes continue by themselves.
func TestFailoverLosesNothingThatWasConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	standby := w.standby()
	w.exec(w.pool, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	w.exec(w.pool, "SELECT pg_reload_conf()")
	w.until("the standby is synchronous", func() bool {
		return w.ask(w.pool, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	})
	w.work()
	w.work()
	w.publishAll(0, 200)
	operator, err := operate.New(w.poolOf(standby), operate.Options{})
	w.must(err)
	if queues, err := operator.Queues().List(t.Context()); err != nil || len(queues) != 4 {
		t.Errorf("the standby shows %d queues, %v", len(queues), err)
	}
	loaded, failed := make(chan bool), make(chan error, 1)
	go func() { // continues through the failover
		for n := 200; n < 600; n++ {
			if n == 300 {
				close(loaded)
			}
			id, err := w.publish(t.Context(), n)
			if err != nil {
				failed <- err
				return
			}
			w.sent = append(w.sent, id)
		}
		failed <- nil
	}()
	select {
	case <-loaded:
	case err := <-failed:
		t.Fatalf("the load ended before the failover: %v", err)
	}
	w.must(w.primary.Shut(t.Context(), pgdev.Immediate))
	w.must(standby.Promote(t.Context()))
	w.must(<-failed)
	w.handled(w.pool, 600)
	w.hasOnce(w.pool, 600)
}

// A standby that is behind takes over: commits that it had not received are gone, without an error to any client. A
// lost message that is sent again under its id is handled; the other messages are not handled again.
func TestAsynchronousFailoverLosesTheLastCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	standby := w.standby()
	w.work()
	w.publishAll(0, 50)
	w.handled(w.pool, 50)
	w.caughtUp()
	w.must(standby.Shut(t.Context(), pgdev.Fast))
	w.publishAll(50, 60)
	w.handled(w.pool, 60)
	w.must(w.primary.Shut(t.Context(), pgdev.Immediate))
	w.must(standby.Start(t.Context()))
	w.must(standby.Promote(t.Context()))
	w.until("the pool finds the new primary", func() bool { return w.pool.Ping(t.Context()) == nil })
	w.hasOnce(w.pool, 50)
	w.publishAll(40, 60) // ten that are not lost, and ten that are
	w.handled(w.pool, 60)
	w.hasOnce(w.pool, 60)
}

// A backup and an archive are restored to a moment when messages waited: these are handled again under their ids,
// messages that had been handled before are not, and messages that were sent later are gone.
func TestRestoreToAPointInTime(t *testing.T) {
	t.Parallel()
	archive := t.TempDir()
	for _, dir := range []string{archive, filepath.Dir(archive)} { // the server may run as a different user
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, map[string]string{"archive_mode": "on",
		"archive_command": "cp %p " + filepath.Join(archive, "%f")})
	w.connect(w.primary)
	stop := w.work()
	w.publishAll(0, 20)
	w.handled(w.pool, 20)
	restored := w.copied(pgdev.CopyOptions{Settings: map[string]string{"archive_mode": "off",
		"restore_command": "cp " + filepath.Join(archive, "%f") + " %p", "recovery_target_name": "noon",
		"recovery_target_action": "promote"}})
	w.publishAll(20, 30)
	w.handled(w.pool, 30)
	stop()
	w.publishAll(30, 40) // they wait
	w.exec(w.pool, "SELECT pg_create_restore_point('noon')")
	stop = w.work()
	w.publishAll(40, 50)
	w.handled(w.pool, 50)
	stop()
	w.exec(w.pool, "SELECT pg_switch_wal()")
	w.must(w.primary.Shut(t.Context(), pgdev.Fast)) // it archives before it ends
	w.must(restored.Start(t.Context()))
	admin := w.poolOf(restored)
	w.until("the restored database takes writes", func() bool { return !w.ask(admin, "SELECT pg_is_in_recovery()") })
	w.hasOnce(admin, 30)
	w.connect(restored)
	w.work()
	w.handled(admin, 40)
	rows, err := admin.Query(t.Context(), "SELECT id FROM ledger")
	w.must(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	w.must(err)
	again := map[saga.ID]int{}
	for _, id := range ids {
		again[saga.ID(id)]++
	}
	for n, id := range w.sent {
		if want := min(1, (49-n)/10); again[id] != want {
			t.Errorf("message %d has %d rows, want %d", n, again[id], want)
		}
	}
}
