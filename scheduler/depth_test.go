package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestDepthTellsWhatWaits(t *testing.T) {
	shelf := newShelf(t)
	s, err := New(noSender{shelf}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Depth(t.Context()); err != nil || d != (Depth{}) {
		t.Errorf("nothing waits: %+v, %v", d, err)
	}
	for _, sql := range []string{
		`INSERT INTO :schema.manifest (name, definition, kind, body, due, live, held)
		 VALUES ('late', '{}', 'k', '', now() - interval '90 s', true, NULL), ('paused', '{}', 'k', '',
		now() - interval '1 h', false, NULL),
		        ('held', '{}', 'k', '', now() - interval '1 h', true, gen_random_uuid()), ('later', '{}', 'k', '',
		now() + interval '1 h', true, NULL)`,
		`INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready)
		 SELECT gen_random_uuid(), m.id, 'manual', s.state, now(), now() - interval '30 s'
		 FROM :schema.manifest m, (VALUES ('waiting', 1), ('queued', 2), ('active', 3), ('dead', 4), ('succeeded',
		5)) s(state, n), generate_series(1, s.n)
		 WHERE m.name = 'late'`,
	} {
		shelf.exec(sql)
	}
	shelf.exec(`INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, ended)
		SELECT gen_random_uuid(), m.id, 'manual', 'timed_out', now(), now(), now() - n * interval '50 min'
		FROM :schema.manifest m, generate_series(1, 2) n WHERE m.name = 'paused'`)
	shelf.exec(`INSERT INTO :schema.run_attempt (run, attempt, message_id, outcome, ended)
		SELECT r.id, a.n, r.id, 'lost', now() - r.n * interval '50 min' FROM (SELECT id, row_number() OVER () AS n
			FROM :schema.run WHERE state = 'timed_out') r, generate_series(1, 3) a(n)`)
	shelf.exec(`UPDATE :schema.manifest SET skipped_at = now() - CASE name WHEN 'late' THEN interval '50 min'
			ELSE interval '2 h' END, orphaned_at = CASE WHEN name IN ('paused', 'held') THEN now() END,
		removed_at = CASE name WHEN 'held' THEN now() END`)
	d, err := s.Depth(t.Context())
	if d.TimedOut != 1 || d.Lost != 3 || d.Skipped != 1 || d.Orphaned != 1 {
		t.Errorf("within the last hour: %+v", d)
	}
	if err != nil || d.Waiting != 1 || d.Queued != 2 || d.Active != 3 || d.Dead != 4 {
		t.Errorf("%+v, %v", d, err)
	}
	if d.Late < 90*time.Second || d.Late > 10*time.Minute || d.Behind < 30*time.Second || d.Behind > 10*time.Minute {
		t.Errorf("%v late, %v behind", d.Late, d.Behind)
	}
}

// A scrape must read neither ended runs nor manifests that are not due yet.
func TestDepthReadsOpenRunsAlone(t *testing.T) {
	pool, schema := pgtest.Database(t)
	pgtest.Probes{
		SQL:         pg.Load(storeStatements, schema),
		Statements:  map[string][]string{"depth": {"100000"}},
		PlannedAnew: true,
		Fill: `WITH m AS (
				INSERT INTO :schema.manifest (name, definition, kind, body, due)
				SELECT 'm' || n, '{}', 'k', '', now() + (n - 3) * interval '1 hour' FROM generate_series(1, 3000) n
				RETURNING id)
			INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, ended)
			SELECT gen_random_uuid(), m.id, 'manual', 'succeeded', now(), now(), now() FROM m;
			INSERT INTO :schema.run_attempt (run, attempt, message_id) SELECT r.id, 1, gen_random_uuid()
			FROM :schema.run r`,
		MaxRows: 2,
	}.Check(t, pool, schema)
}

type noSender struct{ *shelf }

func (s noSender) Database() (pool *pgxpool.Pool, schema string) { return s.pool, s.schema.Name() }

func (noSender) SendTx(context.Context, pgx.Tx, saga.Message, ...saga.SendOption) (saga.Sent, error) {
	return saga.Sent{}, errors.New("nothing is sent here")
}
