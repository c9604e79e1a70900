package remote

import (
	"context"
	"testing"

	"github.com/edda-go/edda/internal/chaos/lab"
	"github.com/edda-go/edda/internal/chaos/lab/labtest"
)

const good = `
	TRUNCATE edda.manifest, edda.dead_letter CASCADE;
	INSERT INTO edda.manifest (name, definition, kind, body) VALUES ('remote-0', '{}', 'remote.work', '{}');
	INSERT INTO chaos.triggered SELECT gen_random_uuid(), n FROM generate_series(1, 3) n;
	INSERT INTO edda.run (id, manifest_id, origin, state, due, ready, attempt)
	SELECT t.run, m.id, 'manual', 'active', now(), now(), 2 FROM chaos.triggered t, edda.manifest m;
	INSERT INTO edda.run_attempt (run, attempt, message_id, outcome)
	SELECT run, a, gen_random_uuid(), CASE a WHEN 1 THEN 'lost' END FROM chaos.triggered, generate_series(1, 2) a;
	INSERT INTO chaos.work SELECT 'remote-2-1', run::text, run, a, 'remote-0', n
	FROM chaos.triggered, generate_series(1, 2) a;
	UPDATE edda.run_attempt SET outcome = 'succeeded' WHERE attempt = 2;
	UPDATE edda.run SET state = 'succeeded'`

func TestVerdict(t *testing.T) {
	t.Parallel()
	const first, second = `n = 1`, `run = (SELECT run FROM chaos.triggered WHERE n = 2)`
	judge := func(ctx context.Context, l *lab.Lab) error { return judge(ctx, l, "test", 3) }
	labtest.Verdict{Settings: lab.Settings{Name: "remote"}, SQL: sql, Good: good, Judge: judge}.Bites(t,
		labtest.Sabotage{Name: "a run ends again", Rule: "twice", SQL: `
			UPDATE edda.run SET state = state WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		labtest.Sabotage{Name: "an attempt ends again", Rule: "twice",
			SQL: `UPDATE edda.run_attempt SET outcome = 'failed' WHERE attempt = 1 AND ` + second},
		labtest.Sabotage{Name: "a run is open", Rule: "forgotten", SQL: `
			UPDATE edda.run SET state = 'active' WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		labtest.Sabotage{Name: "a run is gone", Rule: "forgotten",
			SQL: `DELETE FROM edda.run WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		labtest.Sabotage{Name: "nobody did the work", Rule: "forgotten", SQL: `DELETE FROM chaos.work WHERE ` + first},
		labtest.Sabotage{Name: "fewer were triggered", Rule: "forgotten", SQL: `
			DELETE FROM edda.run WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2);
			DELETE FROM chaos.work WHERE ` + second + `; DELETE FROM chaos.triggered WHERE n = 2`},
		labtest.Sabotage{Name: "another key", Rule: "wrongkey",
			SQL: `UPDATE chaos.work SET key = gen_random_uuid() WHERE attempt = 2 AND ` + first},
		labtest.Sabotage{Name: "the input of another run", Rule: "wrongkey",
			SQL: `UPDATE chaos.work SET n = 3 WHERE attempt = 2 AND ` + first},
		labtest.Sabotage{Name: "a run has no success", Rule: "strange", SQL: `
			UPDATE edda.run SET state = 'dead' WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		labtest.Sabotage{Name: "nobody triggered it", Rule: "strange", SQL: `
			INSERT INTO edda.run (id, manifest_id, origin, state, due, ready)
			SELECT gen_random_uuid(), id, 'manual', 'succeeded', now(), now() FROM edda.manifest`},
		labtest.Sabotage{Name: "an attempt has no end", Rule: "strange", SQL: `
			INSERT INTO edda.run_attempt (run, attempt, message_id)
			SELECT run, 3, gen_random_uuid() FROM chaos.triggered WHERE n = 2`})
}
