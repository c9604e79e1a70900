package labtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// Verdict is that of a scenario on the ledger of a good run.
type Verdict struct {
	Settings lab.Settings
	SQL      pg.Statements // of the scenario
	Good     string        // writes the ledger, and empties the tables of Edda that it writes to
	Judge    func(context.Context, *lab.Lab) error
}

// Sabotage is done to that ledger. Rule is what the verdict must then find.
type Sabotage struct{ Name, SQL, Rule string }

const empty = `DO $$
DECLARE
    t regclass;
BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'chaos'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('TRUNCATE %s RESTART IDENTITY', t);
    END LOOP;
END $$;`

// Bites fails unless the verdict finds nothing in the good ledger, and what it must find after each sabotage.
func (v Verdict) Bites(t *testing.T, all ...Sabotage) {
	t.Helper()
	v.Settings.Out = t.Output()
	l, err := lab.Open(t.Context(), v.Settings, pgdev.Options{}, v.SQL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	found := func(t *testing.T, sabotage string) []lab.Violation {
		t.Helper()
		for _, text := range []string{empty, v.Good, sabotage} {
			if _, err := l.Pool.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}
		l.Forget()
		if err := v.Judge(t.Context(), l); err != nil && !errors.Is(err, lab.ErrBroken) {
			t.Fatal(err)
		}
		return l.Found()
	}
	if all := found(t, ""); len(all) > 0 {
		t.Fatalf("nothing is wrong yet: %v", all)
	}
	for _, x := range all {
		t.Run(x.Name, func(t *testing.T) {
			all := found(t, x.SQL)
			if !slices.ContainsFunc(all, func(v lab.Violation) bool { return v.Rule == x.Rule }) {
				t.Errorf("want %q, found %v", x.Rule, all)
			}
		})
	}
}
