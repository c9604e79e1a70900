package scheduler_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database is the provider that servers use. To let time pass, it makes stored times older; moved is the sum of the
// shifts.
type database struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	s      *scheduler.Scheduler
	store  *scheduler.Store
	start  time.Time
	target time.Time // the time of the scenario
	moved  time.Duration
	shots  []shot
	last   map[string]saga.Firing
}

func newDatabase(t *testing.T, s scenario) *database {
	t.Helper()
	d := &database{t: t, pool: pgtest.Pool(t), last: map[string]saga.Firing{}}
	d.schema = pgtest.Migrated(t, d.pool)
	var err error
	if d.store, err = scheduler.NewStore(d.pool, scheduler.StoreOptions{Schema: d.schema.Name()}); err != nil {
		t.Fatal(err)
	}
	d.s, err = scheduler.New(d, scheduler.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	d.start = d.clock()
	d.target = d.start
	if _, err := d.store.Sync(t.Context(), "contract", nil, s.manifests(d.start)); err != nil {
		t.Fatal(err)
	}
	return d
}

// Database returns the pool and schema of a Sender.
func (d *database) Database() (pool *pgxpool.Pool, schema string) { return d.pool, d.schema.Name() }

// SendTx records the messages that are sent.
func (d *database) SendTx(_ context.Context, _ pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	rt := saga.Runtime{NewID: func() saga.ID { return saga.ID(uuid.New()) }}
	out, err := rt.Compose(saga.Command, m, o...)
	if err != nil {
		return saga.Sent{}, err
	}
	f := *out.Info.Firing
	d.last[f.Manifest] = f
	d.shots = append(d.shots, shot{f.Manifest, f.Attempt, f.Due.Add(d.moved).Sub(d.start), d.target.Sub(d.start)})
	return saga.Sent{ID: out.Info.ID}, nil
}

func (d *database) query(into any, sql string, args ...any) {
	d.t.Helper()
	if err := d.pool.QueryRow(d.t.Context(), d.schema.Render(sql), args...).Scan(into); err != nil {
		d.t.Fatalf("%v\n%s", err, sql)
	}
}

func (d *database) clock() (now time.Time) {
	d.t.Helper()
	d.query(&now, "SELECT clock_timestamp()")
	return now
}

// moveTo makes all stored times older, so that the clock of the database is at a time of the scenario. It first moves
// all rows far away: a due time that meets the due time of a row not yet moved would violate the unique index.
func (d *database) moveTo(moment time.Time) {
	d.t.Helper()
	d.target = moment
	by := moment.Sub(d.clock().Add(d.moved))
	if by <= 0 {
		return
	}
	d.moved += by
	const away = 36_500 * 24 * time.Hour
	for _, step := range []time.Duration{by + away, -away} {
		for _, sql := range []string{
			`UPDATE :schema.run SET due = due - $1::interval, ready = ready - $1::interval,
				deadline = deadline - $1::interval, beat = beat - $1::interval`,
			`UPDATE :schema.manifest SET due = due - $1::interval, succeeded = succeeded - $1::interval`,
			moveDefinition("{rule,at}"), moveDefinition("{expires}"),
		} {
			if _, err := d.pool.Exec(d.t.Context(), d.schema.Render(sql), step); err != nil {
				d.t.Fatalf("%v\n%s", err, sql)
			}
		}
	}
}

func moveDefinition(path string) string {
	return `UPDATE :schema.manifest SET definition = jsonb_set(definition, '` + path + `', to_jsonb(to_char(
		((definition #>> '` + path + `')::timestamptz - $1::interval) AT TIME ZONE 'UTC',
		'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))
		WHERE definition #>> '` + path + `' IS NOT NULL AND $1::interval IS NOT NULL`
}

const upcoming = `SELECT min(moment) FROM (
	SELECT due AS moment FROM :schema.manifest WHERE live AND run IS NULL AND held IS NULL
	UNION ALL SELECT ready FROM :schema.run WHERE state = 'waiting'
	UNION ALL SELECT deadline FROM :schema.run WHERE state = 'active') x`

func (d *database) advance(by time.Duration) []shot {
	d.t.Helper()
	d.shots = nil
	for end := d.target.Add(by); ; {
		if err := d.s.Settle(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		var next *time.Time
		// the manifest was declared slightly after the start
		if d.query(&next, upcoming); next == nil || next.Add(d.moved).After(end.Add(tick/2)) {
			d.moveTo(end)
			return d.shots
		}
		d.moveTo(next.Add(d.moved))
	}
}

func (d *database) down(by time.Duration) { d.moveTo(d.target.Add(by)) }

func (d *database) tell(verb, manifest string) {
	d.t.Helper()
	last := d.last[manifest]
	var err error
	switch verb {
	case "cancel":
		err = d.store.Cancel(d.t.Context(), last.Run, "")
	case "retry":
		err = d.store.Retry(d.t.Context(), last.Run, "")
	case "pause":
		err = d.store.Pause(d.t.Context(), manifest, "")
	case "resume":
		err = d.store.Resume(d.t.Context(), manifest)
	case "trigger":
		_, err = d.store.Trigger(d.t.Context(), manifest, nil, scheduler.TriggerOptions{})
	case "activate":
		_, _, err = d.store.Activate(d.t.Context(), d.last["scan"], manifest, nil)
	default:
		var current []int
		d.query(&current, "SELECT :schema.run_end(ARRAY[$1::uuid], ARRAY[$2::int], ARRAY[$3], ARRAY['because'])",
			last.Run, last.Attempt, verb)
		if len(current) != 1 {
			d.t.Fatalf("%s %s: its run is not current", verb, manifest)
		}
	}
	if err != nil {
		d.t.Fatalf("%s %s: %v", verb, manifest, err)
	}
}

// Row X18.
func TestPostgresKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, s := range contract {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.tellStory(t, newDatabase(t, s))
		})
	}
}
