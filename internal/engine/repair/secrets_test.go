package repair_test

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// Without a definition and without a state in the history the secrets are unknown: no state is kept or shown.
func TestStateOfUnknownSecretsIsLeftOut(t *testing.T) {
	for name, o := range map[string]history.Options{"off": {Level: history.Off}, "steps": {Level: history.Steps}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, saga.Options{})
			w.must(w.see.Endpoints().SetHistory(w.Context(), "orders", o))
			stop := w.run()
			began := w.begin()
			stop()
			shown := func(op operate.Instances, def *saga.Definition) string {
				l, err := op.Public(w.Context(), "order", "7", def)
				w.must(err)
				return string(l.Instance.State)
			}
			if s := shown(w.op, nil); s != "" {
				t.Errorf("it shows %s", s)
			}
			if s := shown(w.op, w.def); !strings.Contains(s, `"Card":"[secret]"`) {
				t.Errorf("with the definition it shows %s", s)
			}
			if s := shown(w.operator(operate.Options{Unmasked: true}).Instances(), nil); !strings.Contains(s, "4711") {
				t.Errorf("unmasked it shows %s", s)
			}
			_, _, err := w.repair(1, `{"N":40,"Card":"4711"}`)
			w.must(err)
			w.keepsNone("saga.repair")
			_, err = w.op.FireTimeout(w.Context(), order7, "due")
			w.must(err)
			_, err = w.op.End(w.Context(), order7)
			w.must(err)
			w.keepsNone("saga.end")
			for _, v := range w.versions(began.ID) {
				if v.State != nil {
					t.Errorf("version %d of the history has %s", v.Version, v.State)
				}
			}
		})
	}
}

// Redact may leave a text that does not show the secret fields: because it removes everything, or has failed.
func TestStateIsLeftOutWhereTheLastOneWasRedacted(t *testing.T) {
	w := newWorld(t, saga.Options{})
	w.run()
	began := w.begin()
	whole := w.operator(operate.Options{Redact: func(string, []byte) []byte { return []byte(`"not shown"`) }})
	_, _, err := whole.Instances().Repair(w.Context(), of(1), []byte(`{"N":40,"Card":"4711"}`))
	w.must(err)
	if v := w.versions(began.ID); len(v) != 2 || string(v[1].State) != `"not shown"` {
		t.Fatalf("the history is %+v", v)
	}
	if l, err := w.op.Public(w.Context(), "order", "7", nil); err != nil || l.Instance.State != nil {
		t.Errorf("it shows %s, %v", l.Instance.State, err)
	}
	_, _, err = w.repair(2, `{"N":41,"Card":"4711"}`)
	w.must(err)
	w.keepsNone("saga.repair")
}

// keepsNone checks that the last audit entry has no state.
func (w *world) keepsNone(verb string) {
	w.Helper()
	if e := w.entry(); e.Verb != verb || strings.Contains(string(e.Before)+string(e.After), "4711") ||
		!strings.Contains(string(e.Before), `"state":null`) {
		w.Errorf("%s keeps %s, %s", e.Verb, e.Before, e.After)
	}
}
