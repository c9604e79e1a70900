package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// Main is the main function of a test binary whose workers are those of the scenario. It fails if goroutines are left.
func Main(m *testing.M, s lab.Scenario) {
	if lab.IsWorker() {
		if err := lab.Work(context.Background(), s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// Verdict is that of a scenario on the ledger of a good run.
type Verdict struct {
	Scenario lab.Scenario
	Size     lab.Size
	Good     string // writes the ledger, and empties the tables of Edda that it writes to
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

// OfEffects are what a verdict must find that checks effects.
var OfEffects = []Sabotage{
	{"an effect is gone", `DELETE FROM chaos.effect
		WHERE (key, n) = (SELECT min(key), min(n) FROM chaos.effect)`, "lost"},
	{"an effect is there twice", `INSERT INTO chaos.effect SELECT * FROM chaos.effect
		WHERE (key, n) = (SELECT min(key), min(n) FROM chaos.effect)`, "doubled"},
	{"an effect of no message", `INSERT INTO chaos.effect (key, n, slot, epoch, sent)
		SELECT key, -1, slot, -1, sent FROM chaos.effect LIMIT 1`, "invented"},
}

// Bites fails unless the verdict finds nothing in the good ledger, and what it must find after each sabotage.
func (v Verdict) Bites(t *testing.T, all ...Sabotage) {
	t.Helper()
	l, err := lab.Open(t.Context(), lab.Settings{Scenario: v.Scenario, Size: v.Size, Out: t.Output()}, pgdev.Options{})
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
