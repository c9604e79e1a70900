package hostile

import (
	"context"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const good = `
		TRUNCATE edda.dead_letter, edda.discarded;
		INSERT INTO chaos.effect (key, n, at)
		SELECT key, n, '2026-01-01 00:00:00Z'::timestamptz + n * interval '1 s'
		FROM unnest(ARRAY['batch', 'saga', 'leased', 'relay']) key, generate_series(1, 59) n;
		INSERT INTO chaos.attack SELECT gen_random_uuid(), 'insert', '2026-01-01' FROM generate_series(1, 3);
		INSERT INTO chaos.handled SELECT id FROM chaos.attack LIMIT 1;
		INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		SELECT 'shop', id, 'k', '', '', 1, 0, 'r', 'e' FROM chaos.attack OFFSET 1 LIMIT 1;
		INSERT INTO edda.discarded (endpoint, message_id, kind, saga, key, reason)
		SELECT 'shop', id, 'k', '', '', '' FROM chaos.attack OFFSET 2`
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	judge := func(ctx context.Context, l *lab.Lab) error {
		r := &race{Lab: l, sent: map[string]int{}, all: len(routes) * 59,
			quiet: period{begin, begin.Add(12 * time.Second)},
			under: period{begin.Add(12 * time.Second), begin.Add(time.Minute)}}
		for _, route := range routes {
			r.sent[route] = 59
		}
		return r.judge(ctx, l)
	}
	labtest.Verdict{Scenario: Scenario, Good: good, Judge: judge}.Bites(t, append(labtest.OfEffects,
		labtest.Sabotage{Name: "a route is slow under attack", Rule: "slow",
			SQL: `UPDATE chaos.effect SET at = '2026-01-02' WHERE key = 'saga' AND n > 12 AND n % 3 > 0`},
		labtest.Sabotage{Name: "a route stands still", Rule: "gap",
			SQL: `UPDATE chaos.effect SET at = '2026-01-01 00:00:12Z' WHERE key = 'leased' AND n BETWEEN 13 AND 34`},
		labtest.Sabotage{Name: "a hostile message still waits", Rule: "left", SQL: `
			SELECT edda.create_queue('shop');
			INSERT INTO chaos.attack
			SELECT message_id, 'edda.send' FROM edda.send('any.kind', '{}'::bytea, endpoint => 'shop')`},
		labtest.Sabotage{Name: "a hostile message has no fate", Rule: "vanished", SQL: `DELETE FROM chaos.handled`},
		labtest.Sabotage{Name: "nobody attacked", Rule: "no attack", SQL: `DELETE FROM chaos.attack`})...)
}
