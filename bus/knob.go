package bus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/wake"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
)

//go:embed knobs.sql
var knobStatements string

// Knob is what is set for an endpoint while its programs run. It is a row of the database: it holds for every process
// of the endpoint, and for those that start later, until somebody sets it anew.
type Knob struct {
	Endpoint    string
	Paused      bool
	PausedAt    time.Time // by the database's clock; zero while it is not paused, as is Reason
	Reason      string
	Concurrency int  // workers of each process; 0 while the number of the program holds
	Relay       bool // a Relay carries its messages over the border, and has no workers
}

// Knobs are those of every endpoint that is installed, in the order of their names. The pool's role needs SELECT.
func (b *Bus) Knobs(ctx context.Context) ([]Knob, error) {
	rows, err := b.pool.Query(ctx, b.knobs.Get("knobs"))
	if err != nil {
		return nil, fmt.Errorf("read the knobs: %w", pg.Explain(err))
	}
	knobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Knob, err error) {
		var paused *time.Time
		err = row.Scan(&k.Endpoint, &paused, &k.Reason, &k.Concurrency, &k.Relay)
		if paused != nil {
			k.Paused, k.PausedAt = true, paused.UTC()
		}
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the knobs: %w", pg.Explain(err))
	}
	return knobs, nil
}

// PauseEndpoint stops an endpoint in all processes, whether they run now or start later: they take no message, and let
// the batches in hand finish. Messages go on arriving. It lasts until ResumeEndpoint. reason is for the people who
// look. Processes follow at once when they listen, else within their Poll. Pausing what is paused changes the reason
// alone.
//
// It returns ErrNotInstalled when no endpoint has this name. So do its three sisters.
func (b *Bus) PauseEndpoint(ctx context.Context, name, reason string) error {
	return b.turn(ctx, "pause", name, b.knobs.Get("pause"), deadletter.Storable(reason))
}

// ResumeEndpoint ends the pause of an endpoint. It does nothing when there is none.
func (b *Bus) ResumeEndpoint(ctx context.Context, name string) error {
	return b.turn(ctx, "resume", name, b.knobs.Get("resume"))
}

// SetConcurrency makes n the number of workers that each process of an endpoint has, in the place of
// EndpointOptions.Concurrency: 1 to 10,000. More start, or some end after their batch, without a restart. No process
// has more than the MaxConns of its bus's pool; one that is asked for more says so in its log. A worker has a
// connection of its own while it works: the server must allow them, which nobody checks here.
func (b *Bus) SetConcurrency(ctx context.Context, name string, n int) error {
	if n < 1 || n > mostWorkers {
		return fmt.Errorf("set the concurrency of endpoint %.80q to %d: want 1 to %d; PauseEndpoint stops an "+
			"endpoint, and ResetConcurrency goes back to its program's number", name, n, mostWorkers)
	}
	return b.setConcurrency(ctx, "set the concurrency of", name, &n)
}

// ResetConcurrency gives the processes of an endpoint back the numbers of their programs.
func (b *Bus) ResetConcurrency(ctx context.Context, name string) error {
	return b.setConcurrency(ctx, "reset the concurrency of", name, nil)
}

func (b *Bus) setConcurrency(ctx context.Context, doing, name string, n *int) error {
	if err := b.refuseForRelays(ctx, doing, name); err != nil {
		return err
	}
	return b.turn(ctx, doing, name, b.knobs.Get("set_concurrency"), n)
}

// turn runs a statement that changes one knob and returns the number of its queue.
func (b *Bus) turn(ctx context.Context, doing, name, sql string, args ...any) error {
	var queue int
	err := b.pool.Row(ctx, sql, append([]any{name}, args...)...).Scan(&queue)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: its name is misspelt, or it has never run here", ErrNotInstalled)
	}
	if err != nil {
		return fmt.Errorf("%s endpoint %.80q: %w", doing, name, pg.Explain(err))
	}
	b.turned(ctx, queue)
	return nil
}

// knobMark begins the payload of a notification that a knob was turned. Programs that do not know it ignore it.
const knobMark = "knob "

// turned tells every process of an endpoint to look at its knob. One that does not hear of it looks at its next poll.
func (b *Bus) turned(ctx context.Context, queue int) {
	payload := knobMark + wake.Payload(queue)
	b.hub.Hear(payload)
	b.notifier.Send(ctx, payload)
}
