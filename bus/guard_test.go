package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Each test here fails when one guard of the engine is removed, see internal/test/mutants.

// notes is a handler that records the number of each message.
func (w *world) notes() bus.Part {
	return bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error { return w.note(ctx, tx, m.N) })
}

// A take waited for a message that a concurrent transaction had locked, and every worker waited behind it.
func TestTakeWaitsForNobody(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	w.fill("notes", w.notes(), 1, 2)
	holder := w.begin()
	w.execTx(holder, `SELECT FROM `+w.queue("notes")+` ORDER BY due, id LIMIT 1 FOR UPDATE`)
	w.start("notes", bus.EndpointOptions{}, w.notes())
	waits := false
	w.until("the second message is handled, or a worker waits", func() bool {
		waits = w.waiting("take")
		return waits || w.noted() == "2"
	})
	w.commit(holder)
	if waits {
		t.Fatal("a take waits for a message that somebody holds")
	}
	w.untilEmpty("notes")
	if got := w.noted(); got != "1 2" {
		t.Errorf("noted %q, want %q%s", got, "1 2", w.story())
	}
}

// waiting reports whether a statement of this schema waits for a lock.
func (w *world) waiting(statement string) bool {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
		AND query LIKE '-- name: ' || $1 || '%' AND position($2 IN query) > 0`, statement, w.schema) > 0
}

// A message whose row could not be deleted had its effects all the same, and had them again when it was taken again.
func TestEffectsAreNothingWithoutTheDelete(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(w *world) (part bus.Part, effect string){
		"handler": func(w *world) (bus.Part, string) {
			w.ledger()
			return w.notes(), `SELECT coalesce(sum(n), 0) FROM edda.ledger`
		},
		"saga": func(w *world) (bus.Part, string) {
			w.listener()
			return bus.Saga(tallies(saga.Optimistic, nil)),
				`SELECT coalesce(sum((state ->> 'Sum')::int), 0) FROM edda.saga`
		},
	}
	refusals := map[string]string{
		"fails":          `RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'not now'`,
		"deletes no row": `RETURN NULL`,
	}
	for kind, open := range kinds {
		for refusal, body := range refusals {
			t.Run(kind+" "+refusal, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				part, effect := open(w)
				w.fill("works", part, 7)
				w.exec(`CREATE FUNCTION edda.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body +
					`; END $$`)
				w.exec(`CREATE TRIGGER refuse BEFORE DELETE ON ` + w.queue("works") +
					` FOR EACH ROW EXECUTE FUNCTION edda.refuse()`)
				w.start("works", bus.EndpointOptions{}, part)
				w.until("a batch fails, or writes", func() bool {
					return len(eventsOf[event.BatchFailed](w)) > 0 ||
						w.count(effect) > 0
				})
				if n := w.count(effect); n != 0 {
					t.Fatalf("the effect is %d while the message is still in the queue%s", n, w.story())
				}
				w.exec(`DROP TRIGGER refuse ON ` + w.queue("works"))
				w.untilEmpty("works")
				w.want(7, effect)
			})
		}
	}
}

func TestDelayedMessageIsNotTakenEarly(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	w.install("notes", w.notes())
	w.send(add{N: 1}, saga.Delay(time.Hour))
	w.send(add{N: 2})
	w.start("notes", bus.EndpointOptions{}, w.notes())
	w.until("something is handled", func() bool { return w.noted() != "" })
	if got := w.noted(); got != "2" {
		t.Errorf("noted %q, want 2: the first is due in an hour", got)
	}
	w.want(1, `SELECT count(*) FROM `+w.queue("notes"))
}

// A timeout was counted from the moment when the batch took its messages, which is before the step.
func TestTimeoutCountsFromItsStep(t *testing.T) {
	w := newWorld(t, bus.Options{})
	asked := make(chan time.Time, 1)
	w.start("alarms", bus.EndpointOptions{}, bus.Saga(alarms(saga.Pessimistic)),
		bus.Use(func(next bus.Handler) bus.Handler {
			return func(ctx context.Context, d *saga.Delivery) error {
				var now time.Time
				if err := w.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
					return err
				}
				asked <- now
				return next(ctx, d)
			}
		}))
	w.send(remind{Key: "a", In: time.Hour})
	now := await(w, "the step", asked)
	w.until("it is pending", func() bool { return w.count(`SELECT count(timeouts) FROM edda.saga`) == 1 })
	due, err := time.Parse(time.RFC3339Nano, w.text(`SELECT timeouts -> 0 ->> 'due' FROM edda.saga`))
	if err != nil {
		t.Fatal(err)
	}
	if early := now.Add(time.Hour).Sub(due); early > 0 {
		t.Errorf("the timeout is due %v early", early)
	}
}

// If a concurrent transaction changes an instance while a step runs, the step's save loses, until the instance is
// loaded with its lock. A saga that never locks waits a moment after each loss, and succeeds when the concurrent
// changes stop.
func TestInstanceThatLostIsLocked(t *testing.T) {
	for after, want := range map[int]int{0: 2, 1: 1, 4: 4, -1: 5} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			changes := 0 // made by a concurrent transaction while a step runs; there is one worker
			def := talliesOf(saga.Options{Store: saga.Optimistic, LockAfter: after}, func(m saga.Message) {
				if m, ok := m.(add); !ok || m.N != 2 || changes >= 5 {
					return
				}
				tag, err := w.pool.Exec(t.Context(), w.sql(`UPDATE edda.saga SET version = version + 1
					WHERE ctid = ANY (ARRAY(SELECT ctid FROM edda.saga FOR UPDATE SKIP LOCKED))`))
				if err != nil {
					t.Error(err)
				}
				changes += int(tag.RowsAffected())
			})
			stop := w.start("tallies", bus.EndpointOptions{}, bus.Saga(def))
			w.send(add{Key: "a", N: 1})
			w.untilEmpty("tallies")
			w.send(add{Key: "a", N: 2})
			w.untilEmpty("tallies")
			stop()
			if changes != want {
				t.Errorf("the instance was changed by others %d times while a step ran, want %d: then it is locked",
					changes, want)
			}
			if got := w.toldSums(); got != "1 3" {
				t.Errorf("told %q, want %q", got, "1 3")
			}
		})
	}
}

