package main

import (
	"context"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const good = `
		TRUNCATE edda.dead_letter;
		INSERT INTO chaos.told VALUES ('a', 0), ('a', 1), ('b', 0);
		INSERT INTO chaos.entered (key, n) VALUES ('b', 0), ('a', 0), ('a', 1);
		INSERT INTO chaos.effect (key, n) VALUES ('a', 1), ('a', 0), ('b', 0)`
	judge := func(ctx context.Context, l *lab.Lab) error {
		return (&ground{Lab: l, there: &side{pool: l.Pool}}).check(ctx)
	}
	labtest.Verdict{Scenario: borderScenario, Good: good, Judge: judge}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "a message entered twice", Rule: "doubled",
			SQL: `INSERT INTO chaos.entered (key, n) VALUES ('a', 0)`},
		labtest.Sabotage{Name: "the later message comes first", Rule: "disorder",
			SQL: `UPDATE chaos.entered SET n = 1 - n WHERE key = 'a'`},
		labtest.Sabotage{Name: "a message is dead", Rule: "dead", SQL: `
			INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
			VALUES ('heard', gen_random_uuid(), 'border.said', '', '', 1, 0, '', '')`})...)
}
