package limits

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

func TestVerdictOfLimits(t *testing.T) {
	t.Parallel()
	const good = `
		INSERT INTO chaos.change VALUES (1, '2026-01-01 00:00:09Z', '2026-01-01 00:00:10Z'),
		    (50, '2026-01-01 00:00:12Z', '2026-01-01 00:00:13Z');
		INSERT INTO chaos.told VALUES ('job', 0), ('job', 1);
		INSERT INTO chaos.run (worker, key, n, slot, epoch, holds, began, ended, ok) VALUES
		    ('w1', 'job', 0, 0, 1, true, '2026-01-01 00:00:10.1Z', '2026-01-01 00:00:11Z', true),
		    ('w1', 'job', 1, 0, 2, true, '2026-01-01 00:00:11.1Z', '2026-01-01 00:00:11.9Z', true);
		INSERT INTO chaos.effect (key, n, slot, epoch, sent) VALUES ('job', 0, 0, 1, '2026-01-01 00:00:11Z'),
		    ('job', 1, 0, 2, '2026-01-01 00:00:11.9Z');
		INSERT INTO chaos.blow VALUES ('w1', 'start', '2026-01-01 00:00:10Z');
		INSERT INTO chaos.calm VALUES (true, '2026-01-01 00:00:14Z')`
	size := lab.Size{Workers: 1, For: time.Second}
	labtest.Verdict{Scenario: Limits, Size: size, Good: good, Judge: judgeLimits}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "one handler more than the limit", Rule: "above", SQL: `
			INSERT INTO chaos.run (worker, key, n, slot, epoch, holds, began, ended) VALUES
			    ('w2', 'job', 2, 1, 1, true, '2026-01-01 00:00:10.5Z', '2026-01-01 00:00:11.5Z')`},
		labtest.Sabotage{Name: "the holder before sends as well", Rule: "stale",
			SQL: `UPDATE chaos.effect SET sent = '2026-01-01 00:00:11.5Z' WHERE n = 0`},
		labtest.Sabotage{Name: "one epoch for two runs", Rule: "twice", SQL: `UPDATE chaos.run SET epoch = 1`},
		labtest.Sabotage{Name: "slots that nobody uses", Rule: "unused", SQL: `UPDATE chaos.change
			SET asked = asked + interval '20 s', done = done + interval '20 s' WHERE slots = 50`},
		labtest.Sabotage{Name: "a worker that gets nothing", Rule: "starved",
			SQL: `INSERT INTO chaos.blow VALUES ('w2', 'start', '2026-01-01 00:00:00Z')`},
		labtest.Sabotage{Name: "no handler runs", Rule: "nothing ran", SQL: `DELETE FROM chaos.run`})...)
}

func TestVerdictOfOrder(t *testing.T) {
	t.Parallel()
	const good = `
		INSERT INTO chaos.told VALUES ('key-0', 0), ('key-0', 1);
		INSERT INTO chaos.run (worker, key, n, holds, began, ended, ok) VALUES
		    ('w1', 'key-0', 0, true, '2026-01-01 00:00:10Z', '2026-01-01 00:00:11Z', true),
		    ('w1', 'key-0', 1, true, '2026-01-01 00:00:12Z', '2026-01-01 00:00:13Z', true);
		INSERT INTO chaos.effect (key, n, sent) VALUES ('key-0', 0, '2026-01-01 00:00:11Z'),
		    ('key-0', 1, '2026-01-01 00:00:13Z');
		INSERT INTO chaos.blow VALUES ('w2', 'kill', '2026-01-01 00:00:09Z'), ('w3', 'freeze', '2026-01-01 00:00:09Z');
		INSERT INTO chaos.calm VALUES (true, '2026-01-01 00:01:00Z')`
	size := lab.Size{Workers: 1, Kills: 1, Freezes: 1}
	labtest.Verdict{Scenario: Order, Size: size, Good: good, Judge: judgeOrder}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "a message runs after a later one", Rule: "overtakes", SQL: `
			INSERT INTO chaos.run (worker, key, n, holds, began, ended) VALUES
			    ('w2', 'key-0', 0, true, '2026-01-01 00:00:13.5Z', '2026-01-01 00:00:14Z')`},
		labtest.Sabotage{Name: "two messages of a key at a time", Rule: "together",
			SQL: `UPDATE chaos.run SET ended = '2026-01-01 00:00:12.5Z' WHERE n = 0`},
		labtest.Sabotage{Name: "an effect after a later one", Rule: "late",
			SQL: `UPDATE chaos.effect SET sent = '2026-01-01 00:00:14Z' WHERE n = 0`},
		labtest.Sabotage{Name: "nothing begins for a time", Rule: "idle", SQL: `UPDATE chaos.run
			SET began = began + interval '10 s', ended = ended + interval '10 s' WHERE n = 1`},
		labtest.Sabotage{Name: "no process had its lane", Rule: "no lane", SQL: `UPDATE chaos.run SET holds = false`},
		labtest.Sabotage{Name: "nobody was killed", Rule: "blows",
			SQL: `DELETE FROM chaos.blow WHERE kind = 'kill'`})...)
}
