package settings

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed settings.sql
var statements string

// Prefix begins the payload of a notification that the setting of a queue was changed; the queue's number follows.
const Prefix = "settings "

// MostWorkers is the largest number of workers that can be set.
const MostWorkers = 10_000

// Settings are the settings of one endpoint.
type Settings struct {
	Endpoint    string
	Paused      bool
	PausedAt    time.Time // by the database's clock; zero while it is not paused, as is Reason
	Reason      string
	PausedBy    string          // who paused it: "policy" is the endpoint's policy
	Concurrency int             // workers of each process; 0 if the program's number applies
	Relay       bool            // a relay consumes the queue, and has no workers
	History     history.Options // zero fields if the program's options apply
}

// Store has the statements of one schema. Safe for concurrent use.
type Store struct{ sql pg.Statements }

// New returns a store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Get returns the setting of an endpoint. It adds the row if it does not exist.
func (s *Store) Get(ctx context.Context, pool *pg.Pool, endpoint string) (Settings, error) {
	found := Settings{Endpoint: endpoint}
	var paused *time.Time
	var level string
	err := pool.QueryRow(ctx, s.sql.Get("get"), endpoint).
		Scan(&paused, &found.Reason, &found.Concurrency, &level, &found.History.Sample)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = pool.Exec(ctx, s.sql.Get("add"), endpoint)
	}
	found.pausedAt(paused)
	found.History.Level = levelOf(level)
	return found, err
}

// levelOf parses the value that set_history has written. A level of a newer program counts as unset.
func levelOf(text string) history.Level {
	level, _ := history.ParseLevel(text)
	return level
}

func (s *Settings) pausedAt(paused *time.Time) {
	if paused != nil {
		s.Paused, s.PausedAt = true, paused.UTC()
	}
}

// List returns the settings of every endpoint that is installed, in the order of their names.
func (s *Store) List(ctx context.Context, q pg.Queryer) ([]Settings, error) {
	rows, err := q.Query(ctx, s.sql.Get("list"))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (found Settings, err error) {
		var paused *time.Time
		var level string
		err = row.Scan(&found.Endpoint, &paused, &found.Reason, &found.PausedBy, &found.Concurrency, &found.Relay,
			&level, &found.History.Sample)
		found.pausedAt(paused)
		found.History.Level = levelOf(level)
		return found, err
	})
}

// Row is a transaction of pgx.
type Row interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// State returns the settings of an endpoint as JSON, and locks them.
func (s *Store) State(ctx context.Context, tx Row, endpoint string) (state json.RawMessage, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("state"), endpoint).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return json.RawMessage("{}"), nil
	}
	return state, err
}

// Pause pauses an endpoint in the name of by, or of the connection's role if by is "", and returns the number of its
// queue. A second pause changes only the reason and the name.
func (s *Store) Pause(ctx context.Context, tx Row, endpoint, reason, by string) (queue int, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("pause"), endpoint, reason, by).Scan(&queue)
	return queue, err
}

// Resume ends the pause of an endpoint, if there is one, and returns the number of its queue.
func (s *Store) Resume(ctx context.Context, tx Row, endpoint string) (queue int, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("resume"), endpoint).Scan(&queue)
	return queue, err
}

// SetConcurrency sets the number of workers of each process, nil for the program's number, and returns the number of
// the endpoint's queue.
func (s *Store) SetConcurrency(ctx context.Context, tx Row, endpoint string, n *int) (queue int, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("set_concurrency"), endpoint, n).Scan(&queue)
	return queue, err
}

// SetHistory sets how much of an endpoint's history is kept, and returns the number of its queue. For zero fields of
// o the program's options apply.
func (s *Store) SetHistory(ctx context.Context, tx Row, endpoint string, o history.Options) (queue int, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("set_history"), endpoint, o.Level.String(), o.Sample).Scan(&queue)
	return queue, err
}

// QueuePause queues a pause that does not wait: if the row is locked, it changes nothing. done receives whether the
// endpoint is paused by it.
func (s *Store) QueuePause(pipeline *pgx.Batch, endpoint, reason string, done func(paused bool)) {
	pipeline.Queue(s.sql.Get("pause_in_batch"), endpoint, reason).Exec(func(tag pgconn.CommandTag) error {
		done(tag.RowsAffected() == 1)
		return nil
	})
}
