package schedule

import (
	"context"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

const good = `
	TRUNCATE edda.manifest CASCADE;
	INSERT INTO edda.manifest (name, definition, kind, body)
	SELECT 'm-' || m, '{}', 'schedule.tick', '{}' FROM generate_series(1, 2) m;
	INSERT INTO edda.run (id, manifest_id, origin, state, due, ready)
	SELECT gen_random_uuid(), m.id, 'schedule', 'succeeded', d, d FROM edda.manifest m,
	    generate_series('2026-01-01 00:00:01Z'::timestamptz, '2026-01-01 00:00:05Z', interval '1 s') d;
	INSERT INTO chaos.effect (key, n)
	SELECT m.name, (extract(epoch FROM r.due) * 1000000)::bigint FROM edda.run r
	JOIN edda.manifest m ON m.id = r.manifest_id`

func judgeAs(m mode) func(context.Context, *lab.Lab) error {
	return func(ctx context.Context, l *lab.Lab) error {
		t := &trial{Lab: l, mode: m, horizon: time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)}
		return t.judge(ctx, l)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const third = `due = '2026-01-01 00:00:03Z'`
	labtest.Verdict{Scenario: Scenario, Good: good, Judge: judgeAs(mode{})}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "a due time without a run", Rule: "missing", SQL: `DELETE FROM edda.run WHERE ` + third},
		labtest.Sabotage{Name: "a manifest without a run", Rule: "missing",
			SQL: `DELETE FROM edda.run WHERE manifest_id = (SELECT min(id) FROM edda.manifest)`},
		labtest.Sabotage{Name: "two runs of a due time", Rule: "double", SQL: `
			INSERT INTO edda.run (id, manifest_id, origin, state, due, ready)
			SELECT gen_random_uuid(), manifest_id, 'manual', state, due, ready FROM edda.run WHERE ` + third},
		labtest.Sabotage{Name: "a run that did not succeed", Rule: "open",
			SQL: `UPDATE edda.run SET state = 'dead' WHERE ` + third},
		labtest.Sabotage{Name: "a run that was not due", Rule: "strange",
			SQL: `UPDATE edda.run SET due = due + interval '0.5 s' WHERE ` + third})...)
}

// Without guards and indexes there must be doubles: a verdict that finds none has not seen the race.
func TestVerdictWithoutIndexes(t *testing.T) {
	t.Parallel()
	const double = `; INSERT INTO chaos.effect SELECT * FROM chaos.effect LIMIT 1`
	labtest.Verdict{Scenario: Scenario, Good: good + double, Judge: judgeAs(mode{noIndex: true})}.Bites(t,
		labtest.Sabotage{Name: "no double", Rule: "blind",
			SQL: `DELETE FROM chaos.effect WHERE (key, n) IN (SELECT key, n FROM chaos.effect GROUP BY 1, 2
				HAVING count(*) > 1)`})
}
