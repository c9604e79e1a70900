package bus_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

func TestInstanceIsReadFromOutside(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := alarms(saga.Pessimistic)
	w.start("alarms", bus.EndpointOptions{}, bus.Saga(def))
	if _, ok, err := w.bus.Instance(t.Context(), def, "a", nil); ok || err != nil {
		t.Errorf("before there is one: %v %v", ok, err)
	}
	w.send(remind{Key: "a", In: time.Hour})
	w.until("it is there", func() bool { return w.count(`SELECT count(*) FROM edda.saga`) == 1 })
	holder := w.begin()
	w.execTx(holder, `UPDATE edda.saga SET state = '{"Rang":9}'`) // a read waits for no lock
	var state alarm
	i, ok, err := w.bus.Instance(t.Context(), def, "a", &state)
	if err != nil || !ok || i.Key != "a" || i.Version != 1 || state.Rang != 0 || len(i.Pending) != 1 ||
		i.Pending[0].Name != "ring" {
		t.Errorf("%+v %v %v, state %+v", i, ok, err, state)
	}
	w.commit(holder)
	if _, _, err = w.bus.Instance(t.Context(), def, "a", &state); err != nil || state.Rang != 9 {
		t.Errorf("%+v %v", state, err)
	}
	got, ok, err := saga.StatesOf[alarm](def).Read(t.Context(), w.bus, "a")
	if err != nil || !ok || got.Rang != 9 {
		t.Errorf("%+v %v %v, want 9", got, ok, err)
	}
	if got, ok, err = saga.StatesOf[alarm](def).Read(t.Context(), w.bus, "b"); err != nil || ok || got.Rang != 0 {
		t.Errorf("one that is not there: %+v %v %v", got, ok, err)
	}
	var other tally
	if _, _, err = w.bus.Instance(t.Context(), def, "a", &other); err == nil ||
		!strings.Contains(err.Error(), "*bus_test.alarm") {
		t.Errorf("into another type: %v", err)
	}
}

type oldState struct{ Rang string }

// A state of an older version is upgraded; a state of a newer version is an error.
func TestInstanceOfAnotherVersion(t *testing.T) {
	w := newWorld(t, bus.Options{})
	ring := saga.StartedBy(func(m remind) string { return m.Key },
		func(*alarm, *saga.Context, remind) error { return nil })
	def := saga.Define("alarm", saga.Options{StateVersion: 2}, ring, saga.Upcast(1, func(old oldState) (alarm, error) {
		n, err := strconv.Atoi(old.Rang)
		return alarm{Rang: n}, err
	}))
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'alarm', v::text, 5, v, '{"Rang":"7"}' FROM unnest('{1,3}'::int[]) v`)
	var state alarm
	i, ok, err := w.bus.Instance(t.Context(), def, "1", &state)
	if err != nil || !ok || i.Version != 5 || i.StateVersion != 1 || state.Rang != 7 {
		t.Errorf("%+v %v %v, state %+v", i, ok, err, state)
	}
	if i, ok, err := w.bus.Instance(t.Context(), def, "3", &state); !errors.Is(err, saga.ErrNewerState) || !ok ||
		i.Key != "3" {
		t.Errorf("%+v %v %v, want ErrNewerState", i, ok, err)
	}
	// An endpoint leaves the messages of an instance that a newer program wrote.
	w.start("alarms", bus.EndpointOptions{Policy: once}, bus.Saga(def))
	w.send(remind{Key: "3"})
	w.until("it waits for a newer program", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("alarms")+
			` WHERE attempt = 0 AND first_failed IS NULL AND last_error LIKE '%newer program%'`) == 1
	})
}

// Each save records its time; an instance that no step has changed keeps its time.
func TestInstanceHasTheTimeOfItsLastChange(t *testing.T) {
	for _, store := range []saga.Store{saga.Pessimistic, saga.Optimistic} {
		t.Run(fmt.Sprint(store), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(store, nil)))
			for _, key := range []string{"a", "b"} {
				w.send(add{Key: key, N: 1})
			}
			w.untilEmpty("tallies")
			// The clock of a fast machine may not have moved since.
			w.exec(`UPDATE edda.saga SET started = started - interval '1 hour', changed = changed - interval '1 hour'`)
			w.send(add{Key: "a", N: 1})
			w.untilEmpty("tallies")
			if got := w.text(`SELECT string_agg(key || ' ' || (changed - started > interval '59 minutes'), ', '
				ORDER BY key) FROM edda.saga`); got != "a true, b false" {
				t.Errorf("changed: %s, want a only", got)
			}
		})
	}
}
