package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// untilBlocked returns when a session waits for a lock of tx.
func (w *world) untilBlocked(tx pgx.Tx) {
	w.t.Helper()
	holder := pgtest.Backend(w.t, tx)
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

// A second process writes the retry of a failed message, and records in the lane that the lane waits for that retry. A
// follower that comes to the lane at this moment must see both writes or neither.
func TestAFollowerSeesTheRetryThatIsWrittenWhileItWaitsForTheLane(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict}, 1, 2)
	table := w.queue("turns")
	w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, 'key-0', gen_random_uuid(),
		clock_timestamp() + interval '1 hour')`, queue)
	w.exec(`UPDATE `+table+` SET was_due = due, due = clock_timestamp() + interval '1 hour', claim = 1, owner = `+
		`gen_random_uuid() WHERE body = $1`, turnBody("key-0", 0))
	finish := w.begin()
	w.execTx(finish, `SELECT FROM edda.lane WHERE queue = $1 FOR UPDATE`, queue)
	w.execTx(finish, `UPDATE `+table+` SET due = clock_timestamp() + interval '1 second', claim = NULL, owner = `+
		`NULL WHERE body = $1`, turnBody("key-0", 0))
	w.execTx(finish, `UPDATE edda.lane l SET owner = NULL, waits_due = q.due, waits_id = q.id FROM `+table+
		` q WHERE l.queue = $1 AND q.body = $2`,
		queue, turnBody("key-0", 0))
	w.run(e)
	w.untilBlocked(finish)
	w.commit(finish)
	w.wantTurns(s, 1, 2, true)
}

func turnBody(key string, n int) []byte {
	return fmt.Appendf(nil, `{"Key":%q,"N":%d,"Fail":0}`, key, n)
}

// Lanes are locked in the byte order of their keys, where B comes before a, whatever the collation of the database is.
func TestLanesAreLockedInOneOrderInAnICUDatabase(t *testing.T) {
	w := newWorldIn(t, pgdev.ICUDSN(t), bus.Options{}, pgtest.RoleUnderTest)
	var all []string
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict}, 0, 0)
	for _, key := range []string{"a", "B"} {
		w.send(turn{Key: key})
		w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, $2, gen_random_uuid(),
			clock_timestamp() + interval '1 hour')`, queue, key)
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

// deadHands makes the messages of a key up to n the claims of a dead process, with leases that end at end.
func (w *world) deadHands(queue int, key string, n int, end string) {
	w.t.Helper()
	session := w.text(`SELECT gen_random_uuid()::text`)
	w.exec(`INSERT INTO edda.lane (queue, key, owner, session, until) VALUES ($1, $2, gen_random_uuid(), $3, `+end+`)`,
		queue, key, session)
	for i := range n {
		w.exec(`UPDATE `+w.queue("turns")+` SET was_due = due, due = `+end+
			` + $3 * interval '1 microsecond', claim = 1, owner = $2 WHERE body = $1`,
			turnBody(key, i), session, i+1)
	}
}

// The claims of a dead process are due when its leases end. Here they are behind a backlog whose head has more of their
// followers than one claim takes.
func TestWhatTheDeadHadClaimedComesBeforeItsFollowersInABacklog(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict, BatchMax: 4, Lease: 5 * time.Second}, 2, 40)
	w.deadHands(queue, "key-0", 3, `clock_timestamp()`)
	w.run(e)
	w.wantTurns(s, 2, 40, true)
}

// The lease of a message may end after the lease of its lane, because the message was claimed later.
func TestWhatTheDeadClaimedLastComesBeforeItsFollowers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict, Lease: 5 * time.Second}, 1, 20)
	w.deadHands(queue, "key-0", 3, `clock_timestamp()`)
	w.exec(`UPDATE `+w.queue("turns")+` SET due = due + interval '900 ms' WHERE body = $1`, turnBody("key-0", 2))
	w.run(e)
	w.wantTurns(s, 1, 20, true)
}

// A process that was frozen extends its claims after its lane has ended. The extension skips the lane, because a second
// process has locked it to revive it.
func TestWhatAThawedProcessExtendsComesBeforeItsFollowers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict, Lease: time.Second}, 1, 20)
	w.deadHands(queue, "key-0", 3, `clock_timestamp() - interval '5 seconds'`)
	w.exec(`UPDATE ` + w.queue("turns") + ` SET due = due + interval '6 seconds' WHERE owner IS NOT NULL`)
	w.run(e)
	w.wantTurns(s, 1, 20, true)
}

