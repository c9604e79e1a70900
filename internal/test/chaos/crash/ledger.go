package crash

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed crash.sql
var ledgerSQL string

//go:embed checks.sql
var checksSQL string

var sql = lab.SQL(ledgerSQL + "\n" + checksSQL)

// fate is where a message must end.
type fate string

const (
	handled       fate = "handled"
	dead          fate = "dead"
	discarded     fate = "discarded"
	handledOrDead fate = "handled or dead" // there may be no instance for it
	answered      fate = "answer"          // handled, or discarded because the instance that asked has completed
	timer         fate = "timer"           // handled once, or cancelled
)

// ref is one message on its way to one endpoint, as the ledger has it.
type ref struct {
	ID       saga.ID
	Endpoint string
	Plan     string
	Fate     fate
	Given    bool    // the sender chose the id
	Instance saga.ID // with answered: the instance that asked
}

// queueSent writes down what was sent, in the transaction that sends it.
func queueSent(b *pgx.Batch, by string, refs ...ref) {
	for _, r := range refs {
		var instance *string
		if text := r.Instance.String(); !r.Instance.IsZero() {
			instance = &text
		}
		b.Queue(sql.Get("crash_sent"), r.ID.String(), r.Endpoint, r.Plan, string(r.Fate), r.Given, instance, by)
	}
}

// number runs a statement that returns one.
func (a *arena) number(ctx context.Context, name string, args ...any) (n int64, err error) {
	if err = a.Pool.QueryRow(ctx, sql.Get(name), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// checks are run after every phase, when all queues are empty.
var checks = []string{
	"check_places", "check_counters", "check_instances", "check_versions", "check_keys",
	"check_timers", "check_ids", "check_tally", "check_queues",
}

func (a *arena) check(ctx context.Context, q lab.Querier) error {
	if err := a.CheckAll(ctx, q, checks...); err != nil || a.holes {
		return err
	}
	return a.judgeHistory(ctx, q)
}

// judge checks everything.
func (a *arena) judge(ctx context.Context) error {
	if err := a.check(ctx, a.Pool); err != nil {
		return err
	}
	n, err := a.deadlocks()
	a.Expect(n == a.deadlocksBefore, "deadlocks", "Postgres logged %d deadlocks", n-a.deadlocksBefore)
	return err
}

// deadlocks counts them in the server's log. The counter of pg_stat_database comes late, and a crash of the server
// forgets it.
func (a *arena) deadlocks() (int, error) { return a.Server.CountInLog("ERROR:  deadlock detected") }
