package limit_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/limit"
	"github.com/jackc/pgx/v5/pgxpool"
)

// holdVariable makes this program a process that holds a slot until it is killed. It has the schema.
const holdVariable = "EDDA_TEST_HOLD"

// hold reports whether this process is such a process, and then holds a slot. It returns if it could not.
func hold() bool {
	schema := os.Getenv(holdVariable)
	if schema == "" {
		return false
	}
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err == nil {
		pgtest.Become(config, os.Getenv(holdVariable+"_ROLE"))
		var pool *pgxpool.Pool
		if pool, err = pgxpool.NewWithConfig(ctx, config); err == nil {
			var l *limit.Limiter
			if l, err = limit.New(pool, limit.Options{Schema: schema, Lease: 3 * time.Second,
				PollOnly: pgdev.Pooled()}); err == nil {
				_, err = l.Acquire(ctx, "exports", 1)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	_, _ = fmt.Fprintln(os.Stdout, "held")
	select {}
}

// A process that is killed releases nothing. Its slot is free when its lease is over, and not before.
func TestSlotOfTheDeadIsFreeAfterItsLease(t *testing.T) {
	w := open(t)
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), "DATABASE_URL="+pgtest.DSN(t), holdVariable+"="+w.schema.Name(),
		holdVariable+"_ROLE="+w.pool.Config().ConnConfig.RuntimeParams["role"])
	holder.Stderr = os.Stderr
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	if err := holder.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = holder.Wait()
	micros := func(column string) int64 {
		return w.number("SELECT (extract(epoch FROM " + column + ") * 1000000)::bigint FROM :schema.slot")
	}
	end := micros("expires")
	next := w.acquire(w.process(), 1)
	if granted := micros("granted"); granted < end {
		t.Errorf("it was granted %v before the end of the lease", time.Duration(end-granted)*time.Microsecond)
	}
	w.release(next)
}