// A process that could not extend its leases loses a lane while it finishes a failed message of the lane. The retry
// must not come after the messages that the process had claimed and not begun.
func TestARetryIsNotOvertakenWhenItsLaneIsLost(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	fail, release := ended(t)
	process, proxy := w.proxied()
	o := bus.EndpointOptions{Ordered: bus.Strict, Lease: 15 * time.Second, Poll: 20 * time.Millisecond, Policy: quickly}
	part := bus.Handle(func(ctx *bus.Context, m turn) error {
		until(ctx, fail)
		return s.handle(ctx, m)
	}, bus.KeyedBy(func(m turn) string { return m.Key }))
	_, _ = w.preparedTurns(s, o, 0, 0)
	first := w.send(turn{Key: "k", Fail: 1})
	w.send(turn{Key: "k", N: 1})
	w.send(turn{Key: "k", N: 2})
	proxy.Set(faultproxy.Fault{Statement: "extend"})
	w.startOn(process, "turns", o, part)
	w.until("all are claimed", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("turns")+
			` WHERE owner IS NOT NULL`) == 3
	})
	w.until("the lease is about to end", func() bool {
		return w.count(`SELECT count(*) FROM edda.lane WHERE until < clock_timestamp() + interval '4 seconds'`) == 1
	})
	row := w.lockRow("turns", first.ID)
	release()
	w.untilWaiting("finish")
	w.until("the others are given up", func() bool { return len(eventsOf[event.ClaimLost](w)) > 0 })
	w.commit(row)
	w.wantTurns(s, 1, 3, true)
}

// An extension that its process has given up may reach the database after the next. It must not shorten the lane.
func TestALateExtensionDoesNotShortenALane(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	end, release := ended(t)
	o := bus.EndpointOptions{Ordered: bus.Strict, Lease: 9 * time.Second, Poll: 20 * time.Millisecond}
	part := func(process string) bus.Part {
		return bus.Handle(func(ctx *bus.Context, m turn) error {
			defer h.take(ctx, process, m.N)()
			until(ctx, end)
			return nil
		}, bus.KeyedBy(func(m turn) string { return m.Key }))
	}
	w.start("turns", o, part("a"))
	w.send(turn{Key: "k"})
	w.until("it runs", func() bool { return h.number() == 1 })
	queue := w.count(`SELECT id FROM edda.queue WHERE endpoint = 'turns'`)
	owner, until := w.text(`SELECT owner::text FROM edda.lane`), w.text(`SELECT until::text FROM edda.lane`)
	extend, err := bus.QueueSQL(w.bus, turn{}.Kind(), "turns", "extend_lanes")
	if err != nil {
		t.Fatal(err)
	}
	var sooner bool
	// Each extension skips a row that a concurrent extension has locked: this one is repeated until it has the lane.
	late := func(tx pgx.Tx) error {
		for extended := int64(0); extended == 0; {
			tag, err := tx.Exec(t.Context(), extend, queue, []string{"k"}, owner, time.Now().Add(-time.Hour))
			if err != nil {
				return err
			}
			extended = tag.RowsAffected()
		}
		return tx.QueryRow(t.Context(), w.sql(`SELECT until < $1::text::timestamptz FROM edda.lane`),
			until).Scan(&sooner)
	}
	if err := pgx.BeginTxFunc(t.Context(), w.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, late); err != nil ||
		sooner {
		t.Errorf("the lane ends sooner: %t, %v", sooner, err)
	}
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "turns", o, part("b"))
	w.until("the lease is extended", func() bool {
		return w.count(`SELECT count(*) FROM edda.lane WHERE until > $1::text::timestamptz`, until) == 1
	})
	h.want(t)
	if n := h.number(); n != 1 {
		t.Errorf("it was begun %d times", n)
	}
	release()
	w.untilEmpty("turns")
}

