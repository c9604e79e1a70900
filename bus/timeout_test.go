package bus_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/saga"
)

type remind struct {
	Key string
	In  time.Duration
}
type calm struct{ Key string }
type rang struct{ Asked time.Time }

func (remind) Kind() string { return "alarm.remind" }
func (calm) Kind() string   { return "alarm.calm" }
func (rang) Kind() string   { return "alarm.rang" }

type alarm struct{ Rang int }

// alarms is a saga with one named timeout, which can be moved, cancelled, and ended with its instance.
func alarms(store saga.Store) *saga.Definition {
	return saga.Define("alarm", saga.Options{Store: store},
		saga.StartedBy(func(m remind) string { return m.Key }, func(_ *alarm, ctx *saga.Context, m remind) error {
			ctx.Timeout(m.In, rang{}, saga.Named("ring"))
			return nil
		}),
		saga.Handles(func(m calm) string { return m.Key }, func(_ *alarm, ctx *saga.Context, _ calm) error {
			ctx.CancelTimeout("ring")
			return nil
		}),
		saga.Handles(func(m finish) string { return m.Key }, func(_ *alarm, ctx *saga.Context, _ finish) error {
			ctx.Complete()
			return nil
		}),
		saga.OnTimeout(func(s *alarm, _ *saga.Context, _ rang) error { s.Rang++; return nil }),
	)
}

const rangs = `SELECT (state ->> 'Rang')::int FROM edda.saga`

func TestCancelledTimeoutNeverFires(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("alarms", bus.EndpointOptions{}, bus.Saga(alarms(store)))
		w.send(remind{Key: "a", In: time.Hour})
		w.until("it is pending", func() bool {
			return w.count(
				`SELECT count(*) FROM edda.saga WHERE timeouts IS NOT NULL`) == 1
		})
		w.send(calm{Key: "a"})
		w.untilEmpty("alarms") // the row of the timeout goes with the cancel
		w.want(0, rangs)
		w.want(0, `SELECT count(timeouts) FROM edda.saga`)
	})
}

// A timeout was cancelled while a second worker had locked its row: the two waited for each other, or it fired after
// the cancel had been committed. The worker that fires is stopped at the given statement.
func TestTimeoutCancelledWhileFiringNeverFires(t *testing.T) {
	t.Parallel()
	for store, statement := range map[saga.Store]string{saga.Pessimistic: "load_by_id", saga.Optimistic: "save"} {
		t.Run(statement, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			e := w.install("alarms", bus.Saga(alarms(store)))
			w.send(remind{Key: "a", In: time.Hour})
			stop := w.run(e)
			w.until("it is pending", func() bool {
				return w.count(
					`SELECT count(*) FROM edda.saga WHERE timeouts IS NOT NULL`) == 1
			})
			stop()
			// One time for both: the row's due, and the due of the pending timeout, which a cancel uses to find the
			// row.
			w.exec(`UPDATE edda.saga SET timeouts = json_build_array(json_build_object('name', 'ring', 'kind',
				'alarm.rang',
				'due', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'id',
				timeouts -> 0 ->> 'id'))`)
			w.exec(`UPDATE ` + w.queue("alarms") +
				` SET due = (SELECT (timeouts -> 0 ->> 'due')::timestamptz FROM edda.saga)`)

			firing, goOn := make(chan struct{}), make(chan struct{})
			var once sync.Once
			release := func() { once.Do(func() { close(goOn) }) }
			t.Cleanup(release)
			b, proxy := w.proxied()
			proxy.Set(faultproxy.Fault{Statement: statement, N: 1,
				Do: faultproxy.Pause(func() { close(firing); <-goOn })})
			w.startOn(b, "alarms", bus.EndpointOptions{Concurrency: 1}, bus.Saga(alarms(store)))
			await(w, "the timeout to fire", firing)
			w.run(e)
			w.send(calm{Key: "a"})
			w.until("it is cancelled", func() bool { return w.count(`SELECT count(timeouts) FROM edda.saga`) == 0 })
			release()
			w.untilEmpty("alarms")
			w.want(0, rangs)
			w.want(1, `SELECT count(*) FROM edda.discarded WHERE reason = 'timeout was cancelled or replaced'`)
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		})
	}
}