// A policy pauses the endpoint because of a failed step. When the save of that step is lost, the endpoint is not
// paused.
func TestFailureOfALostStepPausesNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":0}')`)
	calls := 0 // of a, all of one worker
	unlucky := bus.Use(func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if bytes.Contains(d.Body, []byte(`"b"`)) {
				return next(ctx, d)
			}
			if calls++; calls > 1 {
				return next(ctx, d)
			}
			_, err := w.pool.Exec(ctx, w.sql(`UPDATE edda.saga SET version = version + 1 WHERE key = 'a'`))
			return errors.Join(errNo, err)
		}
	})
	def := bus.Saga(tallies(saga.Optimistic, nil))
	w.install("tallies", def)
	w.send(add{Key: "b", N: 2})
	w.send(add{Key: "a", N: 1})
	w.start("tallies", bus.EndpointOptions{Concurrency: 1,
		Policy: recoverability.Always(recoverability.PauseEndpoint("a step failed"))}, def, unlucky)
	w.untilEmpty("tallies")
	w.want(3, `SELECT sum((state ->> 'Sum')::int) FROM edda.saga`)
	w.want(0, `SELECT count(*) FROM edda.endpoint_setting WHERE paused_at IS NOT NULL`)
}

// A step failed, was repeated at once, and then lost its instance. Its failure did not count, and cost the message an
// attempt all the same.
func TestFailureOfALostStepIsNoAttempt(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":0}')`)
	attempts := "" // that the steps read, all of one worker
	calls := 0
	unlucky := bus.Use(func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			calls++
			attempts += fmt.Sprint(d.Info.Attempt)
			switch calls {
			case 2:
				return errNo
			case 1, 3:
				if _, err := w.pool.Exec(ctx, w.sql(`UPDATE edda.saga SET version = version + 1`)); err != nil {
					return err
				}
			}
			return next(ctx, d)
		}
	})
	def := bus.Saga(tallies(saga.Optimistic, nil))
	w.install("tallies", def)
	w.send(add{Key: "a", N: 1})
	stop := w.start("tallies", bus.EndpointOptions{}, def, unlucky)
	w.untilEmpty("tallies")
	stop()
	if attempts != "1121" {
		t.Errorf("the steps were told to be attempts %q, want %q", attempts, "1121")
	}
	w.want(1, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
}

// The drain was over when the handler had returned: the COMMIT was cancelled on its way, and its outcome was unknown.
func TestEndedStepIsCommittedAfterTheDrain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	came := make(chan bool, 1)
	part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
		if err := w.note(ctx, tx, m.N); err != nil {
			return err
		}
		came <- true
		<-ctx.Done()
		return nil
	})
	w.fill("notes", part, 1)
	e := w.endpoint("notes", bus.EndpointOptions{Drain: time.Millisecond}, part)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	await(w, "the handler", came)
	cancel()
	if err := await(w, "the end", ended); !errors.Is(err, bus.ErrDrain) {
		t.Errorf("%v, want ErrDrain", err)
	}
	if got := w.noted(); got != "1" || w.rows("notes") != 0 {
		t.Errorf("noted %q, and %d messages are left; want it handled%s", got, w.rows("notes"), w.story())
	}
}

// A batch had read the subscribers, and one was added before it committed: the event missed it. Here the batch is
// stopped inside its COMMIT.
func TestSubscriberWaitsForABatchThatPublishes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	w.exec(`CREATE FUNCTION edda.hold() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock(1701, hashtext(TG_TABLE_SCHEMA)); RETURN NULL; END $$`)
	w.exec(`CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON edda.ledger
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION edda.hold()`)
	holder := w.begin()
	w.execTx(holder, `SELECT pg_advisory_xact_lock(1701, hashtext($1))`, w.schema)
	w.start("relay", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
		ctx.Publish(shipped{Order: "7"})
		return w.note(ctx, tx, m.N)
	}))
	w.send(add{N: 1})
	w.until("the batch commits", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND classid = 1701 AND objid::bigint = hashtext($1)::bigint & 4294967295`, w.schema) == 1
	})
	late := w.endpoint("late", bus.EndpointOptions{}, bus.HandleTx(hears))
	w.makeQueue(late.Name())
	installed := make(chan error, 1)
	go func() { installed <- late.Install(t.Context()) }()
	w.until("the subscriber waits, or is there", func() bool {
		return w.waiting("lock_subscriptions") ||
			len(installed) > 0
	})
	early := len(installed) > 0
	w.commit(holder)
	if err := await(w, "the install", installed); err != nil {
		t.Error(err)
	}
	w.untilEmpty("relay")
	if early {
		t.Errorf("the install returned before the event was committed, and %d copies of it reached the subscriber",
			w.rows("late"))
	}
}
