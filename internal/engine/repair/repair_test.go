package repair_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/secret"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// repair replaces the state of order 7.
func (w *world) repair(version int64, state string) (before, after saga.Instance, err error) {
	return w.op.Repair(w.Context(), of(version), []byte(state))
}

func of(version int64) operate.Target {
	return operate.Target{Saga: "order", Key: "7", Version: version, Reason: "lost a message"}
}

// A repaired state is the next version: handlers continue with it, and the history and the audit have the actor.
func TestRepair(t *testing.T) {
	both(t, func(w *world) {
		w.run()
		began := w.begin()
		ctx := operate.WithActor(w.Context(), operate.Actor{Name: "ann"})
		before, after, err := w.op.Repair(ctx, of(1), []byte(` {"N": 40, "Overdue": 0, "Card": "4712"} `))
		w.must(err)
		now := w.living()
		if after.Version != 2 || now.Version != 2 || string(now.State) != `{"N":40,"Overdue":0,"Card":"4712"}` ||
			string(before.State) != string(began.State) || string(after.State) != string(now.State) ||
			len(now.Pending) != 2 || now.StateVersion != 1 || after.ID != began.ID {
			t.Errorf("%+v makes %+v", after, now)
		}
		w.send(change{Order: "7"})
		w.until("a handler goes on from it", func() bool { return w.living().Version == 3 })
		if s := w.state(); s.N != 41 || s.Card != "4712" {
			t.Errorf("%+v", s)
		}
		versions := w.versions(began.ID)
		if len(versions) != 3 || versions[1].Change != history.Repaired || versions[1].By != "ann" ||
			versions[1].Version != 2 || string(versions[1].State) != `{"Card":"[secret]","N":40,"Overdue":0}` {
			t.Errorf("%+v", versions)
		}
		if diff := history.Diff(versions[2].Before, versions[2].State); diff != "N: 40 → 41" {
			t.Errorf("the version after it: %s", diff)
		}
		e := w.entry()
		if e.Verb != "saga.repair" || e.Target != "order/7" || e.By() != "ann" || e.Reason != "lost a message" ||
			strings.Contains(string(e.Before)+string(e.After), "471") ||
			!strings.Contains(string(e.After), secret.Masked) {
			t.Errorf("%+v", e)
		}
	})
}

func TestRepairIsRefused(t *testing.T) {
	w := newWorld(t, saga.Options{})
	stop := w.run()
	w.begin()
	stop()
	w.send(change{Order: "7"})
	typed, other, missing := of(1), of(1), of(1)
	typed.Definition, other.Definition = w.def, saga.Define[order]("invoice", saga.Options{})
	missing.Key = "8"
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	large := `"` + strings.Repeat("x", persistence.MaxState) + `"`
	for name, c := range map[string]struct {
		t     operate.Target
		state string
		want  error
	}{
		"another version":              {of(2), `{}`, operate.ErrVersion},
		"no version":                   {of(0), `{}`, nil},
		"no JSON":                      {of(1), `{"N":`, operate.ErrState},
		"nothing":                      {of(1), ``, operate.ErrState},
		"null":                         {of(1), ` null`, operate.ErrState},
		"no UTF-8":                     {of(1), "\"\xff\"", operate.ErrState},
		"deep":                         {of(1), deep, operate.ErrState},
		"large":                        {of(1), large, saga.ErrTooLarge},
		"a field that is not there":    {typed, `{"N":1,"M":2}`, operate.ErrState},
		"the definition of another":    {other, `{}`, nil},
		"an instance that is not here": {missing, `{}`, operate.ErrNoInstance},
	} {
		_, _, err := w.op.Repair(w.Context(), c.t, []byte(c.state))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if i := w.living(); i.Version != 1 || w.entry().Verb != "" {
		t.Errorf("it has changed: %+v, %+v", i, w.entry())
	}
	if _, _, err := w.op.Repair(w.Context(), typed, []byte(`{"N":5}`)); err != nil || string(w.living().State) !=
		`{"N":5,"Overdue":0,"Card":""}` {
		t.Errorf("%v, %s", err, w.living().State)
	}
}

// An instance that has completed is not repaired, although its row still exists.
func TestRememberedInstanceIsNotChanged(t *testing.T) {
	w := newWorld(t, saga.Options{Remember: time.Hour})
	w.run()
	w.begin()
	_, _, err := w.repair(1, `{}`)
	_, end := w.op.End(w.Context(), order7)
	if !errors.Is(err, operate.ErrRemembered) || !errors.Is(end, operate.ErrRemembered) || w.living().Version != 1 {
		t.Errorf("%v, %v", err, end)
	}
}

// A repair beside a handler: the repair is refused or the handler repeated, and neither is lost.
func TestRepairBesideAHandler(t *testing.T) {
	both(t, func(w *world) {
		w.run()
		w.begin()
		release := w.holds()
		repaired := make(chan error, 1)
		go func() {
			_, _, err := w.repair(1, `{"N":40}`)
			repaired <- err
		}()
		if w.def.Options().Store == saga.Pessimistic {
			owner := pgtest.Pool(w) // can see the activity of all roles' sessions
			w.until("the repair waits", func() (waits bool) {
				w.must(owner.QueryRow(w.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
					WHERE cardinality(pg_blocking_pids(pid)) > 0
					AND query LIKE '%FOR NO KEY UPDATE%' AND query LIKE '%' || $1 || '%')`, w.schema).Scan(&waits))
				return waits
			})
			release()
			if err := <-repaired; !errors.Is(err, operate.ErrVersion) {
				t.Errorf("after a handler has saved: %v", err)
			}
			if s := w.state(); s.N != 1 {
				t.Errorf("%+v", s)
			}
			return
		}
		w.must(<-repaired)
		release()
		w.until("the handler is called again", func() bool { return w.living().Version == 3 })
		if s := w.state(); s.N != 41 {
			t.Errorf("%+v", s)
		}
	})
}

// If the history of a saga keeps no states, a repair adds no state to it.
func TestRepairKeepsNoStateWhereNoneIsKept(t *testing.T) {
	w := newWorld(t, saga.Options{})
	w.must(w.see.Endpoints().SetHistory(w.Context(), "orders", history.Options{Level: history.Steps}))
	w.run()
	began, known := w.begin(), of(1)
	known.Definition = w.def // so that its secrets are known
	_, _, err := w.op.Repair(w.Context(), known, []byte(`{"N":40}`))
	w.must(err)
	v := w.versions(began.ID)
	if len(v) != 2 || v[1].Change != history.Repaired || v[1].State != nil {
		t.Errorf("%+v", v)
	}
}
