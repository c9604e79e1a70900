package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
)

// targets are the queues of the partitions, the targets of a distributor's moves. They belong to the one worker of
// the endpoint.
type targets struct {
	names []string // of the partitions' endpoints
	of    func(key string, partitions int) int
	moves map[route]string
}

// NewTargets returns the strategy of an endpoint whose messages go to the queues of partitions with these names.
// of is partition.Of.
func NewTargets(names []string, of func(key string, partitions int) int) Strategy {
	return &targets{names: names, of: of, moves: map[route]string{}}
}

// route names the source and the target of a move.
type route struct{ from, to *queue.Queue }

// move returns the statement that moves messages along a route.
func (t *targets) move(r route) string {
	sql, ok := t.moves[r]
	if !ok {
		sql = r.from.To(r.to, "move")
		t.moves[r] = sql
	}
	return sql
}

// decide moves messages to their partitions, in place of handlers.
func (t *targets) decide(ctx context.Context, b *batch) error {
	if err := t.distribute(ctx, b); err != nil {
		return err
	}
	return b.effects.CheckRuns(ctx)
}

func (t *targets) handles() bool { return false }

// distribute chooses the partition of every message whose kind and body are understood. Decoding has decided the
// others, as in any endpoint: a message that cannot be read becomes a dead letter, and an unknown kind waits in this
// queue, so that it is still moved by its key once the kind is known.
func (t *targets) distribute(ctx context.Context, b *batch) error {
	var byID []*message.Message
	now := time.Now()
	deadline := now.Add(min(b.engine.To.Options.BatchTime, b.engine.To.Options.StepTimeout))
	for n, m := range b.in.Messages {
		if m.Fate != message.FateLeft || m.Consumer == nil {
			continue
		}
		if n > 0 && now.After(deadline) {
			b.in.CutAt(n)
			break
		}
		key := t.keyFor(b, m)
		now = time.Now()
		switch {
		case m.Fate != message.FateLeft:
		case key == "":
			byID = append(byID, m)
		default:
			m.Move(t.of(key, len(t.names)))
		}
	}
	return t.distributeByInstance(ctx, b, byID)
}

// keyFor returns the key of a message, or "" if the message names an instance.
func (t *targets) keyFor(b *batch, m *message.Message) string {
	switch {
	case m.Undecided():
		return ""
	case m.Call == nil:
		return b.in.KeyOf(m)
	}
	return m.Call.Key()
}

// distributeByInstance moves answers and timeouts to the partition of their instance's key. They arrive here if the
// instance was started before the endpoint had partitions, or had a different number of them. For an instance that
// has ended there is no order to keep.
func (t *targets) distributeByInstance(ctx context.Context, b *batch, messages []*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	refs := make([]persistence.Ref, len(messages))
	for i, m := range messages {
		refs[i] = persistence.Ref{ID: m.Delivery.Info.Instance}
	}
	found, err := b.engine.Sagas.Load(ctx, b.in.Conn, refs)
	if err != nil {
		return err
	}
	for i, m := range messages {
		key := string(refs[i].ID[:])
		if found[i].Status != persistence.Absent {
			key = found[i].Instance.Key
		}
		m.Move(t.of(key, len(t.names)))
	}
	return nil
}

var errNoPartition = errors.New("the queue of a partition is not installed")

// queue queues the statements that move messages, one for each partition.
func (t *targets) queue(b *batch, pipeline *pgx.Batch, known *queue.Routes) error {
	tids := make([]*pg.Array, len(t.names))
	for _, m := range b.in.Messages {
		if m.Fate != message.FateMoved {
			continue
		}
		if tids[m.Partition] == nil {
			tids[m.Partition] = pg.TIDs()
		}
		tids[m.Partition].TID(m.TID)
	}
	for n, of := range tids {
		if of == nil {
			continue
		}
		target := known.Endpoints[t.names[n]]
		if target == nil {
			return fmt.Errorf("move messages to %s: %w: %w", t.names[n], errNoPartition, queue.ErrNotInstalled)
		}
		pipeline.Queue(t.move(route{b.engine.To.Queue, target}), of, of.Len())
		b.effects.NoteWake(target, b.in.Now)
	}
	return nil
}
