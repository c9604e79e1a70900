package remote

import (
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

// good are four runs whose first attempts were lost: the broker was killed, the process that did the work was killed,
// the process that had the report was killed, and the report came too late.
const good = `
	TRUNCATE edda.manifest, edda.dead_letter CASCADE;
	INSERT INTO edda.manifest (name, definition, kind, body) VALUES ('remote-0', '{}', 'remote.work', '{}');
	INSERT INTO chaos.triggered SELECT gen_random_uuid(), n FROM generate_series(1, 4) n;
	INSERT INTO edda.run (id, manifest_id, origin, state, due, ready, attempt)
	SELECT t.run, m.id, 'manual', 'active', now(), now(), 2 FROM chaos.triggered t, edda.manifest m;
	INSERT INTO edda.run_attempt (run, attempt, message_id, outcome, ended)
	SELECT run, a, gen_random_uuid(), CASE a WHEN 1 THEN 'lost' END, CASE a WHEN 1 THEN now() END
	FROM chaos.triggered, generate_series(1, 2) a;
	INSERT INTO chaos.begun SELECT format('remote-2-%s', n), run, 1, now() - (10 - n) * interval '1 s'
	FROM chaos.triggered WHERE n < 4;
	INSERT INTO chaos.begun SELECT 'remote-4-1', run, 1, now() - interval '1 s' FROM chaos.triggered WHERE n = 4;
	INSERT INTO chaos.begun SELECT 'remote-4-1', run, 2, now() FROM chaos.triggered;
	INSERT INTO chaos.said SELECT 'remote-2-3', run, 1, 'succeeded', now() - interval '4 s'
	FROM chaos.triggered WHERE n = 3;
	INSERT INTO chaos.said SELECT 'remote-4-1', run, 2, 'succeeded', now() FROM chaos.triggered;
	INSERT INTO chaos.blow VALUES ('of the broker', 'node kill', now() - interval '8500 ms'),
		('remote-2-2', 'kill', now() - interval '4 s'), ('remote-1-1', 'kill', now() - interval '3 s');
	INSERT INTO chaos.work SELECT 'remote-2-1', run::text, run, a, 'remote-0', n
	FROM chaos.triggered, generate_series(1, 2) a;
	UPDATE edda.run_attempt SET outcome = 'succeeded' WHERE attempt = 2;
	UPDATE edda.run SET state = 'succeeded'`

func TestVerdict(t *testing.T) {
	t.Parallel()
	judge := verdict{runs: 4, strikes: true}.judge
	labtest.Verdict{Scenario: Scenario, Good: good, Judge: judge}.Bites(t,
		slices.Concat(sabotagesOfRuns(), sabotagesOfReports())...)
}

const first, second = `n = 1`, `run = (SELECT run FROM chaos.triggered WHERE n = 2)`

func sabotagesOfRuns() []labtest.Sabotage {
	return []labtest.Sabotage{
		{Name: "a run ends again", Rule: "twice", SQL: `
			UPDATE edda.run SET state = state WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		{Name: "an attempt ends again", Rule: "twice",
			SQL: `UPDATE edda.run_attempt SET outcome = 'failed' WHERE attempt = 1 AND ` + second},
		{Name: "a run is open", Rule: "forgotten", SQL: `
			UPDATE edda.run SET state = 'active' WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		{Name: "a run is gone", Rule: "forgotten",
			SQL: `DELETE FROM edda.run WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		{Name: "nobody did the work", Rule: "forgotten", SQL: `DELETE FROM chaos.work WHERE ` + first},
		{Name: "fewer were triggered", Rule: "forgotten", SQL: `
			DELETE FROM edda.run WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2);
			DELETE FROM chaos.work WHERE ` + second + `; DELETE FROM chaos.triggered WHERE n = 2`},
		{Name: "another key", Rule: "wrongkey",
			SQL: `UPDATE chaos.work SET key = gen_random_uuid() WHERE attempt = 2 AND ` + first},
		{Name: "the input of another run", Rule: "wrongkey",
			SQL: `UPDATE chaos.work SET n = 3 WHERE attempt = 2 AND ` + first},
		{Name: "a run has no success", Rule: "strange", SQL: `
			UPDATE edda.run SET state = 'dead' WHERE id = (SELECT run FROM chaos.triggered WHERE n = 2)`},
		{Name: "nobody triggered it", Rule: "strange", SQL: `
			INSERT INTO edda.run (id, manifest_id, origin, state, due, ready)
			SELECT gen_random_uuid(), id, 'manual', 'succeeded', now(), now() FROM edda.manifest`},
		{Name: "an attempt has no end", Rule: "strange", SQL: `
			INSERT INTO edda.run_attempt (run, attempt, message_id)
			SELECT run, 3, gen_random_uuid() FROM chaos.triggered WHERE n = 2`},
		{Name: "the end of a run was not written down", Rule: "strange",
			SQL: `DELETE FROM chaos.run_end WHERE ` + second},
		{Name: "the last attempt has no success", Rule: "strange",
			SQL: `UPDATE edda.run_attempt SET outcome = 'lost' WHERE attempt = 2 AND ` + second},
	}
}

func sabotagesOfReports() []labtest.Sabotage {
	return []labtest.Sabotage{
		{Name: "an outcome is flipped", Rule: "unsaid",
			SQL: `UPDATE chaos.said SET outcome = 'failed' WHERE attempt = 2 AND ` + second},
		{Name: "nobody said that an attempt failed", Rule: "unsaid",
			SQL: `UPDATE edda.run_attempt SET outcome = 'failed' WHERE attempt = 1 AND ` + second},
		{Name: "an end is thrown away", Rule: "unexplained", SQL: `
			INSERT INTO chaos.said SELECT worker, run, attempt, 'succeeded' FROM chaos.begun WHERE attempt = 1 AND ` +
			second + `; UPDATE chaos.begun SET worker = 'remote-2-7' WHERE attempt = 1 AND ` + second},
		{Name: "signs of life are thrown away", Rule: "unexplained", SQL: `
			UPDATE chaos.begun SET worker = 'remote-2-7' WHERE attempt = 1 AND ` + second},
		{Name: "the process was killed long before", Rule: "unexplained", SQL: `
			UPDATE edda.run_attempt SET ended = now() + interval '1 min' WHERE attempt = 1 AND ` + second},
		{Name: "the broker was struck before", Rule: "unexplained",
			SQL: `UPDATE chaos.blow SET at = now() - interval '12 s' WHERE kind = 'node kill'`},
		{Name: "the process here was killed long after the report", Rule: "unexplained",
			SQL: `UPDATE chaos.blow SET at = now() - interval '500 ms' WHERE worker = 'remote-1-1'`},
		{Name: "the process here was killed long before the report", Rule: "unexplained",
			SQL: `UPDATE chaos.blow SET at = now() - interval '6500 ms' WHERE worker = 'remote-1-1'`},
		{Name: "the work had begun in time", Rule: "unexplained",
			SQL: `UPDATE chaos.begun SET at = now() - interval '3 s' WHERE worker = 'remote-4-1' AND attempt = 1`},
		{Name: "a process there is killed after another one's report", Rule: "unexplained",
			SQL: `UPDATE chaos.blow SET worker = 'remote-4-9' WHERE worker = 'remote-1-1'`},
		{Name: "a report is dropped", Rule: "dropped", SQL: `INSERT INTO chaos.dropped VALUES ('remote-1-1', 'it')`},
		{Name: "nobody is killed", Rule: "idle", SQL: `DELETE FROM chaos.blow WHERE kind = 'kill'`},
		{Name: "the broker stays whole", Rule: "idle", SQL: `DELETE FROM chaos.blow WHERE kind = 'node kill'`},
		{Name: "nothing is lost", Rule: "idle",
			SQL: `UPDATE edda.run_attempt SET outcome = 'discarded' WHERE attempt = 1`},
	}
}
