package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/jackc/pgx/v5"
)

// untilBlocked returns when a session waits for a lock of tx.
func (w *world) untilBlocked(tx pgx.Tx) {
	w.t.Helper()
	holder := int32(tx.Conn().PgConn().PID())
	w.until("somebody waits for the transaction", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, holder) > 0
	})
}

// preparedTurns is an endpoint that does not run yet, with n messages of each key in its queue.
func (w *world) preparedTurns(s *turns, o bus.EndpointOptions, keys, n int) (e *bus.Endpoint, queue int) {
	w.t.Helper()
	o.Poll = 20 * time.Millisecond
	e = w.endpoint("turns", o, s.part())
	w.makeQueue("turns")
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.sendTurns(keys, n, nil)
	return e, w.count(`SELECT id FROM edda.queue WHERE endpoint = 'turns'`)
}

// Another process writes the retry of a message that failed, and says in the lane that it waits for that. A follower that comes to
// the lane at this moment must see both or none of it.
func TestAFollowerSeesTheRetryThatIsWrittenWhileItWaitsForTheLane(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict}, 1, 2)
	table := w.queue("turns")
	w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, 'key-0', gen_random_uuid(), clock_timestamp() + interval '1 hour')`, queue)
	w.exec(`UPDATE `+table+` SET turn = due, due = clock_timestamp() + interval '1 hour', claim = 1, owner = gen_random_uuid() WHERE body = $1`, turnBody("key-0", 0))
	finish := w.begin()
	w.execTx(finish, `SELECT FROM edda.lane WHERE queue = $1 FOR UPDATE`, queue)
	w.execTx(finish, `UPDATE `+table+` SET due = clock_timestamp() + interval '1 second', claim = NULL, owner = NULL WHERE body = $1`, turnBody("key-0", 0))
	w.execTx(finish, `UPDATE edda.lane l SET owner = NULL, waits_due = q.due, waits_id = q.id FROM `+table+` q WHERE l.queue = $1 AND q.body = $2`,
		queue, turnBody("key-0", 0))
	w.run(e)
	w.untilBlocked(finish)
	w.commit(finish)
	w.wantTurns(s, 1, 2, true)
}

func turnBody(key string, n int) []byte {
	return fmt.Appendf(nil, `{"Key":%q,"N":%d,"Fail":0}`, key, n)
}

// Lanes are locked in the order of the bytes of their keys, in which B comes before a, whatever the collation of the database says.
func TestLanesAreLockedInOneOrderInADatabaseOfAnyCollation(t *testing.T) {
	w := newWorldIn(t, pgdev.ICUDSN(t), bus.Options{}, pgtest.RoleUnderTest)
	var all []string
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict}, 0, 0)
	for _, key := range []string{"a", "B"} {
		w.send(turn{Key: key})
		w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, $2, gen_random_uuid(), clock_timestamp() + interval '1 hour')`, queue, key)
		all = append(all, key)
	}
	first := w.begin()
	w.execTx(first, `SELECT FROM edda.lane WHERE queue = $1 AND key = 'B' FOR UPDATE`, queue)
	w.run(e)
	w.untilBlocked(first)
	second := w.begin()
	w.execTx(second, `SELECT FROM edda.lane WHERE queue = $1 AND key = 'a' FOR UPDATE NOWAIT`, queue)
	w.execTx(first, `DELETE FROM edda.lane WHERE queue = $1 AND key = 'B'`, queue)
	w.execTx(second, `DELETE FROM edda.lane WHERE queue = $1 AND key = 'a'`, queue)
	w.commit(second)
	w.commit(first)
	w.until("both are handled", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(all, func(key string) bool { return len(s.seen[key]) == 0 })
	})
}