func TestMovedTimeoutFiresOnce(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("alarms", bus.EndpointOptions{}, bus.Saga(alarms(store)))
		w.send(remind{Key: "a", In: time.Hour})
		w.until("it is pending", func() bool {
			return w.count(
				`SELECT count(*) FROM edda.saga WHERE timeouts IS NOT NULL`) == 1
		})
		w.send(remind{Key: "a", In: time.Millisecond})
		w.untilEmpty("alarms")
		w.want(1, rangs)
	})
}

// A timeout belongs to the instance that set it, not to its key.
func TestTimeoutOfAnEndedInstanceDoesNotReachTheNextOne(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := alarms(saga.Pessimistic)
	stop := w.start("alarms", bus.EndpointOptions{}, bus.Saga(def))
	w.send(remind{Key: "a", In: time.Hour})
	w.until("it is pending", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.saga WHERE timeouts IS NOT NULL`) == 1
	})
	stop()
	w.exec(`DELETE FROM edda.saga`) // completed by a worker that could not delete the row of the timeout
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'alarm', 'a', 1, 1, '{"Rang":0}')`)
	w.start("alarms", bus.EndpointOptions{}, bus.Saga(def))
	w.untilEmptyHurrying("alarms")
	w.want(0, rangs)
	w.want(1, `SELECT count(*) FROM edda.discarded WHERE kind = 'alarm.rang'`)
}

// A timeout counted from the begin of the transaction was early by the time that the batch had taken until then.
func TestTimeoutsNeverFireEarly(t *testing.T) {
	w := newWorld(t, bus.Options{})
	const timeouts = 200
	clock := func() (now time.Time, err error) {
		err = w.pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now)
		return now, err
	}
	var mu sync.Mutex
	notBefore := map[string]time.Time{}
	fired := map[string]time.Time{}
	def := saga.Define("alarm", saga.Options{},
		saga.StartedBy(func(m remind) string { return m.Key }, func(_ *alarm, ctx *saga.Context, m remind) error {
			now, err := clock()
			if err != nil {
				return err
			}
			mu.Lock()
			notBefore[m.Key] = now.Add(m.In)
			mu.Unlock()
			ctx.Timeout(m.In, rang{})
			return nil
		}),
		saga.OnTimeout(func(_ *alarm, ctx *saga.Context, _ rang) error {
			mu.Lock()
			fired[ctx.Key()] = ctx.Now()
			mu.Unlock()
			ctx.Complete()
			return nil
		}))
	w.install("alarms", bus.Saga(def))
	for n := range timeouts {
		w.send(remind{Key: fmt.Sprint(n), In: time.Duration(1+n%50) * time.Millisecond})
	}
	w.start("alarms", bus.EndpointOptions{Concurrency: 2}, bus.Saga(def))
	w.untilEmpty("alarms")
	mu.Lock()
	defer mu.Unlock()
	if len(fired) != timeouts {
		t.Errorf("%d timeouts fired, want %d", len(fired), timeouts)
	}
	for key, at := range fired {
		if early := notBefore[key].Sub(at); early > 0 {
			t.Errorf("timeout %s fired %v early", key, early)
		}
	}
}

// When an instance completes, its timeouts are deleted.
func TestCompletedInstanceLeavesNoTimeout(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("alarms", bus.EndpointOptions{}, bus.Saga(alarms(store)))
		w.send(remind{Key: "a", In: time.Hour})
		w.until("it is pending", func() bool {
			return w.count(
				`SELECT count(*) FROM edda.saga WHERE timeouts IS NOT NULL`) == 1
		})
		w.send(finish{Key: "a"})
		w.untilEmpty("alarms")
		w.want(0, `SELECT count(*) FROM edda.saga`)
	})
}