// No claim asks for the lane of a dead process, because the messages in hand and at the head of the queue have other
// keys: a poll revives it.
func TestLanesOfTheDeadAreRevivedInABacklogOfOthers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	first, release := make(chan turn, 1000), make(chan struct{})
	defer close(release)
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Concurrency: 1, BatchMax: 1, Lease: time.Second,
		Poll: 20 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m turn) error {
			first <- m
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}, bus.KeyedBy(func(m turn) string { return m.Key })))
	w.makeQueue("turns")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sendTurns(2, 1, nil)
	queue := w.count(`SELECT id FROM edda.queue WHERE endpoint = 'turns'`)
	w.deadHands(queue, "key-0", 1, `clock_timestamp() + interval '1 hour'`)
	w.run(e)
	if m := await(w, "the other key", first); m.Key != "key-1" {
		t.Errorf("the first is %v", m)
	}
	w.exec(`WITH l AS (UPDATE edda.lane SET until = clock_timestamp() WHERE key = 'key-0' RETURNING until)
		UPDATE `+w.queue("turns")+` SET due = l.until + interval '1 microsecond' FROM l WHERE body = $1`,
		turnBody("key-0", 0))
	w.until("the dead one's message is at its turn", func() bool {
		return w.count(`SELECT count(*) FROM edda.lane l JOIN `+w.queue("turns")+
			` q ON q.due = l.waits_due AND q.id = l.waits_id WHERE l.key = 'key-0' AND q.owner IS NULL`) == 1
	})
}

// A process that was frozen has not read that a second process owns its lane by now: messages that it claims in the
// lane must be parked.
func TestNothingIsClaimedInALaneThatIsLost(t *testing.T) {
	w := newWorld(t, bus.Options{})
	began := make(chan turn, 10)
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Lease: time.Minute, Poll: 20 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m turn) error {
			began <- m
			<-ctx.Done()
			return ctx.Err()
		}, bus.KeyedBy(func(m turn) string { return m.Key })))
	w.run(e)
	w.send(turn{Key: "k"})
	await(w, "the first", began)
	w.exec(`UPDATE edda.lane SET owner = gen_random_uuid()`)
	w.send(turn{Key: "k", N: 1})
	w.until("the second is parked", func() bool { return w.count(`SELECT count(*) FROM edda.parked`) == 1 })
	w.until("the first has been told", func() bool { return len(eventsOf[event.ClaimLost](w)) == 1 })
}

// A finish took over parked messages, and its outcome is unknown. It was committed: the messages that came back must
// not be overtaken.
func TestAFinishOfUnknownOutcomeDoesNotLeaveItsLane(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	hold := make(chan struct{})
	process, proxy := w.proxied()
	w.startOn(process, "turns", bus.EndpointOptions{Ordered: bus.Strict, Lease: 3 * time.Second, Poll: time.Minute},
		bus.Handle(func(ctx *bus.Context, m turn) error {
			if m.N == 0 {
				<-hold
			}
			return s.handle(ctx, m)
		}, bus.KeyedBy(func(m turn) string { return m.Key })))
	w.send(turn{Key: "k"})
	w.until("the first runs", func() bool { return w.count(`SELECT count(*) FROM edda.lane`) == 1 })
	queue := w.count(`SELECT id FROM edda.queue WHERE endpoint = 'turns'`)
	w.exec(`INSERT INTO edda.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body)
		SELECT $1, 'k', was_due + interval '1 microsecond', gen_random_uuid(), sent, 0, 0, kind, header, $2 FROM `+
		w.queue("turns"), queue, turnBody("k", 1))
	proxy.Set(faultproxy.Fault{Statement: "commit", N: 1, Do: faultproxy.DropReply})
	close(hold)
	w.until("what was parked has come back", func() bool { return w.count(`SELECT count(*) FROM edda.parked`) == 0 })
	w.send(turn{Key: "k", N: 2})
	w.wantTurns(s, 1, 3, true)
}

// A dead process had also claimed a message whose key cannot be read, so that it has no lane. The revival of a lane
// does not touch that message.
func TestRevivalParksNothingOfOtherLanes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e, queue := w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict, Lease: time.Hour}, 1, 3)
	w.raw("turn.take", `{`, `{}`, "turns")
	w.deadHands(queue, "key-0", 3, `clock_timestamp()`)
	w.exec(`UPDATE ` + w.queue("turns") + ` SET was_due = due, due = clock_timestamp() + interval '1 hour', claim = 1,
		owner = (SELECT session FROM edda.lane) WHERE body = '{'`)
	w.run(e)
	w.until("the turns are taken", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.seen["key-0"]) == 3
	})
	w.want(1, `SELECT count(*) FROM `+w.queue("turns")+` WHERE owner IS NOT NULL AND body = '{'`)
	w.want(0, `SELECT count(*) FROM edda.parked WHERE key = ''`)
}
